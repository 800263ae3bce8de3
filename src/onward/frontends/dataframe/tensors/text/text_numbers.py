"""Texts read as numbers, and numbers and truth values written as texts.

ONNX Runtime's Cast reads a number at the start of a text and throws where there is none: it only ever sees what a
pattern has checked.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text.pattern_sets import UNICODE_SPACE, matched, of_characters, written
from onward.frontends.dataframe.tensors.text.text import STRING, any_true, either, full_match, join, label, text, tokens
from onward.frontends.dataframe.tensors.text.text_parts import strip
from onward.frontends.dataframe.tensors.text.text_split import replace_text
from onward.graph.build import Tensor

Reader = Literal["python", "to_numeric", "polars"]
"""Whose numbers are read: those of `int` and `float`, which `astype` takes (white space, 1_000, digits of all scripts);
those of `pandas.to_numeric` (white space of ASCII); those that a Polars cast takes (nothing but the number)."""

WORDS = "[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN]"
ASCII_SPACE = r"[\t-\r ]*"
HIGH = "(?:309|3[1-9][0-9]|[4-9][0-9]{2}|[1-9][0-9]{3,})"
HIGHER = "(?:39[0-9]|[4-9][0-9]{2}|[1-9][0-9]{3,})"


def _compared(digits: str, rest: str, low: bool) -> str:
    """Digits that are less than those given, at the first place where they differ, or greater."""
    ways = []
    for place, digit in enumerate(digits):
        others = [d for d in "0123456789" if (d < digit if low else d > digit)]
        if others:
            ways.append(f"{digits[:place]}[{others[0]}-{others[-1]}][0-9]{{{len(digits) - place - 1}}}{rest}")
    return "|".join(ways)


def _at_most(number: int) -> str:
    """Whole numbers without a sign up to one; zeros may lead."""
    digits = str(number)
    shorter = f"[0-9]{{1,{len(digits) - 1}}}|" if len(digits) > 1 else ""
    return f"0*(?:{shorter}{_compared(digits, '', low=True)}|{digits})"


def _less(fraction: str) -> str:
    """Fractions, without the point, less than one, or the ends of it missing."""
    return "|".join(
        [f"{fraction[:i]}[0-{int(d) - 1}][0-9]*" for i, d in enumerate(fraction) if d != "0"]
        + [fraction[:i] for i in range(len(fraction))]
    )


def _greater(fraction: str) -> str:
    return "|".join(f"{fraction[:i]}[{int(d) + 1}-9][0-9]*" for i, d in enumerate(fraction) if d != "9")


_SOME, _SMALL = r"0*[1-9][0-9]{0,49}(?:\.[0-9]*)?", r"0*\.0{0,49}[1-9][0-9]*"
TOO_LARGE = (
    rf"0*[1-9][0-9]{{309,}}(?:\.[0-9]*)?|{_SOME}[eE]\+?0*{HIGH}|{_SMALL}[eE]\+?0*{HIGHER}"
    rf"|0*(?:[2-9](?:\.[0-9]*)?|1\.(?:{_greater('797693134862315807')}))[eE]\+?0*308"
)
"""Numbers that are infinite in float64."""
TOO_SMALL = (
    rf"0*[1-9](?:\.[0-9]*)?[eE]-0*{HIGH}|{_SOME}[eE]-0*{HIGHER}|{_SMALL}[eE]-0*{HIGH}"
    rf"|0*(?:1(?:\.[0-9]*)?|2(?:\.(?:{_less('2250738585072014')}))?)[eE]-0*308"
)
"""Numbers closer to zero than the normal ones of float64."""


def _grammar(reader: Reader) -> tuple[str, str]:
    """What a digit sequence is, and the white space around a number."""
    if reader == "python":
        digit = written(matched(r"\d", 0, "python"))
        return f"{digit}(?:_?{digit})*", f"{written(of_characters(UNICODE_SPACE))}*"
    return "[0-9]+", ASCII_SPACE if reader == "to_numeric" else ""


def _plain(x: Tensor, reader: Reader) -> Tensor:
    """With digits of ASCII, without underscores and white space, where Python's numbers are read."""
    if reader != "python":
        return x
    odd = any_true(x.op.Not(full_match(x, r"[\x{0}-\x{5e}\x{60}-\x{7f}]*")))

    def simplified() -> list[Tensor]:
        op = x.op
        parts = tokens(strip(x, UNICODE_SPACE), "a", tokenexp=r"[\x{0}-\x{7f}]+|(?s:.)")
        digits = [chr(c) for low, high in matched(r"\d", 0, "python") for c in range(low, high + 1)]
        found = label(parts, digits, [str(int(digit)) for digit in digits], "")
        return [replace_text(join(op.Where(op.Equal(found, text(op, "")), parts, found)), "_", "")]

    return either(x.op, odd, simplified, lambda: [x])[0]


