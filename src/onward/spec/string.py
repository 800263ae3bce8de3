"""What text ops mean: ONNX's regular expressions are RE2's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.gate.bounds import check_room
from onward.spec.meaning import Spec, attributes, means

Array = np.ndarray[Any, Any]


@means("StringSplit")
@dataclass(frozen=True)
class StringSplit(Spec):
    delimiter: str | None = None
    maxsplit: int | None = None


@means("StringNormalizer")
@dataclass(frozen=True)
class StringNormalizer(Spec):
    case_change_action: str = "NONE"
    is_case_sensitive: int = 0
    locale: str | None = None
    stopwords: Sequence[str] = ()


@means("RegexFullMatch")
@dataclass(frozen=True)
class RegexFullMatch(Spec):
    pattern: str


@means("TfIdfVectorizer")
@dataclass(frozen=True)
class TfIdfVectorizer(Spec):
    """Counts of n-grams. `columns`: where each one is counted; `once`: one that occurs again counts no more."""

    pool: Array
    counts: Sequence[int]
    columns: Array
    lengths: tuple[int, int]
    max_skip_count: int
    once: bool
    weights: Array | None
    """What the count of each column is multiplied with."""

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        strings, mode, weights = given.get("pool_strings"), given["mode"], given.get("weights")
        columns = given["ngram_indexes"]
        return cls(
            np.array(strings, object) if strings else np.array(given.get("pool_int64s", ()), np.int64),
            given["ngram_counts"],
            np.array(columns, np.int64),
            (given["min_gram_length"], given["max_gram_length"]),
            given["max_skip_count"],
            mode == "IDF",
            None if mode == "TF" or not weights else _column_weights(columns, weights),
        )


def _column_weights(columns: Sequence[int], weights: Sequence[float]) -> Array:
    check_room("TfIdfVectorizer: a weight for each column", [max(columns) + 1], 4)
    out = np.zeros(max(columns) + 1, dtype=np.float32)
    out[list(columns)] = weights
    if (out[list(columns)] != np.asarray(weights, dtype=np.float32)).any():
        raise UnsupportedError("TfIdfVectorizer: n-grams of different weight are counted together")
    return out


_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


_SPACES = {
    (r"\s", False): r"[\t\n\f\r ]",
    (r"\s", True): r"\t\n\f\r ",
    (r"\S", False): r"[^\t\n\f\r ]",
    (r"\S", True): r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
}
"""White space and the rest, within a class or not: RE2 leaves out the vertical tab, which Python has."""


def python_pattern(pattern: str) -> str:
    """A pattern of RE2 in the syntax of Python's `re`, to be used with `re.ASCII`.

    Raises ValueError or re.error for what only RE2 knows, and for what only Python knows: a valid model has none of it.
    """
    out: list[str] = []
    i, in_class = 0, False
    while i < len(pattern):
        ch = pattern[i]
        if ch == "\\":
            text, i = _escape(pattern, i)
            out.append(_SPACES.get((text, in_class), text))
            continue
        if in_class and pattern.startswith("[:", i):
            end = pattern.find(":]", i)
            name = pattern[i + 2 : end] if end > 0 else ""
            if name not in _CLASSES:
                raise ValueError(f"there is no character class [:{name}:]")
            out.append(_CLASSES[name])
            i = end + 2
            continue
        if ch == "[" and not in_class:
            in_class = True
            out.append(ch)
            i += 1
            for literal in ("^", "]"):
                if pattern.startswith(literal, i):
                    out.append("^" if literal == "^" else r"\]")
                    i += 1
            continue
        if ch == "[":
            out.append(r"\[")
        elif ch == "]":
            in_class = False
            out.append(ch)
        elif ch == "$" and not in_class:
            if any(part.startswith("(?") and part.endswith(":") and "m" in part for part in out):
                raise ValueError("$ is the end of a line in a part of the pattern")
            out.append("$" if out and re.fullmatch(r"\(\?[is]*m[ims]*\)", out[0]) else r"\Z")
        elif ch == "(" and not in_class and pattern.startswith("(?", i):
            text, i = _group(pattern, i)
            out.append(text)
            continue
        else:
            out.append(ch)
        i += 1
    text = "".join(out)
    re.compile(text, re.ASCII)
    return text


def _escape(pattern: str, i: int) -> tuple[str, int]:
    """What the escape at `i` is in Python, and where it ends."""
    if i + 1 >= len(pattern):
        raise ValueError("it ends with a backslash")
    ch = pattern[i + 1]
    if ch == "Q":
        end = pattern.find(r"\E", i + 2)
        stop = len(pattern) if end < 0 else end
        return re.escape(pattern[i + 2 : stop]), stop if end < 0 else end + 2
    if ch == "z":
        return r"\Z", i + 2
    if ch in "pPC":
        raise ValueError(f"\\{ch} is not known there")
    if ch in "123456789" or ch == "Z":
        raise ValueError(f"\\{ch} is not part of RE2's syntax")
    if ch == "x" and pattern.startswith("{", i + 2):
        end = pattern.find("}", i)
        return re.escape(chr(int(pattern[i + 3 : end], 16))), end + 1
    return pattern[i : i + 2], i + 2


def _group(pattern: str, i: int) -> tuple[str, int]:
    """The opening of a group at `i`, and where it ends."""
    for opening, python in (("(?:", "(?:"), ("(?P<", "(?P<"), ("(?<", "(?P<")):
        if pattern.startswith(opening, i) and not pattern.startswith(("(?<=", "(?<!"), i):
            return python, i + len(opening)
    flags = re.match(r"\(\?([ims]+)([:)])", pattern[i:])
    if flags is None:
        raise ValueError(f"no group can begin with {pattern[i : i + 3]!r}")
    if flags[2] == ")":
        if i:
            raise ValueError("flags stand in the middle of the pattern")
        return f"(?{flags[1]})", i + flags.end()
    return f"(?{flags[1]}:", i + flags.end()
