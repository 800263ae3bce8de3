"""Estimators of scikit-learn, in files or in memory, and ONNX models of them, on rows of a sample."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onward.errors import OnwardError
from onward.formats import kind_of, kind_of_object
from onward.formats.pickled import unpickled
from onward.formats.sklearn import asked, loaded
from onward.formats.sklearn_parts import has_function
from onward.formats.tables import given_to, read_table
from onward.frontends.sklearn.convert import expected_of
from onward.model import Model
from onward.runners.calls import Outputs
from onward.runners.onnxruntime import prepare
from onward.verification.compare import compare
from onward.verification.environment import environment
from onward.verification.estimators import fed
from onward.verification.results import Report, SideResult, Trial
from onward.verification.sides import label

KIND = "scikit-learn estimator"


def is_estimator_source(model: Any) -> bool:
    """Whether it is an estimator, or a file that may hold one."""
    if isinstance(model, str | os.PathLike):
        kind = kind_of(Path(model)) if Path(model).exists() else None
        return kind is not None and kind.name in (KIND, "pickle")
    kind = kind_of_object(model)
    return kind is not None and kind.name == KIND


def verified_estimator(source: Any, models: Iterable[tuple[str, Model]], sample: Any) -> Report:
    """A report on models, each with its name, of which an estimator is the source."""
    began = time.perf_counter()
    estimator = _opened(Path(source)) if isinstance(source, str | os.PathLike) else source
    is_file = isinstance(sample, str | os.PathLike)
    rows = read_table(Path(sample)) if is_file else sample
    rows = given_to(estimator, rows, as_frame=has_function(estimator))
    expected = expected_of(estimator, rows, asked(estimator))
    data = os.fspath(sample) if is_file else "the sample"
    report = Report(label(source), "scikit-learn", data=[data], environment=dict(environment()))
    report.sides += [_side(name, model, rows, expected, data) for name, model in models]
    report.seconds = time.perf_counter() - began
    return report


def _opened(path: Path) -> Any:
    kind = kind_of(path)
    found = unpickled(path) if kind is not None and kind.name == "pickle" else loaded(path)
    if not is_estimator_source(found):
        raise OnwardError(f"{path}: it holds no estimator of scikit-learn, and a sample is for these")
    return found


def _side(name: str, model: Model, rows: Any, expected: Outputs, data: str) -> SideResult:
    began = time.perf_counter()
    try:
        found = prepare(model, "")(fed(model, rows))
    except Exception as error:  # ONNX Runtime raises whatever a model or its feeds lead it to
        return SideResult(name, (Trial(data, failure=str(error), seconds=time.perf_counter() - began),))
    return SideResult(name, (Trial(data, tuple(compare(expected, found)), time.perf_counter() - began),))
