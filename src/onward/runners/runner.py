"""What a runner is, and the table of those that are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onward.advice.extras import is_installed
from onward.model import Model
from onward.registry import Registry
from onward.runners.calls import Run


@dataclass(frozen=True)
class Runner:
    """A way to execute models."""

    name: str
    about: str
    """One line for a list of runners."""
    package: str
    """What has to be installed, as it is imported."""
    prepare: Callable[[Model, str], Run]
    """The model, and the mode or '', to a function that runs it; raises `UnsupportedError` for what it cannot run.

    The function gets what `feeds.conform` makes of the inputs. Exceptions of the runtime need not be translated.
    """
    modes: Mapping[str, str]
    """The modes it knows, each with one line about it; any mode is let through where there is '*'."""
    start: Callable[[Model, str], Callable[[], Run]] | None = None
    """Begins on another thread what `prepare` does, where that leaves Python alone; gives what waits for it."""

    @property
    def installed(self) -> bool:
        return is_installed(self.package)


RUNNERS: Registry[Runner] = Registry("runner")


def register(runner: Runner, *, user: bool = False) -> Runner:
    """Make a runner known by its name; one of a `user` comes before one of Onward's."""
    return RUNNERS.register(runner.name, user=user)(runner)
