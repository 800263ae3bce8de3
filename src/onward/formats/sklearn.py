"""A fitted estimator of scikit-learn, in memory or in a .skops file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidModelError, UnsupportedError
from onward.formats import Kind, Opened, register, skops_schema
from onward.formats.matching import Declared
from onward.formats.sklearn_parts import check_parts
from onward.formats.tables import derived, feeds, like, shortened
from onward.gate import allow_beside, opens
from onward.gate.archive import archive, names_in
from onward.gate.files import readable
from onward.runners.calls import Inputs, Outputs

SAMPLE: ContextVar[Any] = ContextVar("sample", default=None)
"""Rows such as the estimator is given, where the user gave some."""
SCHEMA = "schema.json"

METHODS = ("predict", "predict_proba", "decision_function", "transform")
"""What is asked of estimators."""


def available(estimator: Any) -> list[str]:
    """Of these methods those that an estimator has, fitted as it is."""
    return [method for method in METHODS if hasattr(estimator, method)]


def asked(estimator: Any) -> list[str]:
    """The methods whose results a model gives, unless others are asked for.

    Predictions, and beside them probabilities or, where there are none, scores; of clusters the distances as well; of
    anything else the transformed data.
    """
    found = available(estimator)
    if "predict" not in found or hasattr(estimator, "get_support"):
        if "transform" not in found:
            raise UnsupportedError(
                f"{type(estimator).__name__} cannot be given new data: it has no predict or transform"
            )
        return ["transform"]
    from sklearn.base import is_clusterer

    clusters = is_clusterer(estimator) and "transform" in found
    scores = [method for method in ("predict_proba", "decision_function") if method in found][:1]
    return ["predict", *scores, *(["transform"] if clusters else [])]


def responses(estimator: Any, given: Any, methods: Sequence[str]) -> Outputs:
    """What methods return, by their names; of one that returns a list, `predict_proba_0` and so on."""
    found: dict[str, Any] = {}
    for method in methods:
        result = getattr(estimator, method)(given)
        if isinstance(result, list) and result and isinstance(result[0], np.ndarray):
            found |= {f"{method}_{i}": _array(part) for i, part in enumerate(result)}
        else:
            found[method] = _array(result)
    return found


def rounded(outputs: Outputs, inputs: Inputs) -> Outputs:
    """In float32 where a model is given its numbers in float32: whatever scikit-learn returns, it is no nearer."""
    floats = {np.asarray(array).dtype for array in inputs.values() if np.asarray(array).dtype.kind == "f"}
    return in_float32(outputs) if floats == {np.dtype(np.float32)} else outputs


def in_float32(outputs: Outputs) -> dict[str, Any]:
    return {name: a.astype(np.float32) if a.dtype == np.float64 else a for name, a in outputs.items()}


def _array(result: Any) -> Any:
    if hasattr(result, "toarray"):
        result = result.toarray()
    array = np.asarray(result)
    if array.dtype.kind in "UT" or (array.dtype.kind == "O" and all(isinstance(i, str) for i in array.reshape(-1))):
        return array.astype(str).astype(object)
    return np.asarray(array.tolist()) if array.dtype.kind == "O" else array


def recognise(path: Path) -> bool:
    return SCHEMA in names_in(path)


def dangers(path: Path) -> Iterable[str]:
    with archive(path) as found, readable(path, "skops does not open it"):
        yield from skops_schema.dangers(json.loads(found.read(SCHEMA)))


@opens(dangers)
def loaded(path: Path) -> Any:
    """The estimator of a .skops file."""
    if not recognise(path):
        raise InvalidModelError(f"{path}: this is not a .skops file")
    from skops.io import get_untrusted_types, load

    allow_beside(path)
    with readable(path, "skops does not open it"):
        found = load(path, trusted=get_untrusted_types(file=path))
        check_parts(found)
        return found


@opens(dangers)
def open_skops(path: Path) -> Opened:
    return open_estimator(loaded(path), ())


def open_estimator(estimator: Any, declared: Sequence[Declared]) -> Opened:
    """It takes rows such as `SAMPLE` holds, or of whatever types it is given."""
    methods, sample = asked(estimator), SAMPLE.get()
    example = shortened(derived(estimator) if sample is None else sample)
    inputs = feeds(example)

    def run(given: Inputs) -> Outputs:
        return rounded(responses(estimator, like(example, given, exactly=sample is not None), methods), given)

    dtypes = {name: None if sample is None else _dtype(array) for name, array in inputs.items()}
    return Opened(run, [Declared(name, dtypes[name], (None, *inputs[name].shape[1:])) for name in inputs])


def _dtype(array: Any) -> ir.DataType:
    return ir.DataType.STRING if array.dtype.kind == "O" else ir.DataType.from_numpy(array.dtype)


register(
    Kind(
        "scikit-learn estimator",
        ("sklearn",),
        recognise,
        open_skops,
        f"a zip with {SCHEMA}, as skops writes it",
        {"sklearn.base.BaseEstimator": open_estimator},
        ("skops",),
    )
)
