"""Ops that a runtime has no kernel for in a dtype: computed in another one, by Cast nodes around them.

This changes what is computed, so it is done only where the user asks, and every time it is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import onnx
import onnx_ir as ir

from onward.canon.lower import key_of
from onward.errors import OnwardError, UnsupportedError
from onward.graph.names import Names
from onward.graph.origin import copy_origin, origin
from onward.graph.replace import constant
from onward.graph.trained import inherit
from onward.graph.walk import all_nodes
from onward.layout.roles import DOMAIN

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


def word(dtype: _D) -> str:
    """float32 for FLOAT."""
    return {_D.FLOAT: "float32", _D.DOUBLE: "float64"}.get(dtype, dtype.name.lower())


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
    needed = list(_needed(model, kernels))
    _Rewriter(model).apply([(want, chosen(want, policy, kernels)) for want in needed])
    return tuple(Cast(str(origin(want.node)), want.dtype, chosen(want, policy, kernels)) for want in needed)


def advice(model: ir.Model, kernels: Kernels) -> str:
    """A sentence on what a cast would do for a model of which some op has no kernel; '' where all have one."""
    for want in _needed(model, kernels):
        ways = [(policy, found[0]) for policy in ("up", "down") if (found := _candidates(want, policy, kernels))]
        if ways:
            return refusal(want, kernels, ways)
    return ""


@dataclass(frozen=True)
class _Want:
    """A node whose inputs and outputs of one type parameter have a dtype without a kernel."""

    node: ir.Node
    dtype: _D
    native: frozenset[_D]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def chosen(want: _Want, policy: Policy, kernels: Kernels) -> _D:
    """The dtype to compute in."""
    if found := _candidates(want, policy, kernels):
        return found[0]
    ways = [(way, others[0]) for way in ("up", "down") if (others := _candidates(want, way, kernels))]
    raise UnsupportedError(refusal(want, kernels, ways))


def refusal(want: _Want, kernels: Kernels, ways: Sequence[tuple[str, _D]]) -> str:
    told = " or ".join(f"--cast {way} computes it in {word(dtype)}" for way, dtype in ways)
    problem = f"{origin(want.node)}: {kernels.runtime} does not compute {want.node.op_type} in {word(want.dtype)}"
    return f"{problem}; {told}" if told else f"{problem}, nor in a dtype near to it"


def _candidates(want: _Want, policy: str, kernels: Kernels) -> list[_D]:
    found = [*(UP.get(want.dtype, ()) if policy in ("up", "both") else ())]
    found += [*(DOWN.get(want.dtype, ()) if policy in ("down", "both") else ())]
    return [dtype for dtype in found if dtype in want.native]


def _needed(model: ir.Model, kernels: Kernels) -> Iterator[_Want]:
    """What has no kernel; numbers computed from shapes and constants alone need none."""
    hosts: set[ir.Value] = set()
    for node in all_nodes(model.graph):
        if node.op_type in ("Shape", "Size") or all(v is None or constant(v) or v in hosts for v in node.inputs):
            hosts.update(node.outputs)
            continue
        for parameter, native in kernels.native.get(_key(node), {}).items():
            inputs, outputs = _places(node, parameter)
            values = [node.inputs[i] for i in inputs] or [node.outputs[i] for i in outputs]
            dtype = next((value.dtype for value in values if value is not None), None)
            if parameter == ANY and dtype is not None:
                inputs = tuple(i for i in inputs if (value := node.inputs[i]) and value.dtype == dtype)
                outputs = tuple(i for i in outputs if node.outputs[i].dtype == dtype)
            if dtype is not None and dtype not in native and inputs:
                yield _Want(node, dtype, native, inputs, outputs)


def _key(node: ir.Node) -> str:
    """The op, whichever layout it is for."""
    return node.op_type if node.domain == DOMAIN else key_of(node)


def _places(node: ir.Node, parameter: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which inputs and outputs of a node have the type that a parameter of its schema stands for."""
    given = [i for i, value in enumerate(node.inputs) if value is not None]
    if parameter == ANY:
        return tuple(given), tuple(range(len(node.outputs)))
    schema = onnx.defs.get_schema(node.op_type, "" if node.domain == DOMAIN else node.domain)
    ends = [schema.inputs, schema.outputs]
    kinds = [[formal.type_str for formal in formals] for formals in ends]
    return (
        tuple(i for i in given if kinds[0][min(i, len(kinds[0]) - 1)] == parameter),
        tuple(i for i in range(len(node.outputs)) if kinds[1][min(i, len(kinds[1]) - 1)] == parameter),
    )


class _Rewriter:
    def __init__(self, model: ir.Model) -> None:
        self._graph = model.graph
        self._names = Names(model)
        self._made: dict[tuple[ir.Value, _D], ir.Value] = {}
        """Constants in another dtype, and values before they got their own dtype back, where that loses nothing."""

    def apply(self, wanted: Sequence[tuple[_Want, _D]]) -> None:
        for want, dtype in wanted:
            node = want.node
            for place in want.inputs:
                value = node.inputs[place]
                assert value is not None
                node.replace_input_with(place, self._cast(value, dtype, node))
            for place in want.outputs:
                self._restore(node.outputs[place], dtype, node)
        self._drop_replaced()

    def _cast(self, value: ir.Value, dtype: _D, node: ir.Node) -> ir.Value:
        if (value, dtype) in self._made:
            return self._made[value, dtype]
        tensor = constant(value)
        if tensor is None:
            return self._node(value, dtype, node, before=True)
        array = tensor.numpy()
        with np.errstate(all="ignore"):
            new = ir.tensor(array.astype(dtype.numpy()), name=self._names.value(f"{value.name}_{word(dtype)}"))
        made = ir.Value(name=new.name, type=ir.TensorType(dtype), shape=ir.Shape(array.shape), const_value=new)
        made.metadata_props.update(value.metadata_props)
        inherit(made, value)
        self._graph.register_initializer(made)
        self._made[value, dtype] = made
        return made

    def _restore(self, value: ir.Value, dtype: _D, node: ir.Node) -> None:
        """Let `node` give `value` in `dtype`, and everyone else read it in its own."""
        if value.dtype is None or (not value.uses() and not value.is_graph_output()):
            return
        own = value.dtype
        restored = self._node(value, own, node, before=False)
        value.replace_all_uses_with(restored, replace_graph_outputs=True)
        producer = restored.producer()
        assert producer is not None
        producer.replace_input_with(0, value)
        value.name, restored.name = restored.name, value.name
        value.type = ir.TensorType(dtype)
        if own in UP.get(dtype, ()):
            self._made[restored, dtype] = value

    def _node(self, value: ir.Value, dtype: _D, node: ir.Node, before: bool) -> ir.Value:
        cast = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(dtype))], version=node.version)
        copy_origin(cast, node)
        made = cast.outputs[0]
        made.name = self._names.value(f"{value.name}_{word(dtype)}")
        made.type, made.shape = ir.TensorType(dtype), value.shape
        graph = node.graph
        assert graph is not None
        if before:
            graph.insert_before(node, cast)
        else:
            graph.insert_after(node, cast)
        return made

    def _drop_replaced(self) -> None:
        """A weight that is read in its new dtype only has its old name there."""
        for (old, _), new in self._made.items():
            if new.is_initializer() and old.is_initializer() and not old.uses() and not old.is_graph_output():
                assert old.graph is not None and old.name is not None
                name = old.name
                del old.graph.initializers[name]
                new.name = name
                if new.const_value is not None:
                    new.const_value.name = name
