"""How every view words what it shows: safe text, numbers, shares, shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence


def printable(text: str, longest: int = 80) -> str:
    """Text from a file on one line, whatever it holds: no control characters, no lone surrogates, no line breaks."""
    flat = "".join(ch if ch.isprintable() else "�" for ch in " ".join(text.split()))
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def number(value: float | None) -> str:
    """Short, and as a person would write it: `0`, `0.0123`, `7.1e-05`, `infinite`."""
    if value is None:
        return ""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value == 0 or 1000 <= abs(value) < 100_000:
        return f"{value:.0f}"
    return f"{value:.3g}" if 0.001 <= abs(value) < 1000 else f"{value:.1e}"


def share(part: float) -> str:
    """A share in percent that reads `0 %` or `100 %` only where it is exactly that."""
    if part in (0, 1):
        return f"{part:.0%}".replace("%", " %")
    if not 0 < part < 1:
        return number(part)
    return "<0.1 %" if part < 0.001 else ">99.9 %" if part > 0.999 else f"{100 * part:.1f} %"


def duration(seconds: float) -> str:
    if seconds >= 100:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def sizes(shape: Sequence[int]) -> str:
    return " × ".join(str(size) for size in shape) or "scalar"


def listing(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(amount: int, thing: str) -> str:
    """`1 data set`, `3 data sets`."""
    return f"{amount:,} {thing}" + ("" if amount == 1 else "s")


def dims_in_words(dims: Sequence[object] | None) -> str:
    """`batch × 1 × 8 × 8`; a dimension that has no name is `?`."""
    if dims is None:
        return "unknown"
    return " × ".join("?" if d is None else str(d) for d in dims) or "scalar"


def bytes_in_words(nbytes: int) -> str:
    """In units of a thousand."""
    amount, units = float(nbytes), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.0f} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"
