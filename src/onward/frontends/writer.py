"""Writes ONNX nodes at the opset asked for, and keeps track of constants and weights: what frontends write with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.build import Builder, Tensor
from onward.graph.trained import HALF

FAR = 2**31 - 1
"""The end of a slice that goes to the end, whatever the size."""


class Writer(Builder):
    """A builder that knows what is constant, and which constants are weights."""

    def __init__(self, model: ir.Model) -> None:
        super().__init__(model)
        self.opset = model.opset_imports[""]
        self.weights: dict[ir.Value, npt.NDArray[Any]] = {}
        """Values of variables: constant for now, but not for training."""
        self.variables: dict[ir.Value, bool | str] = {}
        """What variables hold, in whatever form, and whether it is trained, as `graph.trained` records it."""
        self.rearranged: dict[ir.Value, ir.Value] = {}
        """Weights as variables hold them, and as they are stored."""
        self._forms: dict[frozenset[ir.Value], list[tuple[npt.NDArray[Any], Tensor]]] = {}
        """Weights in other forms, for each, and for those that were put together."""
        self.views: dict[ir.Value, Tensor] = {}
        """Weights in other shapes, and the weights."""

    def need(self, opset: int, what: str) -> None:
        """Refuse where the opset asked for is too old."""
        if self.opset < opset:
            raise UnsupportedError(f"{what} needs opset {opset} or later, not {self.opset}")

    def known(self, tensor: Tensor) -> npt.NDArray[Any] | None:
        """The numbers of a constant."""
        constant = tensor.value.const_value
        return None if constant is None else constant.numpy()

    def fixed(self, tensor: Tensor, what: str) -> npt.NDArray[Any]:
        """The numbers of an input that ONNX has as an attribute, or that decide which nodes are written."""
        array = self.known(tensor)
        if array is None:
            raise UnsupportedError(f"{what} is computed when the model runs; it must be constant")
        return array

    def numbers(self, tensor: Tensor, what: str) -> list[int]:
        return [int(n) for n in self.fixed(tensor, what).reshape(-1)]

    def int64(self, tensor: Tensor) -> Tensor:
        """As ONNX wants sizes and indices; what was narrowed on the way is taken as it was before."""
        if tensor.dtype == ir.DataType.INT64:
            return tensor
        array = self.known(tensor)
        if array is not None:
            return self.constant(array.astype(np.int64))
        made = tensor.value.producer()
        if made is not None and made.op_type == "Cast" and made.inputs[0] is not None:
            wide = made.inputs[0]
            if wide.dtype == ir.DataType.INT64:
                return self.tensor(wide)
        return tensor.cast(ir.DataType.INT64)

    def converted(self, tensor: Tensor, dtype: ir.DataType) -> Tensor:
        """A cast, done at once for a constant that is no weight."""
        array = self.known(tensor)
        if array is None or tensor.value in self.weights or array.dtype.kind not in "biu" or dtype.numpy().kind == "O":
            return tensor.cast(dtype)
        return self.constant(array.astype(dtype.numpy()), dtype)

    def arranged(self, weight: Tensor, perm: Sequence[int]) -> Tensor:
        """A transpose; a constant is stored in the order that it is used in, under the name it has."""
        array = self.known(weight)
        if array is None or list(perm) == sorted(perm):
            return self.transpose(weight, perm)
        return self.stored(weight, array.transpose(perm))

    def viewed(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """A weight in another shape; back in its own, it is the weight itself."""
        weight = self.views.get(tensor.value, tensor)
        if weight.sizes == list(shape):
            return weight
        view = self.Reshape(weight, self.ints(shape))
        self.views[view.value] = weight
        return view

    def is_weight(self, tensor: Tensor) -> bool:
        """Whether it is the value of a variable, in whatever shape."""
        return tensor.value in self.weights or tensor.value in self.views

    def stored(self, weight: Tensor, array: npt.NDArray[Any]) -> Tensor:
        """A constant in another form, which takes over the name of a variable where nobody reads the first one.

        What variables hold is never shared, equal as it may be: they are trained apart.
        """
        if weight.value not in self.weights:
            return self.constant(array)
        return self.combined({weight.value}, array, f"{self.scope}weight")

    def combined(self, weights: Collection[ir.Value], array: npt.NDArray[Any], name: str) -> Tensor:
        """What several variables became together; asked for again, it is the same. Of one, it takes over the name."""
        if not weights:
            return self.constant(array)
        forms = self._forms.setdefault(frozenset(weights), [])
        for known, tensor in forms:
            if np.array_equal(known, array):
                return tensor
        made = self._derived(array, weights, name)
        forms.append((array, made))
        if len(weights) == 1:
            self.rearranged.setdefault(next(iter(weights)), made.value)
        return made

    def half_trained(self, weight: Tensor) -> Tensor:
        """The same weight, the second half of which is zeros that are not trained."""
        if self.variables.get(weight.value):
            self.variables[weight.value] = HALF
        return weight

    def _derived(self, array: npt.NDArray[Any], weights: Iterable[ir.Value], name: str) -> Tensor:
        """A weight that was made of others."""
        name = self.names.value(name)
        held = ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), name=name)
        value = ir.Value(name=name, const_value=held, type=ir.TensorType(held.dtype), shape=ir.Shape(array.shape))
        self.model.graph.register_initializer(value)
        known = self.variables
        sources = [known[weight] for weight in weights if weight in known]
        if sources:
            known[value] = any(map(bool, sources))
        return self.tensor(value)

    def turned_round(self, tensor: Tensor, axes: Sequence[int]) -> Tensor:
        """With the last first along some axes."""
        back = self.ints([-1] * len(axes))
        turned = self.Slice(tensor, back, self.ints([-FAR - 1] * len(axes)), self.ints(axes), back)
        turned.value.shape = tensor.value.shape
        return turned

    def reduced(self, op_type: str, tensor: Tensor, axes: Sequence[int] | Tensor | None, keepdims: bool) -> Tensor:
        """A reduction over axes that may be known only when the model runs; over none it is the tensor itself."""
        if isinstance(axes, Tensor) and (array := self.known(axes)) is not None:
            axes = [int(a) for a in array.reshape(-1)]
        keeps: dict[str, Any] = {"keepdims": int(keepdims)}
        if isinstance(axes, Tensor):
            return self.many(op_type, 1, tensor, self.flat(self.int64(axes)), noop_with_empty_axes=1, **keeps)[0]
        if axes is not None and not axes:
            alone = self.unsqueeze(tensor, [0])  # each number by itself: of a norm, its size
            return self.reduced(op_type, alone, [0], keepdims=False)
        return self.many(op_type, 1, tensor, None if axes is None else self.ints(axes), **keeps)[0]

    def flat(self, tensor: Tensor) -> Tensor:
        """As a vector."""
        return tensor if tensor.rank == 1 else self.Reshape(tensor, self.ints([-1]))

    def axis(self, axis: int, rank: int) -> int:
        return axis + rank if axis < 0 else axis
