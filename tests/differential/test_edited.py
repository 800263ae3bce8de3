"""Random graphs taken apart, put together again and compared: parts compute what the whole does, and a difference is
told where there is one and only there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import onward
from differential.builder import Graph, free_names, session
from differential.compare import difference, random_graph
from differential.test_rewritten import OPEN_ENDS
from onward.errors import OnwardError
from onward.model import Model

GRAPHS, PARTS = 200, 2


@pytest.mark.parametrize("part", range(PARTS))
def test_parts_compute_what_the_whole_does(part: int) -> None:
    tried = 0
    for number in range(part, GRAPHS, PARTS):
        g, proto, made = _graph(number)
        if len(made) < 2:
            continue
        rng = np.random.default_rng([22, number, 1])
        start, end = (str(name) for name in rng.choice(made, 2, replace=False))
        beside = [value.name for value in proto.graph.input]
        tried += sum(_right(number, g, _part(proto, starts, [end])) for starts in ([], [start], [start, *beside]))
    assert tried > GRAPHS // PARTS


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_cut_in_two_can_be_joined_again(part: int) -> None:
    tried = 0
    for number in range(part, GRAPHS, PARTS):
        g, proto, made = _graph(number)
        rng = np.random.default_rng([22, number, 2])
        cut = str(rng.choice(made)) if made else ""
        ends = [value.name for value in proto.graph.output if value.name in made and value.name != cut]
        first = _part(proto, [], [cut]) if ends else None
        beside = [value.name for value in proto.graph.input]
        second = None if first is None else _part(proto, [cut], ends) or _part(proto, [cut, *beside], ends)
        if first is not None and second is not None:
            tried += _right(number, g, onward.merge(first, second, {cut: cut}, prefix="second/"))
    assert tried > GRAPHS // PARTS // 10


def test_a_difference_is_told_where_there_is_one() -> None:
    for number in range(GRAPHS):
        _, proto, made = _graph(number)
        other = onnx.ModelProto()
        other.CopyFrom(proto)
        order = _shuffled(proto, np.random.default_rng([22, number, 3]))
        del other.graph.node[:]
        other.graph.node.extend(order)
        found = onward.diff(proto, other).changes
        assert not found, f"graph {number}: {found}\n{onnx.printer.to_text(proto)}"
        read = {name for node in proto.graph.node for name in free_names(node)}
        ends = [value.name for value in proto.graph.output if value.name in made and value.name not in read][:2]
        if len(ends) == 2:
            _swap(other, dict(zip(ends, reversed(ends), strict=True)))
            found = onward.diff(proto, other).changes
            assert {change.name for change in found if change.part == "output"} >= {*ends}, f"graph {number}: {found}"


def _graph(number: int) -> tuple[Graph, onnx.ModelProto, list[str]]:
    """A graph, its model, and the tensors that nodes of it make."""
    g = random_graph([22, number])
    proto, _, _ = g.model()
    names = [name for node in proto.graph.node for name in node.output if name]
    return g, proto, [name for name in names if isinstance(g.values[name].data, np.ndarray)]


def _part(proto: onnx.ModelProto, starts: Sequence[str], ends: Sequence[str]) -> Model | None:
    """A part, or None where values are asked for that are not enough."""
    try:
        return onward.extract(proto, starts, ends)
    except OnwardError:
        return None


def _right(number: int, g: Graph, part: Model | None) -> bool:
    """Whether a part could be run; what it computes has to be right."""
    if part is None:
        return False
    proto = part.to_proto()
    held = {tensor.name for tensor in proto.graph.initializer}
    values = {name: value for name, value in g.values.items() if value.data is not None}
    feeds: dict[str, Any] = {
        v.name: values[v.name.removeprefix("second/")].data for v in proto.graph.input if v.name not in held
    }
    try:
        results = session(proto).run(None, feeds)
    except Exception as error:  # ONNX Runtime has a class for each kind of failure
        assert any(words in str(error) for words in OPEN_ENDS), f"graph {number}: {error}"
        return False
    for end, result in zip(proto.graph.output, results, strict=True):
        wrong = difference(result, values[end.name.removeprefix("second/")])
        assert not wrong, f"graph {number}: {wrong}\n{onnx.printer.to_text(proto)}"
    return True


def _shuffled(proto: onnx.ModelProto, rng: np.random.Generator) -> list[onnx.NodeProto]:
    """The nodes in another order in which they can run."""
    known = {value.name for value in proto.graph.input} | {tensor.name for tensor in proto.graph.initializer}
    left, order = list(proto.graph.node), []
    while left:
        ready = [node for node in left if known.issuperset(free_names(node))]
        node = ready[int(rng.integers(len(ready)))]
        left = [other for other in left if other is not node]
        order.append(node)
        known.update(node.output)
    return order


def _swap(proto: onnx.ModelProto, names: dict[str, str]) -> None:
    """Let one node make what another makes."""
    for node in proto.graph.node:
        node.output[:] = [names.get(name, name) for name in node.output]
