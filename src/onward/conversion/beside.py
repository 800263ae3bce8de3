"""What an ONNX file takes beside the one that it was made of: size, nodes, time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.model import Model
    from onward.runners.calls import Inputs, Run

SECONDS = 0.5
"""How long original and result run in turns, to say which is faster."""


def sizes(model: Model, made: Model) -> str:
    from onward.graph.walk import all_nodes

    before, after = model.nbytes, made.nbytes
    share = f" ({after / before:.2f} of it)" if before else ""
    nodes = [sum(1 for _ in all_nodes(each.ir.graph)) for each in (model, made)]
    return f"weights: {before:,} → {after:,} bytes{share}; nodes: {nodes[0]:,} → {nodes[1]:,}"


def times(model: Model, made: Model, inputs: Inputs, fed: Inputs) -> Iterator[str]:
    """How long the result runs beside the original, in turns; nothing where it does not run here."""
    from onward.runners import prepare

    try:
        runs = [prepare("onnxruntime", each) for each in (model, made)]
        feeds = [inputs, fed]
        for run, given in zip(runs, feeds, strict=True):
            run(given)
    except OnwardError:
        return
    ratios: list[float] = []
    end = time.perf_counter() + SECONDS
    while not ratios or time.perf_counter() < end:
        before, after = (_timed(run, given) for run, given in zip(runs, feeds, strict=True))
        ratios.append(after / before)
    yield f"time of a run in ONNX Runtime: {statistics.median(ratios):.2f} of the original's"


def _timed(run: Run, inputs: Inputs) -> float:
    start = time.perf_counter()
    run(inputs)
    return time.perf_counter() - start
