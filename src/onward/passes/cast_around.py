"""Nodes that are computed in another dtype than their own: what they read is cast, and what they give is cast back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.origin import KEY as ORIGIN
from onward.graph.replace import constant, is_op
from onward.graph.trained import inherit


@dataclass(frozen=True)
class Typed:
    """The inputs and outputs of a node that have one dtype."""

    node: ir.Node
    dtype: ir.DataType
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def typed(node: ir.Node, schema: Any) -> dict[str, Typed]:
    """What each type variable of the schema stands for, those of the inputs first; none whose dtype is unknown."""
    free = {constraint.type_param_str for constraint in schema.type_constraints}
    inputs, outputs = _places(schema.inputs, node.inputs), _places(schema.outputs, node.outputs)
    found = {}
    for variable in inputs | outputs:
        ends = inputs.get(variable, {}), outputs.get(variable, {})
        dtypes = [value.dtype for end in ends for value in end.values() if value.dtype is not None]
        if dtypes and variable in free:
            found[variable] = Typed(node, dtypes[0], tuple(ends[0]), tuple(ends[1]))
    return found


def _places(declared: Sequence[Any], values: Sequence[ir.Value | None]) -> dict[str, dict[int, ir.Value]]:
    """The values by their type variable; the last one declared stands for the rest where an op takes any number."""
    found: dict[str, dict[int, ir.Value]] = {}
    for i, value in enumerate(values):
        if value is not None:
            found.setdefault(declared[min(i, len(declared) - 1)].type_str, {})[i] = value
    return found


def word(dtype: ir.DataType) -> str:
    """float32 for FLOAT."""
    return {ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "float64"}.get(dtype, dtype.name.lower())


def cast_around(
    model: ir.Model, wanted: Iterable[tuple[Typed, ir.DataType]], *, store: bool | Callable[[ir.Value], bool] = False
) -> None:
    """Compute each in the dtype beside it, in place; everyone else reads the results in their own dtype.

    With `store`, constants, or those it says yes to, are stored in the dtype they are read in; otherwise they stay, and
    are cast as all else.
    """
    casts = _Casts(model, store if callable(store) else lambda _: bool(store))
    for kind, dtype in wanted:
        for place in kind.inputs:
            value = kind.node.inputs[place]
            assert value is not None
            kind.node.replace_input_with(place, casts.cast(value, dtype, kind.node))
        for place in kind.outputs:
            casts.restore(kind.node.outputs[place], kind.dtype, dtype, kind.node)
    casts.drop_replaced()


def _before_its_cast(value: ir.Value, dtype: ir.DataType) -> ir.Value | None:
    """What a Cast made a value of, if it had that dtype and no number was lost."""
    cast = value.producer()
    given = cast.inputs[0] if is_op(cast, "Cast") and cast is not None else None
    if given is None or given.dtype != dtype or value.dtype is None:
        return None
    return given if np.can_cast(dtype.numpy(), value.dtype.numpy()) else None


class _Casts:
    def __init__(self, model: ir.Model, store: Callable[[ir.Value], bool]) -> None:
        self._graph = model.graph
        self._names = Names(model)
        self._store = store
        self._made: dict[tuple[ir.Value, ir.DataType], ir.Value] = {}
        """Constants in another dtype, and values before they got their own dtype back, where that loses nothing."""

    def cast(self, value: ir.Value, dtype: ir.DataType, node: ir.Node) -> ir.Value:
        if (value, dtype) in self._made:
            return self._made[value, dtype]
        if (before := _before_its_cast(value, dtype)) is not None:
            return before
        tensor = constant(value) if self._store(value) else None
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

    def restore(self, value: ir.Value, own: ir.DataType, dtype: ir.DataType, node: ir.Node) -> None:
        """Let `node` give `value` in `dtype`, and everyone else read it in its own."""
        if value.uses() or value.is_graph_output():
            restored = self._node(value, own, node, before=False)
            value.name, restored.name = restored.name, value.name
            if np.can_cast(dtype.numpy(), own.numpy()):
                self._made[restored, dtype] = value
        value.type = ir.TensorType(dtype)

    def _node(self, value: ir.Value, dtype: ir.DataType, node: ir.Node, before: bool) -> ir.Value:
        """A Cast in front of `node`, or one behind it that is read in place of `value`."""
        name = self._names.value(f"{value.name}_{word(dtype)}")
        made = ir.Value(name=name, type=ir.TensorType(dtype), shape=value.shape)
        if not before:
            value.replace_all_uses_with(made, replace_graph_outputs=True)
        cast = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(dtype))], outputs=[made], version=node.version)
        cast.name = self._names.node(name)
        cast.metadata_props.update({key: text for key, text in node.metadata_props.items() if key == ORIGIN})
        assert node.graph is not None
        (node.graph.insert_before if before else node.graph.insert_after)(node, cast)
        return made

    def drop_replaced(self) -> None:
        """A weight that is read in its new dtype only has its old name there."""
        for (old, _), new in self._made.items():
            if new.is_initializer() and old.is_initializer() and not old.uses() and not old.is_graph_output():
                assert old.graph is not None and old.name is not None
                name = old.name
                del old.graph.initializers[name]
                new.name = name
