"""What a runtime can take of a graph: which nodes it refuses and why, and which runner executes a part on it."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from onward import runners
from onward.backends.coverage import coverage, covered
from onward.canon.lower import key_of
from onward.errors import InvalidDataError
from onward.gate import harmless, opens
from onward.graph.walk import all_nodes, inner_graphs
from onward.model import Model
from onward.partitioning.graph import Graph
from onward.partitioning.trial import refused_by_trial

LARGEST_TABLE = 1 << 20
"""Bytes of a table of ops."""
Refused = dict[str, str]
"""By the name of a node: why it is not taken."""


@dataclass(frozen=True)
class Capability:
    """A runtime."""

    name: str
    """As reports and files call it: 'openvino', 'tensorflow:tflite', 'trt-10'."""
    refused: Callable[[Model, Graph], Refused]
    """The nodes of a model that it does not take, as far as that can be told before they are run."""
    runner: str | None
    """What executes a part; None where the runtime is not here."""


def capability(name: str, table: Path | None = None) -> Capability:
    """The runtime of a runner's name, or one that is known by a table of its ops."""
    if table is not None:
        ops = read_table(table)
        return Capability(name, lambda model, graph: _not_in(graph, ops, table.name), None)
    runner, _ = runners.find(name)
    return Capability(name, lambda model, graph: _refused(model, graph, name, runner.name), name)


def _refused(model: Model, graph: Graph, name: str, kind: str) -> Refused:
    """What a backend of ours has no rule for, and what the runtime itself does not take when it is offered the rest."""
    lacking = _uncovered(model, graph, kind) if kind in covered() else {}

    def offer(part: Model) -> None:
        runners.prepare(name, part)

    left = [node for node in graph.nodes if node.name not in lacking]
    return {**lacking, **refused_by_trial(graph, left, offer)}


def _uncovered(model: Model, graph: Graph, backend: str) -> Refused:
    reasons = {one.op: one.why for one in coverage(model, backend) if one.status == "unsupported"}
    found: Refused = {}
    for node in graph.nodes:
        ops = [key_of(one) for one in (node, *(n for inner in inner_graphs(node) for n in all_nodes(inner)))]
        if why := next((f"{op}: {reasons[op]}" for op in ops if op in reasons), ""):
            found[node.name or ""] = why
    return found


def _not_in(graph: Graph, ops: dict[str, str], table: str) -> Refused:
    found: Refused = {}
    for node in graph.nodes:
        op = key_of(node)
        if op not in ops:
            found[node.name or ""] = f"{op} is not in {table}"
        elif ops[op]:
            found[node.name or ""] = ops[op]
    return found


@opens(harmless)
def read_table(path: Path) -> dict[str, str]:
    """Ops of a runtime, from a file with a column `op`, and perhaps `refused`: why an op is not taken, or empty."""
    if path.stat().st_size > LARGEST_TABLE:
        raise InvalidDataError(f"{path}: a table of ops has less than {LARGEST_TABLE >> 20} MB")
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidDataError(f"{path}: it is not a table of text: {error}") from error
    if not rows or "op" not in rows[0]:
        raise InvalidDataError(f"{path}: it has no column 'op'; write a heading 'op,refused' and an op in each line")
    return {row["op"].strip().removeprefix("ai.onnx::"): (row.get("refused") or "").strip() for row in rows}
