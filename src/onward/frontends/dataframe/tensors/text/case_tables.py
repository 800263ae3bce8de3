"""How the libraries change the case of letters: asked of each of them, character by character."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from onward.frontends.dataframe.tensors.text.pattern_sets import (
    Dialect,
    Ranges,
    all_codes,
    complement,
    of_characters,
    overlap,
)

Change = Literal["upper", "lower", "title", "casefold", "swapcase"]
CASES: tuple[Change, ...] = ("upper", "lower")
PYTHON: Dialect = "python"

STEADY = "".join(
    chr(code)
    for low, high in [
        (0, 0xB4), (0xB6, 0xDE), (0xE0, 0x12F), (0x132, 0x148), (0x14A, 0x17E), (0x386, 0x38F), (0x391, 0x3A1),
        (0x3A4, 0x3AF), (0x3B1, 0x3C1), (0x3C3, 0x3CE), (0x400, 0x481), (0x48A, 0x52F), (0x5B0, 0x6FF),
        (0x2000, 0x20C0), (0x3000, 0xA63F), (0xAC00, 0xD7A3), (0xFF00, 0xFFEF), (0x1F000, 0x1FAFF),
    ]
    for code in range(low, high + 1)
)  # fmt: skip
"""Characters that have had one case mapping to one character in every Unicode for long: ONNX Runtime, which asks the C
library of the machine, changes these alike everywhere."""


BETWEEN = "\x01"
"""A character without a case that ends a word: many texts are asked about as one, which is faster."""


BLOCK = 256
"""Characters that are asked about as one text: where all of it stays as it is, none is looked at by itself."""


def _made(change: Change, dialect: Dialect, texts: list[str]) -> list[str]:
    """What the library makes of each text."""
    if dialect == "python":
        return [getattr(text, change)() for text in texts]
    if dialect == "arrow":
        import pyarrow
        import pyarrow.compute

        made: list[str] = getattr(pyarrow.compute, f"utf8_{change}")(pyarrow.array(texts)).to_pylist()
        return made
    import polars

    made = getattr(polars.Series(texts).str, f"to_{change}case")().to_list()
    return made


def _blocks(before: str = "", after: str = "") -> list[str]:
    """All characters but one, a block in a text: each with a text before and after it."""
    codes = all_codes()[all_codes() != ord(BETWEEN)].reshape(-1, 1)
    sides = [np.array([[ord(c) for c in side]], "<u4").repeat(len(codes), 0) for side in (before, after + BETWEEN)]
    text = np.concatenate([sides[0], codes, sides[1]], axis=1).tobytes().decode("utf-32-le")
    width = len(before) + len(after) + 2
    return [text[start : start + BLOCK * width - 1] for start in range(0, len(text), BLOCK * width)]


def _unusual(change: Change, dialect: Dialect, before: str, after: str, usual: tuple[str, str]) -> dict[str, str]:
    """What becomes of each character with a text before and after it, where that is not the usual."""
    found: dict[str, str] = {}
    asked = _blocks(before, after)
    expected = asked if usual == (before, after) else _blocks(*usual)
    for own, made, plain in zip(asked, _made(change, dialect, asked), expected, strict=True):
        if made != plain:
            rows = zip(own.split(BETWEEN), made.split(BETWEEN), plain.split(BETWEEN), strict=True)
            found |= {a[len(before)]: b for a, b, c in rows if b != c}
    return found


@cache
def changed(change: Change, dialect: Dialect) -> dict[str, str]:
    """What a character by itself becomes, of all that do not stay as they are."""
    return _unusual(change, dialect, "", "", ("", ""))


@cache
def with_case(dialect: Dialect) -> str:
    """The characters that have another case, or are one, for the library or for Python."""
    tables = [changed(case, owner) for case in CASES for owner in {dialect, PYTHON}]
    return "".join(sorted({c for table in tables for pair in table.items() for text in pair for c in text}))


@cache
def steady(change: Literal["upper", "lower", "casefold"], dialect: Dialect) -> Ranges:
    """The characters that ONNX Runtime surely changes as the library does; `casefold` by its lower case."""
    table = changed(change, dialect)
    kept = [c for c in STEADY if len(table.get(c, c)) == 1 and c != "ß"]
    if change == "casefold":
        lower = changed("lower", dialect)
        kept = [c for c in kept if table.get(c, c) == lower.get(c, c)]
    if change == "lower":
        kept = [c for c in kept if c != "Σ"]
    return of_characters("".join(kept))


@cache
def word_inside(dialect: Dialect) -> Ranges:
    """The characters after which `title` takes a letter for one inside a word."""
    made = _unusual("title", dialect, "", "a", ("", "A"))
    return of_characters("".join(c for c, value in made.items() if value[-1] == "a"))


@cache
def sigma_sets(dialect: Dialect) -> tuple[Ranges, Ranges] | None:
    """Letters after which a Σ ends a word, and what is passed over in looking for them; None if Σ is a σ everywhere."""
    if _made("lower", dialect, ["ΑΣ"]) == ["ασ"]:
        return None
    after, through = (
        {c for c, value in _unusual("lower", dialect, before, "Σ", (before.lower(), "σ")).items() if value[-1] == "ς"}
        for before in ("", "A")
    )
    cased, passed = of_characters("".join(after)), of_characters("".join(through - after))
    assert not overlap(cased, passed) and complement(passed)
    return cased, passed
