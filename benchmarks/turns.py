"""Runs that take turns, so that whatever else the machine does slows all of them down alike."""

import statistics
import time
from collections.abc import Callable, Sequence

ROUNDS, SECONDS, TURN = 11, 2.0, 0.02
"""The turns of each at least, all of them together, and the length of a turn at least."""


def ratios(runs: Sequence[Callable[[], object]]) -> list[float]:
    """The time of each in that of the first, of the processor: the median over the turns."""
    for run in runs:
        run()
    turns: list[list[float]] = []
    end = time.perf_counter() + SECONDS
    while len(turns) < ROUNDS or time.perf_counter() < end:
        first = len(turns) % len(runs)
        spent = {i: _once(runs[i]) for i in [*range(first, len(runs)), *range(first)]}
        turns.append([spent[i] for i in range(len(runs))])
    return [statistics.median(turn[i] / turn[0] for turn in turns) for i in range(len(runs))]


def _once(run: Callable[[], object]) -> float:
    done, start = 0, time.process_time()
    while (spent := time.process_time() - start) < TURN:
        run()
        done += 1
    return spent / done
