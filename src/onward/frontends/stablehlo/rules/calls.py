"""Functions that a module calls by a name: composites, and functions outside of it."""

from __future__ import annotations

from typing import Any

from jax import lax

from onward.errors import UnsupportedError
from onward.frontends.stablehlo.reader import Reader
from onward.frontends.stablehlo.registry import OUTSIDE, outside, rule
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
    if function := OUTSIDE.get(target):
        return function(reader, op, *given)
    raise UnsupportedError(f"the module calls {target}, which only the runtime it was made for has")


@outside("ApproxTopK")
def approximate_top_k(reader: Reader, op: Any, x: Value, *rest: Value) -> list[Value]:
    """All of them are found, which is near enough: by a function that compares two numbers, up or down."""
    options = op.attributes["mhlo.backend_config"]
    (name,) = op.attributes["called_computations"]
    outline = reader.functions[name.value].regions[0].blocks[0]
    compare = outline.operations[0].operation
    largest = "GT" in str(compare.attributes["comparison_direction"])
    counted = op.operands[1].owner.name in ("stablehlo.iota", "stablehlo.dynamic_iota")
    if not counted or not options["aggregate_to_topk"].value or list(compare.operands) != list(outline.arguments)[:2]:
        raise UnsupportedError("the module calls ApproxTopK of other than numbers and their places")
    function = lax.approx_max_k if largest else lax.approx_min_k
    values, places = function(as_array(x), options["top_k"].value, options["reduction_dim"].value)
    return [values, places.astype(dtype_of(op.results[1].type))]


@rule("chlo.top_k")
def top_k(reader: Reader, op: Any, x: Value) -> list[Value]:
    return _top_k(op, x, op.attributes)


def _top_k(op: Any, x: Value, attributes: Any) -> list[Value]:
    values, places = lax.top_k(as_array(x), attributes["k"].value)
    return [values, places.astype(dtype_of(op.results[1].type))]


@rule("stablehlo.rng", "stablehlo.rng_bit_generator")
def random(reader: Reader, op: Any, *given: Value) -> Any:
    kind = "rng_algorithm" if "rng_algorithm" in op.attributes else "rng_distribution"
    word = str(op.attributes[kind]).split()[-1].rstrip(">")
    raise UnsupportedError(f"random numbers ({word}) are the compiler's own; use threefry2x32 keys of jax.random")
