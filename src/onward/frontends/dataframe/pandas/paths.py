"""Functions of single values, followed through all their branches.

A function that is applied to each value of a column may branch on it. It is run once for each way through its branches,
on a stand-in for the value; where the ways part, the model chooses between their results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.dataframe.columns.column import Column, both, either, truth
from onward.graph.build import Tensor

MOST = 128
"""Ways through a function that are followed."""


@dataclass
class Fork:
    """Where ways part: the condition, and what lies behind it."""

    condition: Column
    yes: Any
    no: Any


NO_KEY = object()


class Raised:
    """A way that ends in an error."""


@dataclass
class Paths:
    """The way that is being followed, and where the function fails."""

    prefix: list[bool] = field(default_factory=list)
    taken: list[tuple[Column, bool]] = field(default_factory=list)
    failing: list[Tensor] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    """What the function may look up a value by, in dictionaries that it knows."""
    assumed: dict[Any, Any] = field(default_factory=dict)
    """By value, the key that it is taken to equal on this way; NO_KEY if it is none."""
    code: CodeType | None = None
    """The code of the function itself, apart from what it calls."""
    written: list[Any] = field(default_factory=list)
    """The values that became parts of texts by f-strings."""

    def decide(self, condition: Column) -> bool:
        """The branch to take: as the prefix says, or the first one that was not taken yet."""
        if len(self.taken) > MOST:
            raise UnsupportedError(
                "the function has more branches than can be followed, or a loop that depends on data"
            )
        place = len(self.taken)
        choice = self.prefix[place] if place < len(self.prefix) else True
        self.taken.append((condition, choice))
        return choice

    def fail_where(self, bad: Tensor | None) -> None:
        """The function fails there, if its way leads there."""
        if bad is None:
            return
        found: Tensor | None = bad
        for condition, choice in self.taken:
            mask = truth(condition)
            found = both(found, mask if choice else mask.op.Not(mask))
        assert found is not None
        self.failing.append(found)


def explored(run: Callable[[Paths], Any]) -> tuple[Any, Tensor | None]:
    """What a function gives, with a `Fork` wherever it branches; and where it fails, if it can."""
    failing: list[Tensor] = []
    count = 0

    def below(prefix: list[bool]) -> Any:
        nonlocal count
        count += 1
        if count > MOST:
            raise UnsupportedError(f"the function has more than {MOST} ways through its branches")
        paths = Paths(prefix)
        result = run(paths)
        failing.extend(paths.failing)
        # From the last branch back to where this way began: each has another side.
        for place in range(len(paths.taken) - 1, len(prefix) - 1, -1):
            condition, choice = paths.taken[place]
            other = below([*(c for _, c in paths.taken[:place]), not choice])
            result = Fork(condition, result, other) if choice else Fork(condition, other, result)
        return result

    result = below([])
    found: Tensor | None = None
    for mask in failing:
        found = either(found, mask)
    return result, found


@contextmanager
def following(trace: Any, paths: Paths) -> Iterator[None]:
    before, trace.paths = trace.paths, paths
    try:
        yield
    finally:
        trace.paths = before
