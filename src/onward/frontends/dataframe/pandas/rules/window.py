"""Windows over rows: rolling, expanding, ewm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onward.formats.dataframe.types import FLOAT64
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, Trace, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Series, Traced, asked, framed, wrapped
from onward.frontends.dataframe.tensors.rows import window
from onward.frontends.dataframe.tensors.rows.keys import Groups

STATISTICS = ("sum", "mean", "min", "max", "std", "var", "median", "count")


class Window(Traced):
    """Columns of which each row is asked for a statistic of the rows around it."""

    __slots__ = ("column_rule", "columns", "is_series")
    kind = "Window"

    def __init__(
        self, trace: Trace, real: Any, columns: dict[Any, Column], is_series: bool, column_rule: Callable[..., Column]
    ) -> None:
        super().__init__(trace, real)
        self.columns = columns
        self.is_series = is_series
        self.column_rule = column_rule

    def __getitem__(self, key: Any) -> Window:
        names = key if isinstance(key, list) else [key]
        chosen = {name: self.columns[name] for name in names}
        return Window(self.trace, self.real[key], chosen, not isinstance(key, list), self.column_rule)

    def agg(self, func: Any) -> Any:
        if not isinstance(func, str):
            call, result = asked(self.trace, "Window.agg", lambda: None, self, func)
            return wrapped(call, result)
        return getattr(self, func)()


def _declare() -> None:
    for name in STATISTICS:

        def statistic(call: Call, x: Window, name: str = name, **options: Any) -> Any:
            if set(options) - {"ddof", "numeric_only"}:
                raise call.refuse(f"{sorted(options)[0]} cannot be converted")
            made = {
                label: x.column_rule(call, column, name, options.get("ddof", 1)) for label, column in x.columns.items()
            }
            return next(iter(made.values())) if x.is_series else framed(call.trace, made, call.real)

        rule(f"Window.{name}")(statistic)


_declare()


def _columns(x: Any) -> dict[Any, Column]:
    return {name: x.column(name) for name in x} if isinstance(x, Frame) else {x.name: x.column}


@rule("Series.rolling", "DataFrame.rolling")
def rolling(
    call: Call, x: Any, window: Any, min_periods: Any = None, center: bool = False, win_type: Any = None, **options: Any
) -> Window:
    groups = call.trace.groups_of(x.column) if isinstance(x, Series) else None
    real = x.real.rolling(window, min_periods=min_periods, center=center)
    return Window(
        call.trace,
        real,
        _columns(x),
        isinstance(x, Series),
        roller(call, window, min_periods, center, win_type, options, groups),
    )


def roller(
    call: Call, size: Any, min_periods: Any, center: bool, win_type: Any, options: dict[str, Any], within: Groups | None
) -> Callable[..., Column]:
    if not isinstance(size, int) or win_type is not None or any(value is not None for value in options.values()):
        raise call.refuse("windows of a fixed number of rows with equal weights are converted, and no others")

    def column_rule(call: Call, column: Column, name: Any, ddof: int) -> Column:
        least = min_periods if min_periods is not None else size
        column, valid = counted(call, column)
        if name == "count":  # Whether there are enough is asked of all rows; infinite ones count.
            column = present_or_not(column)
            value, enough = window.rolling(column.value, "sum", size, least, None, center, within, ddof)
        else:
            value, enough = window.rolling(column.value, name, size, least, valid, center, within, ddof)
        return Column(value, FLOAT64, column.rows).with_null(column.op.Not(enough))

    return column_rule


def counted(call: Call, column: Column) -> tuple[Column, Any]:
    """A column of numbers, and which rows count: in windows of pandas, infinite ones do not."""
    if not (column.type.is_number or column.type.is_bool) or column.type.masked:
        raise call.refuse(f"windows are for numbers, not for {column.type}")
    column = column.expanded()
    if not column.type.is_float:
        return column, None
    op = column.op
    return column, op.Not(op.Or(op.IsNaN(column.value), op.IsInf(column.value)))


def present_or_not(column: Column) -> Column:
    """1 where it is there, else 0."""
    missing = column.missing()
    one = column.op.constant(np.asarray([[1.0]]))
    value = one if missing is None else column.op.Not(missing).cast(FLOAT64.dtype)
    return Column(value, FLOAT64, column.rows).expanded()


@rule("Series.expanding", "DataFrame.expanding")
def expanding(call: Call, x: Any, min_periods: int = 1, method: str = "single") -> Window:
    within = call.trace.groups_of(x.column) if isinstance(x, Series) else None
    return Window(
        call.trace, x.real.expanding(min_periods), _columns(x), isinstance(x, Series), expander(min_periods, within)
    )


def expander(min_periods: int, within: Groups | None) -> Callable[..., Column]:
    def column_rule(call: Call, column: Column, name: Any, ddof: int) -> Column:
        column, valid = counted(call, column)
        if name == "count":
            column = present_or_not(column)
            value, enough = window.expanding(column.value, "sum", min_periods, None, within, ddof)
        else:
            value, enough = window.expanding(column.value, name, min_periods, valid, within, ddof)
        return Column(value, FLOAT64, column.rows).with_null(column.op.Not(enough))

    return column_rule


@rule("Series.ewm", "DataFrame.ewm")
def ewm(
    call: Call,
    x: Any,
    com: float | None = None,
    span: float | None = None,
    halflife: Any = None,
    alpha: float | None = None,
    min_periods: int = 0,
    adjust: bool = True,
    ignore_na: bool = False,
) -> Window:
    if not (halflife is None or isinstance(halflife, int | float)):
        raise call.refuse("a half-life in time cannot be converted: give a number of rows")
    if isinstance(x, Series) and call.trace.groups_of(x.column) is not None:
        raise call.refuse("within groups it cannot be converted: use rolling")
    share = _share(com, span, halflife, alpha)
    real = x.real.ewm(alpha=share, min_periods=min_periods, adjust=adjust, ignore_na=ignore_na)

    def column_rule(call: Call, column: Column, name: Any, ddof: int) -> Column:
        if name != "mean":
            raise call.refuse("of exponential weights the mean is converted, and nothing else")
        column = column.expanded()
        valid = column.op.Not(column.op.IsNaN(column.value)) if column.type.is_float else None
        value, enough = window.exponential_mean(column.value, share, max(min_periods, 1), valid, adjust, ignore_na)
        return Column(value, FLOAT64, column.rows).with_null(column.op.Not(enough))

    return Window(call.trace, real, _columns(x), isinstance(x, Series), column_rule)


def _share(com: float | None, span: float | None, halflife: float | None, alpha: float | None) -> float:
    """The weight of the newest row."""
    if alpha is not None:
        return float(alpha)
    if com is not None:
        return 1.0 / (1.0 + com)
    if span is not None:
        return 2.0 / (span + 1.0)
    assert halflife is not None
    return 1.0 - math.exp(-math.log(2.0) / halflife)
