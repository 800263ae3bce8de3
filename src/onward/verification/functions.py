"""Is a model what a function on data frames computes? Both are given the same rows, and compared column by column."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from onward.advice.options import option
from onward.errors import InvalidDataError, InvalidModelError, OnwardError
from onward.formats.dataframe.functions import frame_for, is_function_source, read_function
from onward.formats.dataframe.schema import TableSchema, schema_of
from onward.frontends.dataframe.capture import library_of
from onward.frontends.dataframe.fitted import fitted_once
from onward.frontends.dataframe.pandas.dispatch import failed_line
from onward.gate.files import absent
from onward.model import Model, load
from onward.runners.calls import Inputs
from onward.runners.onnxruntime import prepare
from onward.verification.environment import environment
from onward.verification.frames import check_sizes, column_results
from onward.verification.results import Metrics, OutputResult, Report, SideResult, Tolerance, Trial
from onward.verification.sampled import is_estimator_source, verified_estimator
from onward.verification.sides import label


def tried(function: Callable[..., Any], sample: Any) -> Any:
    """What the function itself gives for the sample; an error names the line of the user's file."""
    try:
        return function(sample.copy() if hasattr(sample, "iloc") else sample)
    except OnwardError:
        raise
    except Exception as error:
        where = failed_line(error)
        raise InvalidDataError(
            f"{where}{': ' if where else ''}the function fails on the sample: {_problem(error, sample)}"
        ) from error


def _problem(error: Exception, sample: Any) -> str:
    columns = [str(name) for name in getattr(sample, "columns", [])]
    said = str(error.args[0]) if error.args else ""
    if isinstance(error, KeyError) and said not in columns:
        return f"it has no column {said!r}; its columns are {', '.join(columns)}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def native(frame: Any) -> Any:
    """A frame of pandas or Polars, whatever it is wrapped in."""
    if hasattr(frame, "to_native"):
        frame = frame.to_native()
    return frame.collect() if hasattr(frame, "collect") and not hasattr(frame, "iloc") else frame


def _library(frame: Any) -> Any:
    if hasattr(frame, "iloc"):
        from onward.formats.dataframe import pandas

        return pandas
    return importlib.import_module("onward.formats.dataframe.polars")


def feeds_of(model: Model, frame: Any) -> Inputs:
    """A frame as feeds of a model with data processing."""
    schema = _schema(model)
    given: Inputs = _library(native(frame)).feeds(native(frame), schema)
    taken = {value.name for value in model.ir.graph.inputs}
    return {name: array for name, array in given.items() if name in taken}


def _schema(model: Model) -> TableSchema:
    schema = schema_of(model.ir)
    if schema is None:
        raise InvalidModelError(
            f"{model.name}: it has no columns in its metadata, so it was not made of a function on data frames"
        )
    return schema


def verified_functions(source: Any, against: Iterable[Any], sample: Any, library: str | None) -> Report:
    """A function on data frames, or an estimator of scikit-learn, and ONNX models of it, on a sample."""
    if sample is not None and library is None and is_estimator_source(source):
        return verified_estimator(source, [(label(other), _model(other)) for other in against], sample)
    if not is_function_source(source):
        raise OnwardError(
            f"{option('sample')} is for functions on data frames, such as features.py:features, and estimators of"
            " scikit-learn"
        )
    if sample is None:
        raise OnwardError(f"a function is compared on rows of data: give {option('sample', 'rows.parquet')}")
    is_name = isinstance(source, str | os.PathLike)
    function = read_function(os.fspath(source)) if is_name else source
    name = os.fspath(source) if is_name else function.__name__
    frame = frame_for(function, sample, library)
    models = [(label(other), _model(other)) for other in against]
    data = os.fspath(sample) if isinstance(sample, str | os.PathLike) else "the sample"
    return verified_function(function, models, frame, name, data)


def _model(other: Any) -> Model:
    if isinstance(other, str | os.PathLike) and not Path(other).exists():
        raise InvalidModelError(absent(Path(other)))
    return load(other)


def verified_function(
    function: Callable[..., Any],
    models: Iterable[tuple[str, Model]],
    sample: Any,
    name: str,
    data: str = "the sample",
) -> Report:
    """A report on models, each with its name, of which a function on data frames is the source."""
    began = time.perf_counter()
    library = library_of(sample)
    tried(function, sample)
    parts = [(data if what == "the sample" else f"{what} of {data}", part) for what, part in check_sizes(sample)]
    once = fitted_once(function)
    expected = [(what, part, _expected(once, part)) for what, part in parts]
    known = [(what, part, found) for what, part, found in expected if found is not None]
    report = Report(name, library, environment=dict(environment()))
    report.data = [what for what, _, _ in known]
    for called, model in models:
        report.sides.append(_side(called, model, known))
    report.seconds = time.perf_counter() - began
    return report


def _expected(function: Callable[..., Any], part: Any) -> Any:
    """What the function gives; None for what it fails on."""
    try:
        return function(part.copy() if hasattr(part, "iloc") else part)
    except Exception:
        return None


def _side(called: str, model: Model, parts: list[tuple[str, Any, Any]]) -> SideResult:
    began = time.perf_counter()
    try:
        schema = _schema(model)
        if schema.boundary:
            raise InvalidModelError(
                "it has a model behind the data processing: compare the data processing alone, which"
                " `onward convert … --part data --to onnx` writes"
            )
        run = prepare(model, "")
    except OnwardError as error:
        return SideResult(called, failure=str(error))
    ready = time.perf_counter() - began
    return SideResult(called, tuple(_trial(model, schema, run, *part) for part in parts), seconds=ready)


def _trial(model: Model, schema: TableSchema, run: Any, what: str, part: Any, expected: Any) -> Trial:
    began = time.perf_counter()
    try:
        found = _library(native(part)).frame_of(run(feeds_of(model, part)), schema)
    except Exception as error:
        return Trial(what, failure=str(error), seconds=time.perf_counter() - began)
    took = time.perf_counter() - began
    return Trial(what, tuple(_outputs(expected, found)), took)


def _outputs(expected: Any, found: Any) -> Iterator[OutputResult]:
    for column in column_results(expected, found):
        share = column.wrong / column.rows if column.rows else 0.0
        yield OutputResult(
            column.name,
            "different" if column.told else "same",
            "values" if column.wrong else "shape" if column.told else "",
            column.told,
            column.dtype,
            (column.rows, 1),
            Metrics(worst=share, overall=share, mismatched=share),
            Tolerance(0.0, 0.0, why="rounding of the last digits alone"),
            None if column.row is None else (column.row, 0),
            column.expected,
            column.actual,
        )
