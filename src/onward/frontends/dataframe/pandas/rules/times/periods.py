"""Periods of times, as far as their text, their start and their parts: .dt.to_period("M")."""

from __future__ import annotations

from typing import Any

from onward.formats.dataframe.types import INT64
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, Trace, rule
from onward.frontends.dataframe.pandas.proxies import Traced, asked, wrapped
from onward.frontends.dataframe.pandas.rules.times.common import moved, ticks_of, to_unit
from onward.frontends.dataframe.pandas.rules.times.rounding import text_of
from onward.frontends.dataframe.tensors.time import time_round
from onward.frontends.dataframe.tensors.time.calendar import Civil, look_up
from onward.frontends.dataframe.tensors.time.clock import Clock, at, per_second
from onward.frontends.dataframe.tensors.time.time_offset import end_of_period


class Periods(Traced):
    """A column of periods: ONNX has no data for them, but for their text and where they start."""

    __slots__ = ("column", "freq")
    kind = "Periods"

    def __init__(self, trace: Trace, real: Any, column: Column, freq: str) -> None:
        super().__init__(trace, real)
        self.column = column
        self.freq = freq

    @property
    def dt(self) -> PeriodParts:
        return PeriodParts(self)

    def _compared(self, name: str, other: Any) -> Any:
        if isinstance(other, Periods) and other.freq == self.freq:
            return getattr(self.dt.to_timestamp(), name)(other.dt.to_timestamp())
        self._refuse("periods are compared with periods of the same length only: compare .dt.to_timestamp()")
        raise AssertionError

    def __eq__(self, other: object) -> Any:
        return self._compared("__eq__", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("__ne__", other)

    def __lt__(self, other: Any) -> Any:
        return self._compared("__lt__", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("__le__", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("__gt__", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("__ge__", other)

    def _arithmetic(self, other: Any) -> Any:
        self._refuse("periods have no arithmetic in ONNX: compute with .dt.year * 12 + .dt.month of the times")

    __add__ = __radd__ = __sub__ = __rsub__ = _arithmetic
    __hash__ = None


class PeriodParts(Traced):
    """`.dt` of a column of periods."""

    __slots__ = ("owner",)
    kind = "Periods.dt"

    def __init__(self, owner: Periods) -> None:
        super().__init__(owner.trace, owner.real.dt)
        self.owner = owner

    def _ask(self, full: str, run: Any, /, *args: Any, **kwargs: Any) -> Any:
        call, result = asked(self.trace, full, run, self.owner, *args, **kwargs)
        return wrapped(call, result)


_TEXTS = {"M": "%Y-%m", "Y": "%Y", "D": "%Y-%m-%d"}
_STARTS = {"M": "month_start", "Q": "quarter_start", "Y": "year_start"}


@rule("Series.dt.to_period")
def to_period(call: Call, x: Any, freq: Any = None) -> Periods:
    column = ticks_of(call, x, "datetime")
    name = str(call.real.dtype).removeprefix("period[").removesuffix("]")
    short = {"M": "M", "Q-DEC": "Q", "Y-DEC": "Y", "D": "D"}.get(name)
    if short is None:
        raise call.refuse(f"periods of {name} cannot be converted: use M, Q, Y or D, or .dt.floor")
    return Periods(call.trace, call.real, column, short)


def _period_start(call: Call, periods: Periods) -> Column:
    column = periods.column
    clock = Clock(column.value, column.type.unit)
    if periods.freq == "D":
        value = time_round.floor(column.value, 86_400 * per_second(column.type.unit))
        return moved(column, (value, time_round.fits_floor(column.value, value)))
    days = getattr(clock.date, _STARTS[periods.freq])
    return moved(column, at(days, None, clock.unit))


@rule("Periods.dt.to_timestamp", "Periods.dt.start_time")
def to_timestamp(call: Call, periods: Periods, freq: Any = None, how: str = "start") -> Column:
    if freq is not None or how.lower() not in ("s", "start"):
        raise call.refuse("it is converted for the start of the period only: use how='start' without freq")
    return to_unit(call, _period_start(call, periods), call.type.unit)


@rule("Periods.astype")
def period_astype(call: Call, periods: Periods, dtype: Any, copy: Any = None) -> Column:
    import pandas

    name = str(pandas.api.types.pandas_dtype(dtype))
    if name.startswith("datetime64"):
        return to_unit(call, _period_start(call, periods), call.type.unit)
    if dtype is not str and name not in ("str", "string", "<U0"):
        raise call.refuse("periods become text or times only: use .astype(str), or .dt.to_timestamp()")
    if periods.freq != "Q":
        return text_of(call, periods.column, _TEXTS[periods.freq])
    column = periods.column
    clock = Clock(column.value, column.type.unit)
    year = text_of(call, column, "%Y")
    return year.of(column.op.StringConcat(year.value, look_up(["", "Q1", "Q2", "Q3", "Q4"], clock.date.quarter)))


def _declare_parts() -> None:
    for name in ("year", "month", "quarter", "day", "dayofweek", "day_of_week", "weekday", "days_in_month"):

        def part(call: Call, periods: Periods, name: str = name) -> Column:
            """What is missing is -1 in pandas."""
            column = periods.column
            if name in ("day", "dayofweek", "day_of_week", "weekday") and periods.freq != "D":
                raise call.refuse("it is that of the last day of the period: ask the times themselves")
            date = Clock(column.value, column.type.unit).date
            if periods.freq in ("Q", "Y"):
                date = Civil(end_of_period(date, 0, {"Q": 3, "Y": 12}[periods.freq]))
            names = {"dayofweek": "weekday", "day_of_week": "weekday"}
            value = getattr(date, names.get(name, name))
            if column.null is not None:
                value = value.op.Where(column.null, value.op.like(-1, value), value)
            return Column(value, INT64, column.rows)

        rule(f"Periods.dt.{name}")(part)


_declare_parts()
