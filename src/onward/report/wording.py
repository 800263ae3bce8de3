"""How every view words what it shows: safe text, numbers, shapes."""

from __future__ import annotations


def printable(text: str, longest: int = 80) -> str:
    """Text from a file on one line, whatever it holds: no control characters, no lone surrogates, no line breaks."""
    flat = "".join(ch if ch.isprintable() else "�" for ch in " ".join(text.split()))
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"
