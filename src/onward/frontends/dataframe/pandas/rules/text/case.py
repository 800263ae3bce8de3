"""Upper and lower case, white space and what else is at the ends, filling up, repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.rules.text.common import changed, dialect_of, plain_text, whole_number
from onward.frontends.dataframe.tensors.text import text_case, text_pad, text_parts
from onward.graph.build import Tensor

_CASES = {
    "upper": text_case.upper,
    "lower": text_case.lower,
    "capitalize": text_case.capitalize,
    "title": text_case.title,
    "swapcase": text_case.swapcase,
}


def _declare_cases() -> None:
    for name, function in _CASES.items():

        def in_case(call: Call, x: Any, function: Callable[..., Tensor] = function) -> Column:
            return changed(call, x, lambda p: function(p, dialect_of(call, x)))

        rule(f"Series.str.{name}")(in_case)


_declare_cases()


@rule("Series.str.casefold")
def casefold(call: Call, x: Any) -> Column:
    return changed(call, x, text_case.casefold)


@rule("Series.str.normalize")
def normalize(call: Call, x: Any, form: str) -> Column:
    raise call.refuse("ONNX has no Unicode normal forms: bring texts into one form before the function")


def _declare_strips() -> None:
    for name, sides in {"strip": "both", "lstrip": "left", "rstrip": "right"}.items():

        def stripped(call: Call, x: Any, to_strip: Any = None, sides: Any = sides) -> Column:
            chars = None if to_strip is None else plain_text(call, to_strip, "to_strip")
            return changed(call, x, lambda p: text_parts.strip(p, chars, sides))

        rule(f"Series.str.{name}")(stripped)


_declare_strips()


@rule("Series.str.removeprefix")
def removeprefix(call: Call, x: Any, prefix: Any) -> Column:
    start = plain_text(call, prefix, "the prefix")
    return changed(call, x, lambda p: text_parts.remove_prefix(p, start))


@rule("Series.str.removesuffix")
def removesuffix(call: Call, x: Any, suffix: Any) -> Column:
    end = plain_text(call, suffix, "the suffix")
    return changed(call, x, lambda p: text_parts.remove_suffix(p, end))


@rule("Series.str.pad")
def pad(call: Call, x: Any, width: Any, side: Any = "left", fillchar: str = " ") -> Column:
    return _padded(call, x, width, side, fillchar)


def _padded(call: Call, x: Any, width: Any, side: Any, fillchar: str) -> Column:
    if side not in ("left", "right", "both"):
        raise call.refuse(f"there is no side {side!r}")
    size, fill = whole_number(call, width, "the width"), plain_text(call, fillchar, "fillchar")
    return changed(call, x, lambda p: text_pad.pad(p, size, side, fill))


@rule("Series.str.center")
def center(call: Call, x: Any, width: Any, fillchar: str = " ") -> Column:
    return _padded(call, x, width, "both", fillchar)


@rule("Series.str.ljust")
def ljust(call: Call, x: Any, width: Any, fillchar: str = " ") -> Column:
    return _padded(call, x, width, "right", fillchar)


@rule("Series.str.rjust")
def rjust(call: Call, x: Any, width: Any, fillchar: str = " ") -> Column:
    return _padded(call, x, width, "left", fillchar)


@rule("Series.str.zfill")
def zfill(call: Call, x: Any, width: Any) -> Column:
    size = whole_number(call, width, "the width")
    return changed(call, x, lambda p: text_pad.zfill(p, size))


@rule("Series.str.repeat")
def repeat(call: Call, x: Any, repeats: Any) -> Column:
    times = whole_number(call, repeats, "how often it is repeated")
    if times < 0:
        raise call.refuse("a text is not repeated a negative number of times")
    return changed(call, x, lambda p: text_pad.repeat(p, times))
