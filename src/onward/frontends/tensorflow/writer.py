"""Writes ONNX nodes for a TensorFlow op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends import writer
from onward.frontends.tensorflow.values import Complex
from onward.frontends.writer import FAR as FAR
from onward.graph.build import Tensor

if TYPE_CHECKING:
    from onward.frontends.tensorflow.translate import Translator


class Writer(writer.Writer):
    """A writer that knows which TensorFlow op is being written."""

    translator: Translator
    operation: Any
    """The TensorFlow op that is being written."""

    def sizes_in(self, vector: Tensor) -> list[int | None] | None:
        """Where a vector is the shape of something: its sizes, None for open ones."""
        made = vector.value.producer()
        if made is not None and made.op_type == "Cast" and made.inputs[0] is not None:
            made = made.inputs[0].producer()
        whole = made is not None and made.op_type == "Shape" and not made.attributes
        shape = made.inputs[0].shape if whole and made is not None and made.inputs[0] is not None else None
        return None if shape is None else [size if isinstance(size, int) else None for size in shape]

    def size_of(self, number: Tensor) -> tuple[ir.Value, int] | None:
        """Where a number is the size of something: of which value, and along which axis."""
        made = number.value.producer()
        while made is not None and made.op_type in ("Cast", "Squeeze", "Reshape", "Identity") and made.inputs[0]:
            made = made.inputs[0].producer()
        if made is None or made.op_type not in ("Slice", "Gather"):
            return None
        shape, *bounds = made.inputs
        numbers = [None if bound is None else self.known(self.tensor(bound)) for bound in bounds]
        if shape is None or any(array is None or array.size != 1 for array in numbers):
            return None
        place, *rest = (int(array.reshape(())) for array in numbers if array is not None)
        made = shape.producer()
        if made is not None and made.op_type == "Cast" and made.inputs[0] is not None:
            made = made.inputs[0].producer()
        alone = not rest or (rest[0] == place + 1 and rest[1:] in ([], [0], [0, 1]))
        if made is None or made.op_type != "Shape" or made.attributes or made.inputs[0] is None or not alone:
            return None
        return made.inputs[0], place

    def array(self, array: npt.NDArray[Any]) -> Tensor | Complex:
        """A constant of numbers or of strings."""
        if array.dtype.kind == "c":
            return Complex(self.constant(array.real.copy()), self.constant(array.imag.copy()))
        if array.dtype.kind not in "OSU":
            return self.constant(array)
        return self.strings(array)

    def text(self, text: str) -> Tensor:
        """A string as a scalar."""
        tensor = self.array(np.asarray(text, object))
        assert isinstance(tensor, Tensor)
        return tensor
