"""Ranks that do not follow from the graph, such as after a Squeeze without axes: what they were when the model ran.

A runtime that wants to know the rank of what it is fed is told so. Where the rank differs between data sets nothing is
said, and a part that meets another rank later fails: it never goes on with the wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward import runners
from onward.partitioning.graph import Graph
from onward.runners.calls import Inputs, Outputs


def computed(graph: Graph, names: Sequence[str], samples: Sequence[Inputs], runner: str) -> list[Outputs]:
    """What a runner computes for values inside a graph, of each of these feeds."""
    piece = graph.cutter.piece(names, samples[0])
    used = {value.name for value in piece.ir.graph.inputs}
    run = runners.prepare(runner, piece)
    return [run({name: value for name, value in sample.items() if name in used}) for sample in samples]


def observe_ranks(graph: Graph, samples: Sequence[Inputs], runner: str) -> None:
    """Give values of unknown rank the rank that they have on all data sets, with open dimensions."""
    cutter = graph.cutter
    made = [value for node in graph.nodes for value in node.outputs if value.name]
    unknown = [value.name or "" for value in made if value.shape is None and isinstance(value.type, ir.TensorType)]
    if not unknown:
        return
    seen = computed(graph, unknown, samples, runner)
    for name in unknown:
        ranks = {np.ndim(found[name]) for found in seen}
        if len(ranks) == 1:
            cutter.values[name].shape = ir.Shape([None] * ranks.pop())
