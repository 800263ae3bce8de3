"""Runs that take turns, so that whatever else the machine does slows all of them down alike."""

import math
import statistics
import time
from collections.abc import Callable, Sequence

ROUNDS, SECONDS, TURN = 11, 2.0, 0.02
"""The turns of each at least, all of them together, and the length of a turn at least."""


def ratios(
    runs: Sequence[Callable[[], object]],
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    *,
    fewest: int = ROUNDS,
    longest: float = math.inf,
) -> list[float]:
    """The time of each in that of the first, of the processor: the median over the turns.

    After the longest time for all of them, `fewest` turns are enough.
    """
    for run in runs:
        run()
    turns: list[list[float]] = []
    begin = time.perf_counter()
    while len(turns) < (rounds if _since(begin) < longest else fewest) or _since(begin) < seconds:
        first = len(turns) % len(runs)
        spent = {i: _once(runs[i]) for i in [*range(first, len(runs)), *range(first)]}
        turns.append([spent[i] for i in range(len(runs))])
    return [statistics.median(turn[i] / turn[0] for turn in turns) for i in range(len(runs))]


def _since(begin: float) -> float:
    return time.perf_counter() - begin


def _once(run: Callable[[], object]) -> float:
    done, start = 0, time.process_time()
    while (spent := time.process_time() - start) < TURN:
        run()
        done += 1
    return spent / done
