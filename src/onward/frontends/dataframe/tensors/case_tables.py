"""How the libraries change the case of letters: asked of each of them, character by character."""

from __future__ import annotations

from functools import cache
from typing import Literal

from onward.frontends.dataframe.tensors.pattern_sets import (
    Dialect,
    Ranges,
    all_characters,
    complement,
    of_characters,
    overlap,
)

Change = Literal["upper", "lower", "title"]

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


def _made(change: Change, dialect: Dialect, texts: list[str]) -> list[str]:
    """What the library makes of each text."""
    together = BETWEEN.join(texts)
    if dialect == "python":
        made: str = getattr(together, change)()
    elif dialect == "arrow":
        import pyarrow
        import pyarrow.compute

        made = getattr(pyarrow.compute, f"utf8_{change}")(pyarrow.scalar(together)).as_py()
    else:
        import polars

        made = getattr(polars.Series([together]).str, f"to_{change}case")().to_list()[0]
    return made.split(BETWEEN)


@cache
def _characters() -> list[str]:
    return [c for c in all_characters() if c != BETWEEN]


@cache
def changed(change: Change, dialect: Dialect) -> dict[str, str]:
    """What a character by itself becomes, of all that do not stay as they are."""
    texts = _characters()
    return {a: b for a, b in zip(texts, _made(change, dialect, texts), strict=True) if a != b}


@cache
def steady(change: Literal["upper", "lower"], dialect: Dialect) -> Ranges:
    """The characters that ONNX Runtime surely changes as the library does."""
    table = changed(change, dialect)
    kept = [c for c in STEADY if len(table.get(c, c)) == 1 and c != "ß"]
    if change == "lower":
        kept = [c for c in kept if c != "Σ"]
    return of_characters("".join(kept))


@cache
def word_inside(dialect: Dialect) -> Ranges:
    """The characters after which `title` takes a letter for one inside a word."""
    texts = _characters()
    made = _made("title", dialect, [f"{c}a" for c in texts])
    return of_characters("".join(c for c, value in zip(texts, made, strict=True) if value[-1] == "a"))


@cache
def sigma_sets(dialect: Dialect) -> tuple[Ranges, Ranges] | None:
    """Letters after which a Σ ends a word, and what is passed over in looking for them; None if Σ is a σ everywhere."""
    if _made("lower", dialect, ["ΑΣ"]) == ["ασ"]:
        return None
    texts = _characters()
    after, through = (
        {c for c, value in zip(texts, _made("lower", dialect, asked), strict=True) if value[-1] == "ς"}
        for asked in ([f"{c}Σ" for c in texts], [f"A{c}Σ" for c in texts])
    )
    cased, passed = of_characters("".join(after)), of_characters("".join(through - after))
    assert not overlap(cased, passed) and complement(passed)
    return cased, passed
