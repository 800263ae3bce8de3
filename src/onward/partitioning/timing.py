"""How long each part of a divided model takes, and the whole beside it; measured in turns, in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from onward import runners
from onward.partitioning.divide import Partition
from onward.runners.calls import Inputs, Run

ROUNDS = 5
SECONDS = 5.0
"""After which no further round begins."""


@dataclass(frozen=True)
class Times:
    """Seconds, the median of some rounds."""

    parts: tuple[float, ...]
    chain: float
    """All parts, and what goes between them."""
    whole: float
    """The fallback alone."""

    @property
    def pays(self) -> bool:
        return self.chain < self.whole


def measure(made: Partition) -> Times:
    """Run the parts, the chain and the whole in turns."""
    parts = [runners.prepare(link.runner, p.model) for link, p in zip(made.chain.links, made.parts, strict=True)]
    whole = runners.prepare(made.fallback, made.model)
    chain = made.chain.runner(parts)
    seen: list[list[float]] = [[] for _ in parts]
    alone: list[float] = []
    together: list[float] = []
    watched = made.chain.runner([_timed(run, times) for run, times in zip(parts, seen, strict=True)])
    chain(made.sample)
    whole(made.sample)
    began = time.perf_counter()
    for _ in range(ROUNDS):
        watched(made.sample)
        together.append(_seconds(lambda: chain(made.sample)))
        alone.append(_seconds(lambda: whole(made.sample)))
        if time.perf_counter() - began > SECONDS:
            break
    middle = statistics.median
    return Times(tuple(map(middle, seen)), middle(together), middle(alone))


def _timed(run: Run, times: list[float]) -> Run:
    def again(inputs: Inputs) -> object:
        began = time.perf_counter()
        found = run(inputs)
        times.append(time.perf_counter() - began)
        return found

    return again  # type: ignore[return-value]


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
