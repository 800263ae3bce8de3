"""Ops that a runtime has no kernel for in a dtype: computed in another one, by Cast nodes around them.

This changes what is computed, so it is done only where the user asks, and every time it is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import onnx
import onnx_ir as ir

from onward.advice.options import option
from onward.backends.emit.host import FLOATS
from onward.canon.lower import key_of
from onward.errors import OnwardError, UnsupportedError
from onward.graph.origin import origin
from onward.graph.replace import constant
from onward.graph.values import INTEGERS
from onward.graph.walk import all_nodes
from onward.layout.roles import DOMAIN
from onward.passes.cast_around import Typed, cast_around, typed, word

Policy = Literal["none", "up", "down", "both"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

_D = ir.DataType
UP: dict[_D, tuple[_D, ...]] = {
    _D.BOOL: (_D.UINT8, _D.INT8, _D.INT32),
    _D.FLOAT16: (_D.FLOAT, _D.DOUBLE),
    _D.BFLOAT16: (_D.FLOAT, _D.DOUBLE),
    _D.FLOAT: (_D.DOUBLE,),
    _D.INT8: (_D.INT16, _D.INT32, _D.INT64),
    _D.INT16: (_D.INT32, _D.INT64),
    _D.INT32: (_D.INT64,),
    _D.UINT8: (_D.INT16, _D.INT32, _D.UINT16, _D.UINT32, _D.INT64, _D.UINT64),
    _D.UINT16: (_D.INT32, _D.UINT32, _D.INT64, _D.UINT64),
    _D.UINT32: (_D.INT64, _D.UINT64),
    _D.COMPLEX64: (_D.COMPLEX128,),
}
"""For each dtype those that hold all of its values, the one to take first in front."""
DOWN: dict[_D, tuple[_D, ...]] = {
    _D.DOUBLE: (_D.FLOAT,),
    _D.INT64: (_D.INT32,),
    _D.UINT64: (_D.INT64, _D.UINT32, _D.INT32),
    _D.UINT32: (_D.INT32,),
    _D.COMPLEX128: (_D.COMPLEX64,),
}
"""For each dtype those that hold the values most used; others are rounded, or wrong where they are too large."""

ANY = "*"
"""Stands for every input and output, in the table of an op that has no schema."""


@dataclass(frozen=True)
class Kernels:
    """In which dtypes a runtime computes."""

    runtime: str
    native: Mapping[str, Mapping[str, frozenset[_D]]]
    """By op and type parameter of its schema, the dtypes with a kernel; what is not listed has one for each."""


@dataclass(frozen=True)
class Cast:
    """An op that is computed in another dtype than the file says."""

    op: str
    """With the name of the node in the file: "Add 'sum'"."""
    dtype: _D
    computed_in: _D

    @property
    def wider(self) -> bool:
        """Whether no input loses anything by it."""
        return self.computed_in in UP.get(self.dtype, ())

    def __str__(self) -> str:
        how = "" if self.wider else ", which may round or overflow"
        return f"{self.op}: {word(self.dtype)}, computed in {word(self.computed_in)}{how}"


def checked(policy: str) -> Policy:
    """The policy of this name."""
    for known in POLICIES:
        if policy == known:
            return known
    raise OnwardError(f"there is no cast {policy!r}; there are {', '.join(POLICIES)}")


def compute_elsewhere(model: ir.Model, policy: Policy, kernels: Kernels) -> tuple[Cast, ...]:
    """Compute in a dtype with a kernel what has none in its own, in place; tells what was cast.

    Results get their own dtype back. Raises `UnsupportedError` for an op without a kernel that the policy does not
    allow to be computed otherwise. The model is in canonical form, its types inferred, its layout chosen.
    """
    wanted = [(kind, chosen(kind, native, policy, kernels)) for kind, native in _needed(model, kernels)]
    cast_around(model, wanted, store=True)
    return tuple(Cast(str(origin(kind.node)), kind.dtype, dtype) for kind, dtype in wanted)


def advice(model: ir.Model, kernels: Kernels) -> str:
    """A sentence on what a cast would do for a model of which some op has no kernel; '' where all have one."""
    for kind, native in _needed(model, kernels):
        if _candidates(kind, native, "both"):
            return refusal(kind, native, kernels)
    return ""


def chosen(kind: Typed, native: frozenset[_D], policy: Policy, kernels: Kernels) -> _D:
    """The dtype to compute in."""
    if found := _candidates(kind, native, policy):
        return found[0]
    raise UnsupportedError(refusal(kind, native, kernels))


def refusal(kind: Typed, native: frozenset[_D], kernels: Kernels) -> str:
    ways = [(way, found[0]) for way in ("up", "down") if (found := _candidates(kind, native, way))]
    told = " or ".join(f"{option('cast', way)} computes it in {word(dtype)}" for way, dtype in ways)
    problem = f"{origin(kind.node)}: {kernels.runtime} does not compute {kind.node.op_type} in {word(kind.dtype)}"
    return f"{problem}; {told}" if told else f"{problem}, nor in a dtype near to it"


def _candidates(kind: Typed, native: frozenset[_D], policy: str) -> list[_D]:
    tables = [table for way, table in (("up", UP), ("down", DOWN)) if policy in (way, "both")]
    return [dtype for table in tables for dtype in table.get(kind.dtype, ()) if dtype in native]


def _needed(model: ir.Model, kernels: Kernels) -> Iterator[tuple[Typed, frozenset[_D]]]:
    """What has no kernel, and the dtypes that have one; numbers computed from shapes and constants alone need none."""
    hosts: set[ir.Value] = set()
    for node in all_nodes(model.graph):
        known = all(v is None or constant(v) or v in hosts for v in node.inputs)
        if node.op_type in ("Shape", "Size") or (known and _may_be_numbers(node)):
            hosts.update(node.outputs)
            continue
        natives = kernels.native.get(_key(node), {})
        kinds = _kinds(node, ANY in natives) if natives else {}
        for variable, native in natives.items():
            kind = kinds.get(variable)
            if kind is not None and kind.inputs and kind.dtype not in native:
                yield kind, native


def _may_be_numbers(node: ir.Node) -> bool:
    """Whether what it gives may be Python numbers in generated code, or is a constant."""
    return node.outputs[0].dtype in INTEGERS | FLOATS or all(v is None or constant(v) for v in node.inputs)


def _key(node: ir.Node) -> str:
    """The op, whichever layout it is for."""
    return node.op_type if node.domain == DOMAIN else key_of(node)


def _kinds(node: ir.Node, without_schema: bool) -> dict[str, Typed]:
    """What each type variable stands for; without a schema, `ANY` for all that has the dtype of the first input."""
    if not without_schema:
        return typed(node, onnx.defs.get_schema(node.op_type, "" if node.domain == DOMAIN else node.domain))
    dtype = next((value.dtype for value in node.inputs if value is not None), None)
    if dtype is None:
        return {}
    inputs = (i for i, value in enumerate(node.inputs) if value is not None and value.dtype == dtype)
    outputs = (i for i, value in enumerate(node.outputs) if value.dtype == dtype)
    return {ANY: Typed(node, dtype, tuple(inputs), tuple(outputs))}
