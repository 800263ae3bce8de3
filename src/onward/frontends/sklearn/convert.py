"""Estimators of scikit-learn as ONNX models."""

from __future__ import annotations

import os
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from onward.errors import InvalidDataError, InvalidModelError, OnwardError, UnsupportedError, VerificationError
from onward.formats.sklearn import asked, available, in_float32, responses, rounded
from onward.formats.tables import derived, feeds, is_frame, shortened
from onward.frontends.runtime_kernels import make_runnable
from onward.frontends.sklearn.from_skl2onnx import refuse
from onward.frontends.sklearn.writer import ML, Data, Table, Writer
from onward.frontends.tensorflow.convert import NEWEST, OPSET, load_rules
from onward.gate import trusting
from onward.graph.build import Tensor
from onward.model import Model
from onward.runners import Outputs
from onward.runners.onnxruntime import prepare
from onward.verification.compare import compare, differences, measure

OLDEST = 18
"""The first opset in which all that is written has one form."""
ML_OPSET = 5


def from_sklearn(
    estimator: Any,
    sample: Any = None,
    *,
    methods: Sequence[str] | None = None,
    opset: int = OPSET,
    check: bool = True,
    trust: bool = False,
) -> Model:
    """A fitted estimator or pipeline, or the file of one, as an ONNX model.

    `sample` is an array or a data frame of some rows such as the estimator is to be given: the model takes an array as
    one input X, and of a data frame every column as an input, in the dtypes that they have in it. Missing strings are
    given to the model as empty ones. It may be left out where all features are numbers.

    The outputs are called as the `methods` whose results they are: `predict`, and `predict_proba` or
    `decision_function`, or else `transform`, unless others are asked for. They are computed in float64, as by
    scikit-learn, and given in float32 where the sample is in float32. Unless `check` is false, the model is run on the
    sample, beside the estimator, and not handed over if it differs. `trust` lets the file of an estimator hold whatever
    it likes; without it, types that could do more than compute are refused.
    """
    if not OLDEST <= opset <= NEWEST:
        raise OnwardError(f"opset {opset}: one from {OLDEST} to {NEWEST} can be written")
    load_rules("sklearn")
    name = "model"
    if isinstance(estimator, str | os.PathLike):
        from onward.formats.sklearn import loaded

        name = pathlib.Path(estimator).stem
        with trusting(trust):
            estimator = loaded(pathlib.Path(estimator))
    check_fitted(estimator)
    refuse(estimator)
    given = shortened(derived(estimator) if sample is None else sample)
    wanted = list(methods or asked(estimator))
    if missing := [method for method in wanted if method not in available(estimator)]:
        raise OnwardError(f"{type(estimator).__name__} has no {missing[0]}; it has {', '.join(available(estimator))}")
    inputs = feeds(given)
    try:
        expected = expected_of(estimator, given, wanted)
    except InvalidDataError as error:
        if sample is not None:
            raise
        raise InvalidDataError(f"{error} (random numbers, as no sample is given: give one)") from error
    model = _written(estimator, inputs, is_frame(given), expected, opset, name)
    if check and (wrong := differing(model, estimator, given, wanted, expected)):
        raise VerificationError(f"{type(estimator).__name__}: the model differs on the sample: {wrong[0]}")
    return model


def check_fitted(estimator: Any) -> None:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(estimator, BaseEstimator):
        raise InvalidModelError(f"{type(estimator).__name__} is no estimator of scikit-learn")
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise OnwardError(f"{type(estimator).__name__} is not fitted: call fit before it is converted") from error


def expected_of(estimator: Any, given: Any, methods: Sequence[str]) -> Outputs:
    """What scikit-learn returns, in the precision of what it is given."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return rounded(responses(estimator, given, methods), feeds(given))
    except Exception as error:
        raise InvalidDataError(f"{type(estimator).__name__} does not take the sample: {error}") from error


def _written(estimator: Any, inputs: dict[str, Any], is_table: bool, expected: Outputs, opset: int, name: str) -> Model:
    graph = ir.Graph([], [], nodes=[], opset_imports={"": opset, ML: ML_OPSET}, name=name)
    op = Writer(ir.Model(graph, ir_version=10, producer_name="onward"))
    tensors: dict[str, Tensor] = {}
    for label, array in inputs.items():
        dtype = ir.DataType.STRING if array.dtype.kind == "O" else ir.DataType.from_numpy(array.dtype)
        value = ir.Value(name=op.names.value(label), type=ir.TensorType(dtype))
        value.shape = ir.Shape(["batch", *array.shape[1:]])
        graph.inputs.append(value)
        tensors[label] = op.tensor(value)
    data: Data = Table(tensors) if is_table else tensors["X"]
    found = op.outputs(estimator, data)
    for label, array in expected.items():
        if label not in found:
            raise UnsupportedError(f"{type(estimator).__name__}.{label}: there is no rule for it")
        result = found[label]
        if result.dtype != ir.DataType.STRING and array.dtype.kind != "O":
            result = result.cast(ir.DataType.from_numpy(np.asarray(array).dtype))
        output = op.Identity(result)
        output.value.name = op.names.value(label)
        graph.outputs.append(output.value)
    model = Model(op.model)
    passes.RemoveUnusedNodesPass()(op.model)
    passes.RemoveUnusedOpsetsPass()(op.model)
    make_runnable(op.model)
    return model


def differing(model: Model, estimator: Any, given: Any, methods: Sequence[str], expected: Outputs) -> list[str]:
    """In what the outputs on some rows differ from what scikit-learn returned for them.

    Where they do, they may still be as near as scikit-learn is to itself on rows that are off by rounding.
    """
    rounded_off = in_float32 if _has_float32(model) else dict[str, Any]
    found, wanted = rounded_off(prepare(model, "")(feeds(given))), rounded_off(expected)
    if not differences(compare(wanted, found)):
        return []
    noise = measure(wanted, rounded_off(expected_of(estimator, _jittered(given), methods)))
    return differences(compare(wanted, found, noise))


EXACT = {"Cast", "Identity", "TfIdfVectorizer"}
"""Ops whose results in float32 are exact: the last counts words."""


def _has_float32(model: Model) -> bool:
    """Whether a part is computed in float32, as by XGBoost: results are no nearer then, whatever dtype they have."""
    nodes = (node for node in model.ir.graph if node.op_type not in EXACT)
    return any(value.dtype == ir.DataType.FLOAT for node in nodes for value in node.outputs)


def _jittered(given: Any) -> Any:
    """The same rows, each number moved to one beside it."""
    if is_frame(given):
        floats = [name for name in given.columns if getattr(given[name].dtype, "kind", "") == "f"]
        return given.assign(**{name: np.nextafter(given[name], np.inf) for name in floats})
    return np.nextafter(given, np.inf, dtype=given.dtype) if given.dtype.kind == "f" else given
