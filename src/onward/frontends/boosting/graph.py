"""The graph around trees: its input, its labels, its outputs."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import OnwardError, UnsupportedError
from onward.frontends.boosting.trees import ML
from onward.frontends.opset import written_opset
from onward.graph.build import Builder, Tensor
from onward.model import Model

ML_OPSET = 5
"""The first with TreeEnsemble, which has double precision and sets."""
DTYPES = {np.dtype(np.float32): ir.DataType.FLOAT, np.dtype(np.float64): ir.DataType.DOUBLE}


def begun(source: Any, features: int, dtype: npt.DTypeLike, opset: int) -> tuple[Builder, Tensor]:
    """A graph that takes rows of features, called as the file is that it comes from."""
    if np.dtype(dtype) not in DTYPES:
        raise OnwardError(f"trees take rows of float32 or float64, not {np.dtype(dtype)}")
    name = pathlib.Path(source).stem if isinstance(source, str | os.PathLike) else "model"
    x = ir.Value(name="x", type=ir.TensorType(DTYPES[np.dtype(dtype)]), shape=ir.Shape(["batch", features]))
    imports = {"": written_opset(opset), ML: ML_OPSET}
    model = ir.Model(
        ir.Graph([x], [], nodes=[], opset_imports=imports, name=name), ir_version=10, producer_name="onward"
    )
    op = Builder(model)
    return op, op.tensor(x)


def finished(op: Builder, **outputs: Tensor) -> Model:
    """The model, its outputs called as given."""
    for name, tensor in outputs.items():
        named = op.Identity(tensor)
        named.value.name = op.names.value(name)
        op.model.graph.outputs.append(named.value)
    return Model(op.model)


def labelled(op: Builder, index: Tensor, classes: npt.NDArray[Any]) -> Tensor:
    """The class of each index, in the dtype of `classes`."""
    if classes.dtype.kind in "OU":
        if not all(isinstance(name, str) for name in classes.tolist()):
            raise UnsupportedError(
                f"the classes {classes.tolist()[:3]} cannot be labels in ONNX, which are numbers or strings"
            )
        names = [str(name) for name in classes]
        keys = list(range(len(names)))
        return op.many("LabelEncoder", 1, index, domain=ML, keys_int64s=keys, values_strings=names)[0]
    if np.array_equal(classes, np.arange(len(classes))) and classes.dtype.kind in "iu":
        return index.cast(ir.DataType.from_numpy(classes.dtype))
    return op.Gather(op.constant(classes), index)


def both(op: Builder, probability: Tensor) -> Tensor:
    """The probabilities of two classes, from that of the second: (rows, 2)."""
    column = op.Unsqueeze(probability, op.ints([1]))
    return op.Concat(1.0 - column, column, axis=1)


def flat(op: Builder, rows: Tensor) -> Tensor:
    """A vector where there is one number a row."""
    return op.Squeeze(rows, op.ints([1])) if rows.dims is not None and rows.dims[1:] == [1] else rows
