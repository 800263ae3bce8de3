"""What a case of the battery is: a program as a person wrote it, and the specs of its inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Function = Callable[..., Any]

CASES: list[Case] = []
REFUSALS: list[Refusal] = []


@dataclass(frozen=True, eq=False)
class Case:
    """A program that should convert."""

    theme: str
    name: str
    function: Function
    specs: tuple[Any, ...]
    """A pytree of words such as 'f32[b,4]' for each argument: see `jax_data`."""
    x64: bool = False

    @property
    def id(self) -> str:
        return f"{self.theme}/{self.name}".replace(" ", "-")

    def target(self) -> tuple[Any, dict[str, Any]]:
        """What is given to a converter, with keywords of its own."""
        return self.function, {}

    def original(self) -> Function:
        """What JAX itself runs on the inputs."""
        return self.function


@dataclass(frozen=True, eq=False)
class Refusal:
    """A program that should be refused, with a message that has this word."""

    name: str
    function: Function
    specs: tuple[Any, ...]
    word: str
    keywords: dict[str, Any] = field(default_factory=dict)


def case(*specs: Any, x64: bool = False) -> Callable[[Function], Function]:
    """Register a function, which stays as it is."""

    def register(function: Function) -> Function:
        CASES.append(Case(theme_of(function.__module__), function.__name__.strip("_"), function, specs, x64))
        return function

    return register


def cases(*specs: Any, x64: bool = False, **functions: Function) -> None:
    """Register functions that have inputs of one kind, each by its name."""
    theme = theme_of(sys._getframe(1).f_globals["__name__"])
    CASES.extend(Case(theme, name.strip("_"), function, specs, x64) for name, function in functions.items())


def refused(word: str, *specs: Any, **keywords: Any) -> Callable[[Function], Function]:
    """Register a function that should be refused with this word in the message, upper case or not."""

    def register(function: Function) -> Function:
        REFUSALS.append(Refusal(function.__name__, function, specs, word, keywords))
        return function

    return register


def theme_of(module: str) -> str:
    """The theme that a module is named after."""
    return module.rpartition(".")[2].removeprefix("jax_").replace("_", " ")
