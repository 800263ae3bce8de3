"""Code in files is executed only where the user says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from onward.errors import UntrustedError

_TRUSTED = ContextVar("trusted", default=False)


def is_trusted() -> bool:
    """Whether the user said that code in files may be executed."""
    return _TRUSTED.get()


@contextmanager
def trusting(yes: bool) -> Iterator[None]:
    """Inside, files are trusted if the user said so, with `--trust` or `trust=True`, here or around it."""
    before = _TRUSTED.set(yes or is_trusted())
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def need_trust(path: Path, what: str) -> None:
    """Refuse a file, unless it is trusted; `what` says what would be executed: 'it is a pickle'."""
    if not is_trusted():
        raise UntrustedError(
            f"{path}: {what}, which could execute anything when it is opened; --trust opens it (in Python, trust=True)"
        )
