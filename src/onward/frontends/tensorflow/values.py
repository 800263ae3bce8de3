"""What flows along the edges of a TensorFlow graph: tensors, and what ONNX has no tensor for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.build import Tensor


@dataclass(eq=False)
class Variable:
    """A resource that holds a tensor; what is assigned to it is what it gives from then on."""

    name: str
    array: npt.NDArray[Any]
    trainable: bool
    value: Tensor | None = None
    """What it holds now; None as long as nobody asked."""
    assigned: bool = False
    handle: Any = None
    """What TensorFlow knows it by, where it is known."""


@dataclass(frozen=True, eq=False)
class Table:
    """A lookup table; the op that looks something up knows the dtypes."""

    handle: Any

    def items(self, keys: int, values: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Its keys and values, given TensorFlow's numbers of their dtypes."""
        import tensorflow as tf

        try:
            exported = tf.raw_ops.LookupTableExportV2(
                table_handle=self.handle, Tkeys=tf.as_dtype(keys), Tvalues=tf.as_dtype(values)
            )
        except (tf.errors.AbortedError, tf.errors.FailedPreconditionError) as error:
            raise UnsupportedError("the lookup table is not initialised: create it outside the function") from error
        return exported.keys.numpy(), exported.values.numpy()

    def size(self) -> int:
        import tensorflow as tf

        return int(tf.raw_ops.LookupTableSizeV2(table_handle=self.handle))


@dataclass(frozen=True, eq=False)
class Complex:
    """Complex numbers: ONNX Runtime computes with the parts."""

    real: Tensor
    imaginary: Tensor


@dataclass(frozen=True, eq=False)
class TensorList:
    """A list of tensors of one shape, stacked along a new first axis."""

    stacked: Tensor


@dataclass(frozen=True, eq=False)
class Reserved:
    """A list that nothing was put into yet."""

    count: Tensor
    dtype: ir.DataType
    shape: Tensor
    """Of its elements, with -1 for what is not known; the scalar -1 where nothing is."""


@dataclass(frozen=True, eq=False)
class Collected:
    """A list inside a loop, each round of which puts one tensor to its end."""

    item: Tensor | None = None
    place: Tensor | None = None
    """Where the tensor was put; None for the end."""


@dataclass(frozen=True, eq=False)
class Features:
    """Records of bytes, by what is in them."""

    tensors: list[Tensor]


class NotCollected(Exception):
    """A loop does something else with a list than putting one tensor to its end each round."""


Value = Tensor | Variable | Table | Complex | TensorList | Reserved | Collected | Features
