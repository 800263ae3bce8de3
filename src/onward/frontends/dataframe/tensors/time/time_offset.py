"""Dates moved by months, by ends and starts of months, quarters and years, and by business days.

A number of steps is a constant, or a tensor (N, 1) where it says so. Dates are days since 1970; `clock.same_time` puts
the time of day back. Weekdays count from Monday, 0.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.integers import remainder_by
from onward.frontends.dataframe.tensors.time.calendar import Civil, look_up, start_of_month
from onward.graph.build import Tensor

EPOCH_MONTH = 1970 * 12
MOST_MONTHS = 12 * 10**9
"""More months than any unit but seconds reaches."""
WORKING_DAYS = 5


def add_months(date: Civil, months: Tensor | int) -> Tensor:
    """The same day so many months later, or the last day of a shorter month: 34 nodes with those of the date.

    `DateOffset(months=n)` of pandas (a year is 12 months) and `1mo`, `1q` and `1y` of Polars. Beyond `MOST_MONTHS`
    months the result means nothing.
    """
    if isinstance(months, Tensor):
        number = date.month_number + months.cast(ir.DataType.INT64)
    else:
        number = date.month_number + _checked(months)
    last = start_of_month(number + 1) - 1
    same = start_of_month(number) + date.by_date(lambda _, day: day - 1)
    return date.op.Where(same < last, same, last)


def _checked(steps: int) -> int:
    if abs(steps) > MOST_MONTHS:
        raise UnsupportedError(f"a date cannot be moved by {steps} months: give at most {MOST_MONTHS}")
    return steps


def end_of_period(date: Civil, steps: int = 0, months: int = 1, last_month: int = 12) -> Tensor:
    """The end of a period of 1, 3 or 12 months, of which one ends in `last_month`, so many steps away.

    `MonthEnd(n)`, `QuarterEnd(n, startingMonth=last_month)` and `YearEnd(n, month=last_month)` of pandas: with 0 steps
    a date goes to the end of its own period; with more, an end goes to the next one and others to their own first.
    """
    op = date.op
    number = date.month_number
    # The month after the period that the date is in.
    following = number + 1 if months == 1 else number - remainder_by(number - last_month, months) + months
    first = start_of_month(following)
    if steps > 0:
        at_end = op.Equal(date.days, first - 1).cast(ir.DataType.INT64)
        following = following + (at_end * months + _checked((steps - 1) * months))
    elif steps < 0:
        following = following + _checked(steps * months)
    else:
        return first - 1
    return start_of_month(following) - 1


def start_of_period(date: Civil, steps: int = 0, months: int = 1, first_month: int = 1) -> Tensor:
    """The start of a period of 1, 3 or 12 months, of which one starts in `first_month`, so many steps away.

    `MonthBegin(n)`, `QuarterBegin(n, startingMonth=first_month)` and `YearBegin(n, month=first_month)` of pandas: with
    0 steps a date that is no start goes to the next one.
    """
    op = date.op
    number = date.month_number
    first = number - remainder_by(number - (first_month - 1), months) if months > 1 else number
    if steps > 0:
        return start_of_month(first + _checked(steps * months))
    inside = op.Not(op.Equal(date.days, start_of_month(first))).cast(ir.DataType.INT64)
    return start_of_month(first + (inside * months + _checked(steps * months)))


def truncate_to_months(date: Civil, months: int) -> Tensor:
    """The first day of a period of so many months, counted from January 1970: Polars' `truncate("5mo")`."""
    if months < 1:
        raise UnsupportedError(f"a date cannot be cut down to {months} months: give at least 1")
    simple = {1: "month_start", 3: "quarter_start", 12: "year_start"}
    if months in simple:
        return getattr(date, simple[months])  # type: ignore[no-any-return]
    number = date.month_number
    return start_of_month(number - remainder_by(number - EPOCH_MONTH, months))


def add_business_days(date: Civil, steps: int) -> Tensor:
    """The business day so many business days later, without holidays: 2 nodes beside the weekday.

    A day that is none first goes back if steps are positive, else forward, as `BusinessDay(n)` of pandas has it.
    """
    _checked(steps)
    moves = []
    for weekday in range(7):
        day = weekday if weekday < WORKING_DAYS else WORKING_DAYS - 1 if steps > 0 else 7
        weeks, rest = divmod(day % 7 + steps, WORKING_DAYS)
        moves.append(day - day % 7 + weeks * 7 + rest - weekday)
    return date.days + look_up(moves, date.weekday)
