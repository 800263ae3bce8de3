"""Random models with control flow, divided at random: each node once, parts in order, and the same results."""

import cProfile
import os
import pstats
import random

import numpy as np
import onnx_ir as ir
import pytest
import random_models

import onward
from onward import runners
from onward.partitioning.graph import Graph, graph_of, ready
from onward.partitioning.split import Part, split
from onward.partitioning.stages import FALLBACK, TARGET
from onward.runners.chain import Chain, Link

GRAPHS = int(os.environ.get("ONWARD_GRAPHS", "160"))
"""How many are tried: 5000 take a few minutes."""


def divided(seed: int, size: int) -> tuple[onward.Model, Graph, set[str], list[Part]]:
    whole = ready(onward.load(random_models.model(seed, size)))
    graph = graph_of(whole)
    draw = random.Random(seed)
    refused = {node.name or "" for node in graph.nodes if draw.random() < draw.choice([0.1, 0.4])}
    return whole, graph, refused, split(graph, refused)


def chain_of(whole: onward.Model, parts: list[Part]) -> Chain:
    links = tuple(Link(f"{i}.onnx", "onnxruntime", tuple(p.inputs), tuple(p.outputs)) for i, p in enumerate(parts))
    graph = whole.ir.graph
    given = tuple(v.name or "" for v in graph.inputs if not v.is_initializer())
    return Chain(links, given, tuple(v.name or "" for v in graph.outputs))


@pytest.mark.parametrize("part", range(4))
def test_random_models_are_divided_into_parts_that_are_the_same_together(part: int) -> None:
    for seed in range(part * GRAPHS // 4, (part + 1) * GRAPHS // 4):
        whole, graph, refused, parts = divided(seed, 3 + seed % 20)
        check_parts(graph, refused, parts)
        feeds = random_models.feeds(seed)
        run = chain_of(whole, parts).runner([runners.prepare("onnxruntime", p.model) for p in parts])
        expected = runners.prepare("onnxruntime", whole)(feeds)
        found = run(feeds)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=f"seed {seed}: {name}")


def check_parts(graph: Graph, refused: set[str], parts: list[Part]) -> None:
    """Each node that is of use is in one part, on a side that takes it, and reads what is there by then."""
    given = [node for part in parts for node in part.nodes]
    assert len(given) == len(set(given)) and set(given) <= set(graph.nodes)
    there = {value.name for value in graph.cutter.inputs}
    for part in parts:
        assert part.side == FALLBACK or not {node.name for node in part.nodes} & refused
        assert set(part.inputs) <= there
        there |= set(part.outputs)
    assert {value.name for value in graph.cutter.outputs} <= there


def test_a_value_that_only_a_body_reads_crosses_the_boundary() -> None:
    seed = next(s for s in range(1000) if any(n.op_type == "If" for n in random_models.model(s, 12).graph.node))
    whole = ready(onward.load(random_models.model(seed, 12)))
    graph = graph_of(whole)
    branch = next(node for node in graph.nodes if node.op_type == "If")
    parts = split(graph, {branch.name or ""})
    home = next(part for part in parts if branch in part.nodes)
    captured = {value.name for value in graph.cutter.reads(branch) if value in graph.cutter.varying}
    own = {value.name for node in home.nodes for value in node.outputs}
    assert captured <= set(home.inputs) | own


def test_a_part_computes_sizes_of_what_it_has_itself() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[n, 4] x) => (float[n, 4] z) {
        a = Relu(x)
        s = Shape(a)
        b = Neg(a)
        z = Reshape(b, s)
    }"""
    import onnx

    graph = graph_of(ready(onward.load(onnx.parser.parse_model(text))))
    named = {node.op_type: node.name or "" for node in graph.nodes}
    first, second = split(graph, {named["Relu"]})
    assert (first.side, second.side) == (FALLBACK, TARGET)
    assert second.inputs == ["a"]
    assert "Shape" in [node.op_type for node in second.model.ir.graph]


def test_small_parts_go_to_the_fallback() -> None:
    import onnx

    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (float[4] z) {
        a = Relu(x)
        b = Neg(a)
        c = Abs(b)
        d = Sigmoid(c)
        z = Tanh(d)
    }"""
    graph = graph_of(ready(onward.load(onnx.parser.parse_model(text))))
    named = {node.op_type: node.name or "" for node in graph.nodes}
    assert [part.side for part in split(graph, {named["Neg"]}, 2)] == [FALLBACK, TARGET]
    assert [part.side for part in split(graph, {named["Neg"]}, 4)] == [FALLBACK]


def test_time_grows_with_the_graph() -> None:
    """Counted in calls of functions: a clock would count what else the machine does."""

    def calls(size: int) -> int:
        graph = ir.Graph([value := ir.val("x", ir.DataType.FLOAT, [4])], [], nodes=[], opset_imports={"": 21})
        refused = set()
        for place in range(size):
            node = ir.node("Relu" if place % 7 else "Neg", [value], name=f"n{place}")
            value = node.outputs[0]
            value.name = f"v{place}"
            graph.append(node)
            if place % 97 == 0:
                refused.add(f"n{place}")
        graph.outputs.append(value)
        value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([4])
        made = graph_of(ready(onward.Model(ir.Model(graph, ir_version=10))))
        profile = cProfile.Profile()
        profile.runcall(split, made, refused)
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    assert calls(4_000) < 5 * calls(1_000)
