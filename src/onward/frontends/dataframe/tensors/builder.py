"""Writes nodes for columns: numbers beside a column have its rank."""

from __future__ import annotations

import numpy as np

from onward.graph.build import Builder, Number, Tensor


class ColumnBuilder(Builder):
    """A builder whose numbers are (1, 1) beside a tensor of rank 2.

    Beside a scalar or (1,), ONNX Runtime walks a column (N, 1) element by element, which takes about 100 times as long.
    """

    def like(self, number: Number, tensor: Tensor) -> Tensor:
        if tensor.rank != 2:
            return super().like(number, tensor)
        return self.constant(np.full((1, 1), number).astype(tensor.dtype.numpy()), tensor.dtype)
