"""Dates and times as text: the directives of `strftime`, looked up in constant tables and joined.

Literal text is part of the tables, and what depends on the same number is one table, so that `%Y-%m-%d` of nanoseconds
is two lookups and one StringConcat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.integers import floor_by, remainder_by
from onward.frontends.dataframe.tensors.time.calendar import (
    DATES,
    DAY_NAMES,
    MONTH_NAMES,
    Civil,
    calendar_month,
    day_of_year,
    look_up,
)
from onward.frontends.dataframe.tensors.time.clock import Clock
from onward.graph.build import Tensor

FIRST_NS, LAST_NS = 1677, 2262
"""The years that nanoseconds reach."""
ALIASES = {"%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y", "%h": "%b"}
TWO_DIGITS = tuple(f"{number:02}" for number in range(100))
THREE_DIGITS = tuple(f"{number:03}" for number in range(1000))


@dataclass(frozen=True)
class Piece:
    """Text: that of a table at an index, or always the same where there is no index."""

    table: tuple[str, ...]
    index: Tensor | None = None

    def joined(self, other: Piece) -> Piece | None:
        """Both as one, if one table can say it."""
        if self.index is None:
            return Piece(tuple(self.table[0] + text for text in other.table), other.index)
        if other.index is None:
            return Piece(tuple(text + other.table[0] for text in self.table), self.index)
        if self.index.value is other.index.value and len(self.table) == len(other.table):
            return Piece(tuple(a + b for a, b in zip(self.table, other.table, strict=True)), self.index)
        return None

    @property
    def tensor(self) -> Tensor:
        assert self.index is not None
        return look_up(self.table, self.index)


def by_date(date: Civil, texts: Sequence[str]) -> Piece:
    return Piece(tuple(2 * list(texts)), date.date_place)


def year_pieces(year: Tensor, unit: str) -> list[Piece]:
    """Four digits."""
    if unit == "ns":
        return [Piece(tuple(str(number) for number in range(FIRST_NS, LAST_NS + 1)), year - FIRST_NS)]
    centuries = remainder_by(floor_by(year, 100), 100)
    return [Piece(TWO_DIGITS, centuries), Piece(TWO_DIGITS, remainder_by(year, 100))]


def digits(number: Tensor, count: int) -> list[Piece]:
    """A number that is not negative, in 3, 6 or 9 digits."""
    pieces = []
    for place in range(count - 3, -1, -3):
        index = number / 10**place if place else number
        pieces.append(Piece(THREE_DIGITS, index if place == count - 3 else remainder_by(index, 1000)))
    return pieces


FRACTIONS = {3: "millisecond", 6: "microsecond", 9: "nanosecond"}


def fraction(clock: Clock, count: int) -> list[Piece]:
    return digits(getattr(clock, FRACTIONS[count]), count)


def date_pieces(directive: str, date: Civil, unit: str) -> list[Piece] | None:
    months = [calendar_month(march) for march, _ in DATES]
    match directive:
        case "%Y":
            return year_pieces(date.year, unit)
        case "%G":
            # The ISO year of nanoseconds is within their years: their first and last day are not at an end of one.
            return year_pieces(date.iso_year, unit)
        case "%y":
            return [Piece(TWO_DIGITS, remainder_by(date.year, 100))]
        case "%m":
            return [by_date(date, [f"{month:02}" for month in months])]
        case "%B":
            return [by_date(date, [MONTH_NAMES[month - 1] for month in months])]
        case "%b":
            return [by_date(date, [MONTH_NAMES[month - 1][:3] for month in months])]
        case "%d":
            return [by_date(date, [f"{day:02}" for _, day in DATES])]
        case "%e":
            return [by_date(date, [f"{day:2}" for _, day in DATES])]
        case "%j":
            table = [f"{day_of_year(march, day, leap):03}" for leap in (False, True) for march, day in DATES]
            return [Piece(tuple(table), date.date_place)]
        case "%A":
            return [Piece(DAY_NAMES, date.weekday)]
        case "%a":
            return [Piece(tuple(name[:3] for name in DAY_NAMES), date.weekday)]
        case "%u":
            return [Piece(tuple("1234567"), date.weekday)]
        case "%w":
            return [Piece(tuple("1234560"), date.weekday)]
        case "%V":
            return [Piece(TWO_DIGITS, date.iso_week)]
    return None


def time_pieces(directive: str, clock: Clock, library: str) -> list[Piece] | None:
    match directive:
        case "%H":
            return [Piece(TWO_DIGITS[:24], clock.hour)]
        case "%I":
            return [Piece(tuple(f"{(hour + 11) % 12 + 1:02}" for hour in range(24)), clock.hour)]
        case "%p":
            return [Piece(("AM",) * 12 + ("PM",) * 12, clock.hour)]
        case "%M":
            return [Piece(TWO_DIGITS[:60], clock.minute)]
        case "%S":
            return [Piece(TWO_DIGITS[:60], clock.second)]
        case "%f":
            return fraction(clock, 6 if library == "pandas" else 9)
        case "%3f" | "%6f" | "%9f" if library == "polars":
            return fraction(clock, int(directive[1]))
        case "%.3f" | "%.6f" | "%.9f" if library == "polars":
            return [Piece((".",)), *fraction(clock, int(directive[2]))]
    return None


def directives(format: str) -> list[str]:
    """A format in parts: directives, which start with %, and the text between them."""
    parts, position = [], 0
    while position < len(format):
        end = position + 1
        if format[position] == "%":
            while end < len(format) and format[end] in ".369":
                end += 1
            end += 1
            if end > len(format):
                raise UnsupportedError(f"the format {format!r} ends within a directive: write %% for a percent sign")
        else:
            while end < len(format) and format[end] != "%":
                end += 1
        parts.append(format[position:end])
        position = end
    return parts


def strftime(moment: Clock | Civil, format: str, library: str = "pandas") -> Tensor:
    """The text of times, or of dates, in a format; years are right where `has_plain_year` says so. No value fails.

    `library` is pandas or polars: `%f` is microseconds in one and nanoseconds in the other.
    """
    date, unit = (moment.date, moment.unit) if isinstance(moment, Clock) else (moment, "D")
    found: list[Piece] = []
    for alias, meaning in ALIASES.items():
        format = format.replace("%%", "%\0").replace(alias, meaning).replace("%\0", "%%")
    if library == "polars" or unit == "ns":
        format = format.replace("%%", "%\0").replace("%F", "%Y-%m-%d").replace("%\0", "%%")
    for part in directives(format):
        pieces: list[Piece] | None = None
        if part == "%%" or not part.startswith("%"):
            pieces = [Piece(("%" if part == "%%" else part,))]
        else:
            pieces = date_pieces(part, date, unit)
            if pieces is None and isinstance(moment, Clock):
                pieces = time_pieces(part, moment, library)
        if pieces is None:
            raise UnsupportedError(f"the directive {part} of the format {format!r} is not supported: use others")
        for piece in pieces:
            joined = found[-1].joined(piece) if found else None
            if joined is None:
                found.append(piece)
            else:
                found[-1] = joined
    op = date.op
    if not found or found[0].index is None:
        return look_up([found[0].table[0] if found else ""], date.days * 0)
    text = found[0].tensor
    for piece in found[1:]:
        text = op.StringConcat(text, piece.tensor)
    return text


def has_plain_year(date: Civil, library: str = "pandas") -> Tensor:
    """Where a year is written in four digits: 3 nodes beside the year.

    Polars fills years below 1000 with zeros. pandas leaves that to the system in formats that it does not know itself.
    """
    return date.op.And(date.year >= (0 if library == "polars" else 1000), date.year <= 9999)


def date_text(date: Civil) -> Tensor:
    """`2024-01-05`: what casting a date to text gives."""
    return strftime(date, "%Y-%m-%d", "polars")


def iso_text(clock: Clock, separator: str = "T", digits: int | None = None) -> Tensor:
    """`2024-01-05T12:34:56`, with so many digits of a second (0, 3, 6, 9), or all that the unit has."""
    count = {"s": 0, "ms": 3, "us": 6, "ns": 9}[clock.unit] if digits is None else digits
    if count not in (0, 3, 6, 9):
        raise UnsupportedError(f"a time with {count} digits of a second is not written: use 0, 3, 6 or 9")
    separator = separator.replace("%", "%%")
    return strftime(clock, f"%Y-%m-%d{separator}%H:%M:%S" + (f"%.{count}f" if count else ""), "polars")
