"""Estimators of scikit-learn as ONNX models."""

from __future__ import annotations

import os
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from onward.errors import InvalidDataError, InvalidModelError, OnwardError, UnsupportedError
from onward.formats.sklearn import asked, available, loaded, responses, rounded
from onward.formats.sklearn_parts import has_function
from onward.formats.tables import MISSING, derived, feeds, is_frame, shortened
from onward.frontends.opset import brought_to, written_opset
from onward.frontends.runtime_kernels import make_runnable
from onward.frontends.sklearn.frames import FrameInputs
from onward.frontends.sklearn.from_skl2onnx import from_skl2onnx, refuse
from onward.frontends.sklearn.table import Data, Table
from onward.frontends.sklearn.writer import ML, Writer
from onward.gate import trusting
from onward.graph.build import Tensor
from onward.graph.unused import remove_unused
from onward.model import Model
from onward.registry import import_files
from onward.runners.calls import Outputs

ML_OPSET = 5


class Converted(NamedTuple):
    """A model, and what it was made of and from: the estimator, some rows, and what it returns for them."""

    model: Model
    estimator: Any
    rows: Any
    methods: Sequence[str]
    expected: Outputs


def converted(estimator: Any, sample: Any, methods: Sequence[str] | None, opset: int, trust: bool) -> Converted:
    written = written_opset(opset)
    import_files("onward.frontends.sklearn.rules")
    name = "model"
    if isinstance(estimator, str | os.PathLike):
        name = pathlib.Path(estimator).stem
        with trusting(trust):
            estimator = loaded(pathlib.Path(estimator))
    check_fitted(estimator)
    refuse(estimator)
    given = shortened(derived(estimator) if sample is None else sample)
    wanted = list(methods or asked(estimator))
    if missing := [method for method in wanted if method not in available(estimator)]:
        raise OnwardError(f"{type(estimator).__name__} has no {missing[0]}; it has {', '.join(available(estimator))}")
    by_columns = is_frame(given) and has_function(estimator)
    if not by_columns:
        feeds(given)  # which refuses what no tensor holds
    try:
        expected = expected_of(estimator, given, wanted)
    except InvalidDataError as error:
        if sample is not None:
            raise
        raise InvalidDataError(f"{error} (it was tried on random numbers, as no sample is given: give one)") from error
    model = _written(estimator, given, by_columns, expected, written, name)
    return Converted(brought_to(opset, model), estimator, given, wanted, expected)


def check_fitted(estimator: Any) -> None:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(estimator, BaseEstimator):
        raise InvalidModelError(f"{type(estimator).__name__} is not an estimator of scikit-learn")
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise OnwardError(f"{type(estimator).__name__} is not fitted: call fit before it is converted") from error


def expected_of(estimator: Any, given: Any, methods: Sequence[str]) -> Outputs:
    """What scikit-learn returns, in the precision of what it is given."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = responses(estimator, given, methods)
            return found if is_frame(given) and has_function(estimator) else rounded(found, feeds(given))
    except OnwardError:
        raise
    except Exception as error:
        raise InvalidDataError(f"{type(estimator).__name__} does not take the sample: {error}") from error


def _written(estimator: Any, given: Any, by_columns: bool, expected: Outputs, opset: int, name: str) -> Model:
    graph = ir.Graph([], [], nodes=[], opset_imports={"": opset, ML: ML_OPSET}, name=name)
    op = Writer(ir.Model(graph, ir_version=10, producer_name="onward"), from_skl2onnx)
    frame = FrameInputs(op, given) if by_columns else None
    data = _plain_inputs(op, given) if frame is None else frame.table
    found = op.outputs(estimator, data)
    for label, array in expected.items():
        if label not in found:
            raise UnsupportedError(f"{type(estimator).__name__}.{label}: there is no rule for it")
        result = found[label]
        if result.dtype != ir.DataType.STRING and array.dtype.kind != "O":
            result = result.cast(ir.DataType.from_numpy(np.asarray(array).dtype))
        elif frame is not None:
            gap, empty = (op.strings(np.asarray(text, object)) for text in (op.gap, MISSING))
            result = op.Where(op.Equal(result, gap), empty, result)
        output = op.Identity(result)
        output.value.name = op.names.value(label)
        graph.outputs.append(output.value)
    model = Model(op.model)
    remove_unused(op.model)
    passes.RemoveUnusedOpsetsPass()(op.model)
    make_runnable(op.model)
    if frame is not None:
        frame.finish()
    return model


def _plain_inputs(op: Writer, given: Any) -> Data:
    """An array as one input, of a data frame every column."""
    tensors: dict[str, Tensor] = {}
    for label, array in feeds(given).items():
        dtype = ir.DataType.STRING if array.dtype.kind == "O" else ir.DataType.from_numpy(array.dtype)
        value = ir.Value(name=op.names.value(label), type=ir.TensorType(dtype))
        value.shape = ir.Shape(["batch", *array.shape[1:]])
        op.graph.inputs.append(value)
        tensors[label] = op.tensor(value)
    return Table(tensors) if is_frame(given) else tensors["X"]
