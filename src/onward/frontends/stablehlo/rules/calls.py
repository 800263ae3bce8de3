"""Functions that a module calls by a name: composites, and functions outside of it."""

from __future__ import annotations

from typing import Any

from jax import lax

from onward.errors import UnsupportedError
from onward.frontends.stablehlo.reader import Reader
from onward.frontends.stablehlo.registry import rule
from onward.frontends.stablehlo.rules.elementwise import OF_CHLO
from onward.frontends.stablehlo.rules.lapack import lapack
from onward.frontends.stablehlo.rules.shape import integers
from onward.frontends.stablehlo.values import Value, as_array, dtype_of

PLACES = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")
"""Calls that say on which devices something is, which means nothing where it stays whole."""


@rule("stablehlo.composite")
def composite(reader: Reader, op: Any, *given: Value) -> Any:
    """A function by its name where that is known, else by what it is made of."""
    dialect, _, name = op.attributes["name"].value.partition(".")
    if dialect == "chlo" and name in OF_CHLO:
        return OF_CHLO[name](*map(as_array, given))
    if dialect == "chlo" and name == "top_k":
        return _top_k(op, given[0], op.attributes["composite_attributes"])
    return reader.call(op.attributes["decomposition"].value, given)


@rule("stablehlo.custom_call")
def custom_call(reader: Reader, op: Any, *given: Value) -> Any:
    target = op.attributes["call_target_name"].value
    if target == "shape_assertion":
        return []
    if target in PLACES:
        if [str(value.type) for value in op.operands] != [str(value.type) for value in op.results]:
            raise UnsupportedError(f"the module calls {target}: it is for several devices, and ONNX is for one")
        return list(given)
    sizes = integers(op, "indices_of_shape_operands")
    given = tuple(value for i, value in enumerate(given) if i not in sizes)
    dialect, _, name = target.partition(".")
    if dialect in ("mhlo", "chlo") and name in OF_CHLO:
        return OF_CHLO[name](*map(as_array, given))
    if target.startswith("lapack_"):
        return lapack(op, target, given)
    raise UnsupportedError(f"the module calls {target}, which only the runtime it was made for has")


@rule("chlo.top_k")
def top_k(reader: Reader, op: Any, x: Value) -> list[Value]:
    return _top_k(op, x, op.attributes)


def _top_k(op: Any, x: Value, attributes: Any) -> list[Value]:
    values, places = lax.top_k(as_array(x), attributes["k"].value)
    return [values, places.astype(dtype_of(op.results[1].type))]
