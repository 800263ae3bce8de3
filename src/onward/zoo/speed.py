"""How long a result takes beside its source: both in one process, by turns."""

from __future__ import annotations

import time
from collections.abc import Callable

from onward.conversion.sources import Original
from onward.errors import OnwardError
from onward.runners.calls import Run
from onward.runners.onnxruntime import on_threads
from onward.verification.data.sets import accepts, data_sets

SECONDS = 1.0
"""What the rounds take in all, as long as one round does not take more."""
THREADS = 1
"""Of either side: there are as many jobs at a time as processors."""
MOST = 200
"""Rounds."""


def source_run(original: Original) -> Run:
    """The source in its own runtime: that of its framework, or ONNX Runtime."""
    return original.run or on_threads(original.model, THREADS)


def ratio(run: Run, original: Original) -> float | None:
    """Time of the result ÷ time of the source, of the fastest of some rounds each; None where either does not run."""
    try:
        source = source_run(original)
        sets = data_sets(original.model, inputs=original.inputs, regimes=("random",), sizes=1, runs=accepts(source))
        feeds = next(sets).inputs
        return fastest(lambda: run(feeds), lambda: source(feeds))
    except OnwardError:
        return None


def fastest(result: Callable[[], object], source: Callable[[], object], seconds: float = SECONDS) -> float:
    """The least time of one ÷ the least of the other. Each is called once before: the first call may compile."""
    took(source)
    took(result)
    end = time.perf_counter() + seconds
    times: list[tuple[float, float]] = []
    while not times or (time.perf_counter() < end and len(times) < MOST):
        times.append((took(result), took(source)))
    return min(a for a, _ in times) / max(min(b for _, b in times), 1e-9)


def took(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