def to_int(x: Tensor, dtype: ir.DataType = ir.DataType.INT64, reader: Reader = "python") -> tuple[Tensor, Tensor]:
    """The whole number that a text says, 0 where it says none or one too large, and where it says one.

    Three or four nodes for Polars, 11 for Python's numbers, and more where those have underscores or digits of other
    scripts.
    """
    op = x.op
    if dtype == ir.DataType.UINT64 or dtype.numpy().kind not in "iu":
        raise UnsupportedError(f"texts cannot be read as {dtype.name.lower()}: read them as int64")
    bounds = np.iinfo(dtype.numpy())
    digits, space = _grammar(reader)
    y = _plain(x, reader)
    spaces = ASCII_SPACE if space else ""
    negative = f"|-(?:{_at_most(-int(bounds.min))})" if bounds.min else "|-0+" if reader == "python" else ""
    ok = full_match(y, rf"{spaces}(?:\+?(?:{_at_most(int(bounds.max))}){negative}){spaces}")
    if reader == "python":
        ok = op.And(ok, full_match(x, rf"{space}[+\-]?{digits}{space}"))
    number = op.Where(ok, y, text(op, "0")).cast(ir.DataType.INT64)
    return number.cast(dtype), ok


def to_float(x: Tensor, reader: Reader = "python") -> tuple[Tensor, Tensor]:
    """The float64 that a text says, 0 where it says none, and where it says one; a word for NaN says NaN.

    Eight nodes for Polars, ten for `to_numeric`, 14 for Python's numbers. Subnormal numbers (less than 2.2e-308) become
    0. A number that only its digits make infinite or subnormal (say 1000e306) is an error of ONNX Runtime's.
    """
    op = x.op
    digits, space = _grammar(reader)
    mantissa = rf"(?:{digits}(?:\.(?:{digits})?)?|\.{digits})"
    ok = full_match(x, rf"{space}[+\-]?(?:{mantissa}(?:[eE][+\-]?{digits})?|{WORDS}){space}")
    y = op.Where(ok, _plain(x, reader), text(op, "0"))
    far = any_true(full_match(y, r"(?s).*[eE][+\-]?0*[0-9]{3,}\s*|.{300,}"))

    def clamped() -> list[Tensor]:
        around = ASCII_SPACE
        result = op.Where(full_match(y, rf"{around}\+?(?:{TOO_LARGE}){around}"), text(op, "inf"), y)
        result = op.Where(full_match(y, rf"{around}-(?:{TOO_LARGE}){around}"), text(op, "-inf"), result)
        result = op.Where(full_match(y, rf"{around}\+?(?:{TOO_SMALL}){around}"), text(op, "0"), result)
        return [op.Where(full_match(y, rf"{around}-(?:{TOO_SMALL}){around}"), text(op, "-0"), result)]

    y = either(op, far, clamped, lambda: [y])[0]
    if reader == "to_numeric":
        y = op.Where(full_match(y, rf"{ASCII_SPACE}-0+{ASCII_SPACE}"), text(op, "0"), y)
    return y.cast(ir.DataType.DOUBLE), ok


def is_filled(x: Tensor) -> Tensor:
    """`astype(bool)`: whether a text is not empty. Two nodes."""
    return x.op.Not(x.op.Equal(x, text(x.op, "")))


def from_int(x: Tensor) -> Tensor:
    """A whole number as `str` writes it. One node."""
    if x.dtype.numpy().kind not in "iu":
        raise UnsupportedError(
            "numbers with a fraction cannot be written as texts in ONNX: round them to integers first"
        )
    return x.cast(STRING)


def from_bool(x: Tensor, true: str = "True", false: str = "False") -> Tensor:
    """A truth value as pandas writes it; Polars writes "true" and "false". One node."""
    return x.op.Where(x, text(x.op, true), text(x.op, false))
