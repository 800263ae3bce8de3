"""Sets of characters, exactly as the library at hand understands them: its own regular expressions are asked."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from onward.errors import UnsupportedError

Dialect = Literal["python", "arrow", "rust"]
"""Whose regular expressions a pattern is written in: Python's (also what pandas falls back to), those of PyArrow
(pandas, where it ignores case), or those of Rust (Polars)."""

Ranges = tuple[tuple[int, int], ...]
"""Code points, from and to and with both, in order, without a surrogate."""

LAST = 0x10FFFF
EVERY: Ranges = ((0, 0xD7FF), (0xE000, LAST))
PYTHON_SPACE = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
PYTHON_SPACE += "\u2028\u2029\u202f\u205f\u3000"
"""What Python and PyArrow strip and split at; Rust leaves out the four separators from U+001C on."""
UNICODE_SPACE = "".join(c for c in PYTHON_SPACE if not "\x1c" <= c <= "\x1f")


@cache
def all_codes() -> npt.NDArray[np.uint32]:
    return np.concatenate([np.arange(low, high + 1, dtype="<u4") for low, high in EVERY])


@cache
def all_characters() -> str:
    return all_codes().tobytes().decode("utf-32-le")


def _code(place: int) -> int:
    return place if place < 0xD800 else place + 0x800


def _split(start: int, stop: int) -> list[tuple[int, int]]:
    """A run of places in the text of all characters, as ranges that leave out the surrogates."""
    if start < 0xD800 < stop:
        return [(start, 0xD7FF), (0xE000, _code(stop - 1))]
    return [(_code(start), _code(stop - 1))]


@cache
def matched(one: str, flags: int, dialect: Dialect) -> Ranges:
    """The characters that a pattern of one character matches."""
    text = all_characters()
    if dialect == "rust":
        import polars

        prefix = "(?i)" if flags & re.IGNORECASE else ""
        found = polars.Series([text]).str.extract_all(f"(?s){prefix}(?:{one})+").to_list()[0]
        spans, at = [], 0
        for run in found:
            at = text.index(run, at)
            spans.append((at, at + len(run)))
            at += len(run)
    else:
        spans = [m.span() for m in re.finditer(f"(?:{one})+", text, flags & (re.IGNORECASE | re.ASCII) | re.DOTALL)]
    return tuple(piece for start, stop in spans for piece in _split(start, stop))


def of_characters(characters: str) -> Ranges:
    codes = sorted({ord(c) for c in characters})
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return tuple((low, high) for low, high in ranges)


def of_mask(is_member: npt.NDArray[np.bool_]) -> Ranges:
    """Those of all characters that a mask tells."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_member, [False]]).astype(np.int8)))
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return tuple(piece for start, stop in pairs for piece in _split(start, stop))


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    result = []
    for low, high in EVERY:
        inside = [(max(low, a), min(high, b)) for a, b in ranges if a <= high and b >= low]
        edges = [low - 1, *(edge for pair in inside for edge in pair), high + 1]
        result += [(a + 1, b - 1) for a, b in zip(edges[::2], edges[1::2], strict=True) if a + 1 <= b - 1]
    return tuple(result)


def contains(ranges: Ranges, code: int) -> bool:
    place = bisect_right(ranges, (code, LAST + 1)) - 1
    return place >= 0 and ranges[place][0] <= code <= ranges[place][1]


def overlap(a: Ranges, b: Ranges) -> bool:
    few, many = (a, b) if len(a) <= len(b) else (b, a)
    for low, high in few:
        place = bisect_right(many, (low, LAST + 1)) - 1
        if place >= 0 and many[place][1] >= low:
            return True
        if place + 1 < len(many) and many[place + 1][0] <= high:
            return True
    return False


def within(a: Ranges, b: Ranges) -> bool:
    return not overlap(a, complement(b))


def union(sets: list[Ranges]) -> Ranges:
    edges = sorted(r for ranges in sets for r in ranges)
    merged: list[tuple[int, int]] = []
    for low, high in edges:
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def _letter(code: int) -> str:
    character = chr(code)
    if character.isascii() and (character.isalnum() or character in " _,:;<>=!@#%&/'\"~`"):
        return character
    return f"\\x{{{code:x}}}"


def written(ranges: Ranges) -> str:
    """A set as RE2 writes it: a letter, or a class."""
    if ranges == EVERY:
        return "(?s:.)"
    if not ranges:
        return "[^\\x{0}-\\x{10ffff}]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _letter(ranges[0][0])
    others = complement(ranges)
    body = [_letter(a) if a == b else f"{_letter(a)}-{_letter(b)}" for a, b in min(ranges, others, key=len)]
    return f"[{'^' if len(others) < len(ranges) else ''}{''.join(body)}]"


def refuse(pattern: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"the pattern {pattern!r} {what}, which ONNX cannot say: write a simpler pattern, or a literal text"
    )
