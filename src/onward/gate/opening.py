"""Declares the functions that open files, so that none does it past the gate."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from onward.advice.extras import missing_packages
from onward.gate.archive import check_archive
from onward.gate.files import ordinary
from onward.gate.hdf5 import check_hdf5
from onward.gate.trust import is_trusted, need_trust

P = ParamSpec("P")
T = TypeVar("T")
Dangers = Callable[[Path], Iterable[str]]
"""What of a file would be executed when it is opened, a phrase each: 'a Lambda layer of it holds code'.

It reads the file as data, with bounds, and executes nothing. What it does not know, it reports.
"""
Opener = Callable[Concatenate[Path, P], T]
_PASSED: ContextVar[frozenset[tuple[Path, Dangers]]] = ContextVar("passed", default=frozenset())
"""What was let through and is being opened: an opener that calls another one does not look twice."""


def opens(dangers: Dangers) -> Callable[[Opener[P, T]], Opener[P, T]]:
    """Declares a function that opens the file or folder of its first argument."""

    def declare(function: Opener[P, T]) -> Opener[P, T]:
        @functools.wraps(function)
        def guarded(path: str | os.PathLike[str], /, *args: P.args, **kwargs: P.kwargs) -> T:
            place = ordinary(Path(path))
            key = (place, dangers)
            with missing_packages():
                if key not in _PASSED.get():
                    check_archive(place)
                    check_hdf5(place)
                    if not is_trusted():
                        for danger in dangers(place):
                            need_trust(place, danger)
                before = _PASSED.set(_PASSED.get() | {key})
                try:
                    return function(place, *args, **kwargs)
                finally:
                    _PASSED.reset(before)

        marked: Any = guarded
        marked.dangers = dangers
        return guarded

    return declare


def harmless(path: Path) -> Iterable[str]:
    """The dangers of a format that has none: it is read as data, by code that executes nothing of it."""
    return ()
