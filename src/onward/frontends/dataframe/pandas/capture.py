"""A function on a frame of pandas as a model: the function runs once, on proxies."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import onward.frontends.dataframe.pandas.operators  # noqa: F401 - what comes next has operators
from onward.errors import ConversionError, InvalidDataError, OnwardError, UnsupportedError
from onward.formats.dataframe.pandas import may_be_null, type_of
from onward.frontends.dataframe.columns.column import ONE, Column
from onward.frontends.dataframe.columns.table import Field, Table
from onward.frontends.dataframe.fitted import fitting
from onward.frontends.dataframe.pandas.dispatch import Trace, TracedError, failed_line, is_own
from onward.frontends.dataframe.pandas.patch import patched
from onward.frontends.dataframe.pandas.proxies import Deferred, Frame, Scalar, Series
from onward.frontends.dataframe.pandas.values import widened
from onward.hub.wording import quote
from onward.model import Model
from onward.registry import import_files


def captured(
    function: Callable[[Any], Any],
    sample: Any,
    opset: int,
    freeze: Sequence[str] = (),
    never_null: Sequence[str] = (),
) -> Model:
    """The model of a function. `sample` is a frame whose columns and dtypes the function is made for.

    The function is followed twice: what is not the same both times would be frozen without a word.
    """
    import_files("onward.frontends.dataframe.pandas.rules")
    real = sample.reset_index(drop=True)
    table = _followed(function, real, opset, freeze, never_null)
    again = _followed(function, real, opset, freeze, never_null)
    is_same = table.written() == again.written()
    model = table.simplified()
    if not is_same and _text(model) != _text(again.simplified()):  # What differs may be used by nothing.
        raise UnsupportedError(
            "the function is not the same each time: it draws random numbers, asks for the time, or changes what it "
            "uses. Do that outside, and pass the result as a column"
        )
    return model


def _text(model: Model) -> bytes:
    return bytes(model.to_proto().SerializeToString(deterministic=True))


def _followed(
    function: Callable[[Any], Any], real: Any, opset: int, freeze: Sequence[str], never_null: Sequence[str]
) -> Table:
    """What a function asks of the table, with its result as the outputs."""
    trace, frame = started(real, opset, freeze, never_null)
    with patched(trace, function), fitting(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TracedError.seen.clear()
        try:
            result = function(frame)
            if TracedError.seen:  # The function caught what it cannot be followed in, and went on otherwise.
                raise TracedError.seen[0]
        except OnwardError:
            raise
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            where = failed_line(error)
            if is_own(error):
                raise ConversionError(f"{where}: a defect of Onward: {told}") from error
            raise UnsupportedError(f"{where}: {told}" if where else told) from error
    if unused := sorted(trace.freeze - trace.frozen):
        raise OnwardError(f"freeze names {quote(unused[0])}, which the function does not compute")
    _give(trace, result)
    return trace.table


def started(real: Any, opset: int, freeze: Sequence[str] = (), never_null: Sequence[str] = ()) -> tuple[Trace, Frame]:
    """The frame that the function is given, and what follows it."""
    names = [str(name) for name in real.columns]
    if len(set(names)) < len(names):
        raise InvalidDataError("two columns of the sample have one name")
    types: dict[str, Any] = {}
    problems: dict[str, UnsupportedError] = {}
    for name, own in zip(names, real.columns, strict=True):
        try:
            may_be = may_be_null(real[own]) and name not in never_null
            types[name] = Field(name, type_of(real[own]), may_be, _own(real[own]))
        except UnsupportedError as error:
            problems[name] = error
    table = Table(list(types.values()), "pandas", opset)
    trace = Trace(table, frozenset(freeze))

    def reader(name: str) -> Callable[[], Column]:
        def read() -> Column:
            if name in problems:
                raise problems[name]
            return table.column(name)

        return read

    columns = {own: Deferred(reader(name)) for name, own in zip(names, real.columns, strict=True)}
    return trace, Frame(trace, real, columns, table.rows)


def _own(series: Any) -> str:
    return str(series.dtype)


def _give(trace: Trace, result: Any) -> None:
    """What a function returned is what the table gives."""
    if isinstance(result, Scalar):
        raise UnsupportedError("the function returns a single number: return a column or a frame")
    if isinstance(result, Series):
        name = "result" if result.name is None else str(result.name)
        parts = [*trace.labels.get(result.column.rows, []), (name, result.column)]
        owns = {name: _own(result.real)}
        return trace.table.give(_named(parts, owns), is_series=len(parts) == 1)
    if not isinstance(result, Frame):
        raise UnsupportedError(
            f"the function returns {_article(result)}: return a column or a frame that is made of the frame it is given"
        )
    parts = list(trace.labels.get(result.rows, []))
    parts += [(str(name), result.column(name)) for name in result.columns_by_name]
    trace.table.give(_named(parts, {str(name): _own(result.real[name]) for name in result.columns_by_name}))


def _named(parts: list[tuple[Any, Column]], owns: dict[str, str]) -> list[tuple[str, Column, str]]:
    rows = next((column.rows for _, column in parts if column.rows is not ONE), None)
    if rows is None:
        raise UnsupportedError("the result has no rows that come from the frame")
    return [(str(name), widened(column), owns.get(str(name), "")) for name, column in parts]


def _article(result: Any) -> str:
    return "nothing" if result is None else f"a {type(result).__name__}"
