"""What a case of the battery is: a function as a person wrote it, the frame it is for, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]
LIBRARIES = {"pd": "pandas", "pl": "polars", "nw": "narwhals"}
"""What the names of the modules begin with."""

CASES: list[Case] = []
REFUSALS: list[Refusal] = []


@dataclass(frozen=True)
class Case:
    """A function that should convert."""

    name: str
    library: str
    theme: str
    function: Function
    frame: str
    """The name of its frame, in `frame_data`."""
    raises: tuple[str, ...]
    """The variants of the frame for which the library itself raises."""
    near: float
    """How far a float may be off beside the relative tolerance, where large numbers cancel: a rounding of *those*."""
    freeze: tuple[str, ...]
    as_if: Function | None
    """What is expected where a statistic is that of the sample: a function of a frame and of the sample."""
    backend: str
    """Of a narwhals case: what is under its frame."""


@dataclass(frozen=True)
class Refusal:
    """A function that should be refused, with a message that has this word."""

    name: str
    library: str
    function: Function
    frame: str
    word: str


def case(
    frame: str,
    *,
    raises: tuple[str, ...] = (),
    near: float = 0.0,
    freeze: tuple[str, ...] = (),
    as_if: Function | None = None,
    backend: str = "pandas",
) -> Callable[[Function], Function]:
    """Register a function, which stays as it is."""

    def register(function: Function) -> Function:
        library, theme = place(function)
        CASES.append(Case(name(function), library, theme, function, frame, raises, near, freeze, as_if, backend))
        return function

    return register


def refused(frame: str, word: str) -> Callable[[Function], Function]:
    """Register a function that should be refused with this word in the message, upper case or not."""

    def register(function: Function) -> Function:
        REFUSALS.append(Refusal(name(function), place(function)[0], function, frame, word))
        return function

    return register


def name(function: Function) -> str:
    return str(function.__name__)


def place(function: Function) -> tuple[str, str]:
    """The library and the theme that the module of a function is named after."""
    start, _, theme = function.__module__.rpartition(".")[2].partition("_")
    return LIBRARIES[start], theme.replace("_", " ")
