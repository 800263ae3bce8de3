"""Code in files is executed only where the user says so."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path

from onward.errors import OnwardError

TRUSTED = ContextVar("trusted", default=False)
"""Whether the user said that code in files may be executed."""


def need_trust(path: Path, what: str) -> None:
    """Refuse a file, unless it is trusted; `what` says what would be executed: 'it is a pickle'."""
    if not TRUSTED.get():
        raise OnwardError(f"{path}: {what}, which could execute anything when it is opened; --trust opens it")
