"""Functions whose variables are trained: nothing is computed from a variable beforehand, and steps may change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnx_ir.passes import common

from onward.errors import UnsupportedError
from onward.frontends.opset import OPSET
from onward.frontends.tensorflow.convert import RULES, written
from onward.frontends.tensorflow.finish import finished
from onward.frontends.tensorflow.fold import Folder
from onward.frontends.tensorflow.translate import Translator
from onward.frontends.tensorflow.values import Value, Variable
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor
from onward.model import Model
from onward.registry import import_files
from onward.training.autodiff.stops import stop

Array = npt.NDArray[Any]


@dataclass
class Storage:
    """How variables are kept, which the graphs of a model for inference and for training have in common."""

    orders: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The axes of those that are stored in another order, as convolutions want them."""
    _names: dict[str, list[Any]] = field(default_factory=dict)

    def name(self, variable: Variable) -> str:
        """One of its own, where TensorFlow lets several have the same."""
        same = self._names.setdefault(variable.name, [])
        if not any(handle is variable.handle for handle in same):
            same.append(variable.handle)
        number = next(i for i, handle in enumerate(same) if handle is variable.handle)
        return f"{variable.name}_{number}" if number else variable.name

    def stored(self, name: str, array: Array) -> Array:
        order = self.orders.get(name)
        return np.asarray(array) if order is None else np.ascontiguousarray(array.transpose(order))


@dataclass
class Trained:
    """A function as a model: variables are its initializers, and what they are afterwards comes behind its outputs."""

    model: Model
    variables: dict[str, Variable]
    assigned: list[str]
    """Variables that the function changes; `<variable>.next` is the output."""

    def without(self, names: Sequence[str]) -> None:
        """Forget that these are changed, in place."""
        graph = self.model.ir.graph
        gone = {f"{name}.next" for name in names}
        kept = [value for value in graph.outputs if value.name not in gone]
        graph.outputs.clear()
        graph.outputs.extend(kept)
        self.assigned = [name for name in self.assigned if name not in names]
        common.RemoveUnusedNodesPass()(self.model.ir)


def _is_of_variance(operation: Any) -> bool:
    """Whether it is the mean in `tf.nn.moments`: the variance does not depend on it, since it is least there."""
    import tensorflow as tf

    mean = operation.inputs[0].op
    squares = operation.outputs[0].consumers()
    users = [user for square in squares for user in square.outputs[0].consumers()]
    if {mean.type, *(user.type for user in users)} != {"Mean"}:
        return False
    of_same = all(any(x is mean.inputs[0] for x in square.inputs) for square in squares)
    axes = [tf.get_static_value(one.inputs[1]) for one in (mean, *users)]
    known = all(axis is not None and np.array_equal(axis, axes[0]) for axis in axes)
    return of_same and known and {square.type for square in squares} == {"SquaredDifference"}


class _Writer(Writer):
    translator: _Translator

    def arranged(self, weight: Tensor, perm: Sequence[int]) -> Tensor:
        name = next((v.name for v, held in self.translator.held.items() if held.value is weight.value), None)
        if name is None:
            return super().arranged(weight, perm)
        order = self.translator.storage.orders.setdefault(name, tuple(perm))
        return self.turned(self.translator.stored(name, weight), order, perm)

    def turned(self, stored: Tensor, order: Sequence[int], perm: Sequence[int]) -> Tensor:
        """What is stored in one order of axes, in another."""
        axes = [list(order).index(axis) for axis in perm]
        return stored if axes == sorted(axes) else self.transpose(stored, axes)


class _Translator(Translator):
    """Variables are inputs of the graph, so that nothing is known about them."""

    op: _Writer

    def __init__(self, opset: int, storage: Storage) -> None:
        super().__init__(opset)
        self.op = _Writer(self.model)
        self.op.translator = self
        self._folder = Folder(self.op)
        self.stateful = True
        self.storage = storage
        self.held: dict[Variable, Tensor] = {}
        """What variables hold at first, in TensorFlow's order of axes."""
        self._stored: dict[str, Tensor] = {}

    def weight(self, variable: Variable) -> Tensor:
        if variable.value is None:
            variable.name = self.storage.name(variable)
            if self.op.names.value(variable.name) != variable.name:
                raise UnsupportedError(
                    f"something else is called {variable.name!r}, too: rename the layer or the variable"
                )
            dtype = ir.DataType.from_numpy(variable.array.dtype)
            variable.value = self.held[variable] = self.input(f"{variable.name}.held", dtype, variable.array.shape)
            self.op.weights[variable.value.value] = variable.array
        return variable.value

    def stopped(self, operation: Any, value: Value) -> Value:
        if not isinstance(value, Tensor) or _is_of_variance(operation):
            return value
        held = self.op.Identity(value)
        node = held.value.producer()
        assert node is not None
        stop(node)
        return held

    def stored(self, name: str, weight: Tensor) -> Tensor:
        """A variable in the order of axes that it is stored in."""
        if name not in self._stored:
            shape = [(weight.sizes or [])[axis] for axis in self.storage.orders[name]]
            self._stored[name] = self.input(name, weight.dtype, shape)
            self._stored[name].value.name = name
        return self._stored[name]

    def close(self) -> list[str]:
        """Give out what variables are afterwards, and let each have one input under its name; gives the changed."""
        graph = self.model.graph
        changed = []
        for variable, held in self.held.items():
            name = variable.name
            if variable.assigned:
                assert variable.value is not None
                after = variable.value
                if name in self.storage.orders:
                    after = self.op.transpose(after, self.storage.orders[name])
                after = self.op.Identity(after)
                after.value.name = f"{name}.next"
                graph.outputs.append(after.value)
                changed.append(name)
            if name in self.storage.orders:
                stored, order = self.stored(name, held), self.storage.orders[name]
                plain = self.op.turned(stored, order, range(len(order)))
                held.value.replace_all_uses_with(plain.value)
                graph.inputs.remove(held.value)
            else:
                held.value.name = name
        graph.sort()
        return changed


def trained(
    function: Any,
    storage: Storage,
    outputs: Sequence[str] | None = None,
    *,
    name: str = "model",
    batched: bool = False,
    opset: int = OPSET,
) -> Trained:
    """A concrete function as a model in which weights are what training can change."""
    import_files(RULES)
    translator = _Translator(opset, storage)
    translator.model.graph.name = name
    written(translator, function, outputs, batched)
    changed = translator.close()
    variables = {variable.name: variable for variable in translator.held}
    made = finished(translator, Model(translator.model))
    made.ir.graph.sort()
    hold(made, {name: storage.stored(name, variable.array) for name, variable in variables.items()})
    return Trained(made, variables, changed)


def hold(model: Model, arrays: Mapping[str, Array]) -> None:
    """Make inputs of a graph initializers, in place; those that nothing reads go."""
    graph = model.ir.graph
    inputs = {value.name: value for value in graph.inputs}
    for name, array in arrays.items():
        if (value := inputs.get(name)) is not None:
            graph.inputs.remove(value)
            if value.uses() or value.is_graph_output():
                value.const_value = ir.Tensor(array, name=name)
                graph.register_initializer(value)
