"""Text to dates and times, in a fixed format or as ISO 8601 has it.

A regular expression says which rows are read. The others are replaced by a text that can be read before anything is cut
or cast, so that no row can fail. Libraries read more than is plain: signs, spaces, digits of other scripts, `now`,
second 60, seven digits for `%Y%m%d`. Such rows are not valid here, and `unclear` says which they may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.integers import remainder_by
from onward.frontends.dataframe.tensors.time.calendar import MONTH_NAMES, days_from_date
from onward.frontends.dataframe.tensors.time.clock import at, per_second
from onward.frontends.dataframe.tensors.time.time_format import directives
from onward.graph.build import Tensor


@dataclass(frozen=True)
class Parsed:
    """`days` since 1970 and `time` of the day in ticks (None: midnight everywhere), where `valid`.

    `unclear` rows are not valid, but a library may read them, or raises for them in its own way.
    """

    days: Tensor
    time: Tensor | None
    valid: Tensor
    unclear: Tensor

    def ticks(self, unit: str) -> tuple[Tensor, Tensor]:
        """As ticks of the unit that the time was parsed in, and a mask of where they are valid and fit int64."""
        ticks, fits = at(self.days, self.time, unit)
        return ticks, ticks.op.And(fits, self.valid)


ABBREVIATIONS = tuple(name[:3] for name in MONTH_NAMES)
PATTERNS = {
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    "%m": "(?:0[1-9]|1[0-2])",
    "%d": "(?:0[1-9]|[12][0-9]|3[01])",
    "%H": "(?:[01][0-9]|2[0-3])",
    "%I": "(?:0[1-9]|1[0-2])",
    "%M": "[0-5][0-9]",
    "%S": "[0-5][0-9]",
    "%j": "(?:00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6])",
    "%b": "(?i:" + "|".join(ABBREVIATIONS) + ")",
    "%B": "(?:" + "|".join(f"{name}|{name.lower()}|{name.upper()}" for name in MONTH_NAMES) + ")",
    "%p": "(?i:am|pm)",
    "%S.%f": r"[0-5][0-9]\.[0-9]{1,9}",
    "%S%.f": r"[0-5][0-9](?:\.[0-9]{1,9})?",
}
"""What is plain in two digits each; formats with separators may have one digit where `SHORT` says so."""
SHORT = {
    "%m": "(?:0?[1-9]|1[0-2])",
    "%d": "(?:0?[1-9]|[12][0-9]|3[01])",
    "%H": "(?:[01]?[0-9]|2[0-3])",
    "%I": "(?:0?[1-9]|1[0-2])",
    "%M": "[0-5]?[0-9]",
    "%S": "[0-5]?[0-9]",
}
WIDTHS = {"%Y": 4, "%y": 2, "%m": 2, "%d": 2, "%H": 2, "%I": 2, "%M": 2, "%S": 2, "%j": 3}
SAMPLES = {
    "%Y": "1970", "%y": "70", "%m": "01", "%d": "01", "%H": "00", "%I": "12", "%M": "00", "%S": "00", "%j": "001",
    "%b": "Jan", "%B": "January", "%p": "AM", "%S.%f": "00.0", "%S%.f": "00.0",
}  # fmt: skip
"""What stands in for rows that are not read."""
ALIASES = {"%T": "%H:%M:%S", "%R": "%H:%M", "%F": "%Y-%m-%d", "%D": "%m/%d/%y", "%h": "%b"}
LENIENT = r"(?i)[\s0-9+:/.,TZ_a-z-]*[0-9][\s0-9+:/.,TZ_a-z-]*|now|today|(?s:.*[^\x00-\x7F].*)"
"""What libraries may read: digits with what stands around them, words for the present, other scripts."""


@dataclass(frozen=True)
class Field:
    """Directives without anything between them, and the text before them."""

    before: str
    directives: tuple[str, ...]


def fields(format: str) -> tuple[list[Field], str]:
    """The fields of a format, and the text after the last."""
    for alias, meaning in ALIASES.items():
        format = format.replace(alias, meaning)
    if "%%" in format:
        raise UnsupportedError(f"the format {format!r} has a percent sign as text, which is not read: cut it off first")
    joined = format.replace("%S.%f", "%\0").replace("%S%.f", "%\1")
    found: list[Field] = []
    between = ""
    for part in directives(joined):
        part = {"%\0": "%S.%f", "%\1": "%S%.f"}.get(part, part)
        if not part.startswith("%"):
            between = part
            continue
        if part not in PATTERNS:
            raise UnsupportedError(f"the directive {part} of the format {format!r} is not read: use a plainer format")
        if between or not found:
            found.append(Field(between, (part,)))
        else:
            found[-1] = Field(found[-1].before, (*found[-1].directives, part))
        between = ""
    if not found:
        raise UnsupportedError(f"the format {format!r} has no directives to read")
    for field in found:
        if len(field.directives) > 1 and not set(field.directives) <= set(WIDTHS):
            raise UnsupportedError(f"the format {format!r} has {' and '.join(field.directives)} without text between")
    used = [part[:2] for field in found for part in field.directives]
    literal = "".join(field.before for field in found) + between
    if any(letter.isdigit() for letter in literal) or (
        {"%b", "%B", "%p"} & set(used) and any(letter.isalpha() for letter in literal)
    ):
        raise UnsupportedError(f"the format {format!r} has text that a directive of it could be: use a plainer format")
    if len(set(used)) != len(used):
        raise UnsupportedError(f"the format {format!r} has a directive twice")
    return found, between


def replaced(text: Tensor, valid: Tensor, sample: str) -> Tensor:
    """The text, with a sample where it is not valid."""
    return text.op.Where(valid, text, text.op.strings(np.asarray([[sample]], object)))


def split(text: Tensor, delimiter: str | None, count: int) -> list[Tensor]:
    """The parts of text that has the same number of them in every row; 0 rows have 0 parts, and stay 0 rows."""
    op = text.op
    attributes = {} if delimiter is None else {"delimiter": delimiter}
    parts = op.many("StringSplit", 2, text, **attributes)[0]
    shape = op.constant(np.asarray([-1, 1], np.int64))
    return [
        op.Reshape(op.Slice(parts, op.ints([k]), op.ints([k + 1]), op.ints([-1])), shape, allowzero=0)
        for k in range(count)
    ]


def cut(text: Tensor, sample: str, found: list[Field], format: str) -> list[Tensor]:
    """The text of each field: cut at one separator after the other. The sample, that has the form of every row, shows
    which one stands nowhere else."""
    if len(found) == 1:
        return [text]
    for separator in dict.fromkeys(field.before for field in found[1:]):
        groups: list[list[Field]] = [[found[0]]]
        for field in found[1:]:
            if field.before == separator:
                groups.append([field])
            else:
                groups[-1].append(field)
        samples = sample.split(separator)
        if len(samples) == len(groups):
            pieces = zip(split(text, separator, len(groups)), samples, groups, strict=True)
            return [field for piece, part, group in pieces for field in cut(piece, part, group, format)]
    raise UnsupportedError(f"the format {format!r} cannot be cut where its directives end: put other text between them")


def inside(text: Tensor, sample: str, before: str, after: str, format: str) -> tuple[Tensor, str]:
    """What is between the text before the first field and that after the last."""
    if before:
        if len(sample.split(before)) != 2:
            raise UnsupportedError(
                f"the format {format!r} starts with text that it has elsewhere too: cut it off first"
            )
        text, sample = split(text, before, 2)[1], sample.split(before)[1]
    if after:
        if len(sample.split(after)) != 2:
            raise UnsupportedError(f"the format {format!r} ends with text that it has elsewhere too: cut it off first")
        text, sample = split(text, after, 1)[0], sample.split(after)[0]
    return text, sample


def named(text: Tensor, keys: list[str], values: list[int]) -> Tensor:
    return text.op.many(
        "LabelEncoder", 1, text, domain="ai.onnx.ml", keys_strings=keys, values_int64s=values, default_int64=0
    )[0]


def cases(word: str) -> set[str]:
    """A short word in upper and lower case, letter by letter."""
    found = {""}
    for letter in word:
        found = {start + way for start in found for way in (letter.lower(), letter.upper())}
    return found


def numbers(text: Tensor, field: Field) -> dict[str, Tensor]:
    """The number of each directive of a field; `%S.%f` gives seconds in nanoseconds."""
    first = field.directives[0]
    if first in ("%S.%f", "%S%.f"):
        seconds = text.cast(ir.DataType.DOUBLE) * 1e9
        return {"%S.%f": text.op.Round(seconds).cast(ir.DataType.INT64)}
    if first in ("%b", "%B"):
        pairs = [
            (key, month)
            for month, name in enumerate(MONTH_NAMES, 1)
            for key in sorted(cases(name[:3]) if first == "%b" else {name, name.lower(), name.upper()})
        ]
        return {"%m": named(text, [key for key, _ in pairs], [month for _, month in pairs])}
    if first == "%p":
        return {"%p": named(text, sorted(cases("pm")), [12] * 4)}
    whole = text.cast(ir.DataType.INT64)
    result, place = {}, sum(WIDTHS[part] for part in field.directives)
    for part in field.directives:
        number = whole if part == first else remainder_by(whole, 10**place)
        place -= WIDTHS[part]
        result[part] = number / 10**place if place else number
    return result


def pattern(found: list[Field], after: str, library: str) -> str:
    """What is plain. Polars reads single digits in formats with a whole date only."""
    used = {part for field in found for part in field.directives}
    short = library == "pandas" or ("%d" in used and bool(used & {"%m", "%b", "%B"}))
    result = ""
    for field in found:
        result += re.escape(field.before)
        table = {**PATTERNS, **SHORT} if short and len(field.directives) == 1 else PATTERNS
        result += "".join(table[part] for part in field.directives)
    return result + re.escape(after)


def parse(text: Tensor, format: str, unit: str, library: str = "pandas") -> Parsed:
    """Text (N, 1) in a format of `strptime`, in pandas' or Polars' reading; `unit` is that of the time.

    A month or day that the format lacks is the first. A year that it lacks is refused, like directives for time zones.
    `%y` is a year from 1969 to 2068 in pandas, and from 1970 to 2069 in Polars. More digits of a second than the
    unit has are cut off.
    """
    per_second(unit)
    op = text.op
    found, after = fields(format)
    used = {part for field in found for part in field.directives}
    if not used & {"%Y", "%y"}:
        raise UnsupportedError(f"the format {format!r} has no year: put one before the text")
    if library == "polars" and "%S.%f" in used:
        raise UnsupportedError(f"the format {format!r} reads digits as nanoseconds in Polars: write %.f for a fraction")
    if len(used & {"%I", "%p"}) == 1:
        raise UnsupportedError(f"the format {format!r} has one of %I and %p without the other: use %H")
    if "%j" in used and used & {"%m", "%d", "%b", "%B"}:
        raise UnsupportedError(f"the format {format!r} has both %j and a month or day: use one of them")
    matches = op.RegexFullMatch(text, pattern=pattern(found, after, library))
    sample = "".join(field.before + "".join(SAMPLES[part] for part in field.directives) for field in found) + after
    plain = replaced(text, matches, sample)
    plain, sample = inside(plain, sample, found[0].before, after, format)
    parts: dict[str, Tensor] = {}
    for field, piece in zip(found, cut(plain, sample, found, format), strict=True):
        parts.update(numbers(piece, field))
    days, valid = date_of(parts, library)
    valid = op.And(matches, valid)
    unclear = op.And(op.RegexFullMatch(text, pattern=LENIENT), op.Not(matches))
    return Parsed(days, time_of(parts, unit), valid, unclear)


def date_of(parts: dict[str, Tensor], library: str) -> tuple[Tensor, Tensor]:
    year = parts["%Y"] if "%Y" in parts else parts["%y"]
    op = year.op
    if "%Y" not in parts:
        year = year + op.where(year < (70 if library == "polars" else 69), op.like(2000, year), 1900)
    one = op.constant(np.ones((1, 1), np.int64))
    days, valid = days_from_date(year, parts.get("%m", one), parts.get("%d", one))
    if "%j" in parts:
        following, _ = days_from_date(year + 1, one, one)
        days = days + (parts["%j"] - 1)
        valid = days < following
    return days, valid


def time_of(parts: dict[str, Tensor], unit: str) -> Tensor | None:
    """Ticks since midnight, or None if the format has no time."""
    second = per_second(unit)
    hour = parts.get("%H")
    if "%I" in parts:
        hour = remainder_by(parts["%I"], 12) + parts["%p"]
    terms = [
        number * (scale * second)
        for number, scale in ((hour, 3600), (parts.get("%M"), 60), (parts.get("%S"), 1))
        if number is not None
    ]
    if "%S.%f" in parts:
        terms.append(parts["%S.%f"] / (10**9 // second) if second < 10**9 else parts["%S.%f"])
    return reduce(add, terms) if terms else None


ISO_DATE = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
ISO_HOUR = ISO_DATE + "[T ](?:[01][0-9]|2[0-3])"
ISO_MINUTE = ISO_HOUR + ":[0-5][0-9]"
ISO_SECOND = ISO_MINUTE + r":[0-5][0-9](?:\.[0-9]{1,9})?"


def parse_iso(text: Tensor, unit: str) -> Parsed:
    """Text as `2024-01-05`, `2024-01-05T12:34`, `2024-01-05 12:34:56.789`: rows may differ in how much they have.

    Two digits each and a T or one space, without a time zone: what pandas' `format="ISO8601"` reads in every row, and
    Polars too, except that it takes the form of the first row for all and has no form with the hour alone.
    """
    op = text.op
    matches: Callable[[str], Tensor] = lambda pattern: op.RegexFullMatch(text, pattern=pattern)  # noqa: E731
    missing = [(ISO_DATE, "T00:00:00"), (ISO_HOUR, ":00:00"), (ISO_MINUTE, ":00")]
    valid = matches(ISO_SECOND)
    ending = op.strings(np.asarray([[""]], object))
    for form, rest in missing:
        shorter = matches(form)
        ending = op.Where(shorter, op.strings(np.asarray([[rest]], object)), ending)
        valid = op.Or(valid, shorter)
    whole = replaced(op.StringConcat(text, ending), valid, "1970-01-01T00:00:00")
    # A T more gives every row two parts; then date and time of all rows are two words.
    date, time = split(op.StringConcat(whole, op.strings(np.asarray([["T"]], object))), "T", 2)
    blank = op.strings(np.asarray([[" "]], object))
    date, time = split(op.StringConcat(op.StringConcat(date, blank), time), None, 2)
    year, month, day = (part.cast(ir.DataType.INT64) for part in split(date, "-", 3))
    hour, minute, second = split(time, ":", 3)
    days, exists = days_from_date(year, month, day)
    parts = {"%H": hour.cast(ir.DataType.INT64), "%M": minute.cast(ir.DataType.INT64)}
    parts |= numbers(second, Field("", ("%S%.f",)))
    unclear = op.And(matches(LENIENT), op.Not(valid))
    return Parsed(days, time_of(parts, unit), op.And(valid, exists), unclear)
