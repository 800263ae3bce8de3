"""What files say that cannot be meant, and that other readers pass over: it is left out here too, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from onward.errors import OddModelWarning

_FOUND: ContextVar[list[str] | None] = ContextVar("oddities", default=None)


def odd(remark: str) -> None:
    """Say what is passed over in the file that is being read."""
    found = _FOUND.get()
    if found is not None:
        found.append(remark)


@contextmanager
def told(label: str) -> Iterator[None]:
    """One warning for all that is odd in a file: a thousand values may be described wrongly."""
    found: list[str] = []
    token = _FOUND.set(found)
    try:
        yield
    finally:
        _FOUND.reset(token)
    if found:
        more = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
        warnings.warn(f"{label}: {found[0]}{more}", OddModelWarning, stacklevel=4)
