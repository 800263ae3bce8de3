"""The equations of Einsum."""

from __future__ import annotations

import string
from collections.abc import Sequence

from onward.errors import UnsupportedError


def explicit(equation: str, ranks: Sequence[int]) -> str:
    """An equation with a letter for each axis, and with what results said."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    free = [c for c in string.ascii_letters if c not in equation]
    counts = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    most = max((n for n, term in zip(counts, terms, strict=True) if "..." in term), default=0)
    if most > len(free):
        raise UnsupportedError(f"Einsum: {equation!r} has more axes than there are letters")
    letters = "".join(free[:most])
    named = [term.replace("...", letters[most - n :]) for n, term in zip(counts, terms, strict=True)]
    if arrow:
        return f"{','.join(named)}->{right.replace('...', letters)}"
    once = sorted(c for c in set("".join(terms)) - {"."} if left.count(c) == 1)
    return f"{','.join(named)}->{letters}{''.join(once)}"
