"""The choice of layouts is the best there is, and is made in time that grows with the graph."""

import itertools
import time

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from referee import transposes

from onward.graph.infer import infer
from onward.layout.channels_last import to_channels_last
from onward.layout.maxflow import SINK, SOURCE, Network
from onward.layout.orders import Layout
from onward.layout.partition import Partition
from onward.layout.roles import TENSORFLOW
from onward.model import load

Value = tuple[int, list[int], int]
"""Who makes it, who wants it, what it costs; -1 and -2 are the two layouts."""


def random_values(rng: np.random.Generator, nodes: int) -> list[Value]:
    made = []
    for _ in range(2 * nodes):
        producer, *wanted = (int(i) for i in rng.integers(-2, nodes, rng.integers(2, 5)))
        made.append((producer, wanted, int(rng.integers(1, 20))))
    return made


def cost(values: list[Value], first: set[int]) -> int:
    is_first = first | {-1}
    return sum(c for made, wanted, c in values if any((w in is_first) != (made in is_first) for w in wanted))


@pytest.mark.parametrize("seed", range(30))
def test_no_choice_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 8))
    values = random_values(rng, count)
    nodes = [ir.Node("", f"Op{i}", []) for i in range(count)]
    sides = {-1: Layout.FIRST, -2: Layout.LAST, **dict(enumerate(nodes))}
    subsets = itertools.chain.from_iterable(itertools.combinations(range(count), k) for k in range(count + 1))
    least = min(cost(values, set(chosen)) for chosen in subsets)
    for preferred in Layout:
        cut = Partition()
        for made, wanted, price in values:
            cut.value(sides[made], [sides[w] for w in wanted], price)
        decided = cut.decide(preferred)
        found = {i for i, node in enumerate(nodes) if decided.get(node, Layout.FIRST) is Layout.FIRST}
        assert cost(values, found) == least


def test_what_nothing_ties_down_is_left_out() -> None:
    a, b, c = (ir.Node("", "Op", []) for _ in range(3))
    cut = Partition()
    cut.value(a, [b], 5)
    cut.value(Layout.LAST, [c], 5)
    assert cut.decide(Layout.LAST) == {c: Layout.LAST}


def test_flow_goes_back_where_that_is_better() -> None:
    """The shortest path first taken has to be undone."""
    network = Network()
    a, b = network.node(), network.node()
    for tail, head, room in ((SOURCE, a, 3), (SOURCE, b, 2), (a, b, 5), (a, SINK, 2), (b, SINK, 3)):
        network.edge(tail, head, room)
    assert network.maximum_flow() == 5
    assert network.from_source() == {SOURCE} and network.to_sink() == {SINK}


def long_model(nodes: int) -> onnx.ModelProto:
    """Residual blocks with a convolution now and then, and layer norms that want tensors as they are."""
    made, last = [], "x"
    weights = {"w": np.ones((4, 4, 1, 1)), "b": np.ones((4, 1, 1)), "scale": np.ones(8)}
    for i in range(nodes):
        op, inputs = {
            0: ("Conv", [last, "w"]),
            1: ("Relu", [last]),
            2: ("Add", [last, f"v{i - 17}" if i > 17 else "x"]),
            3: ("LayerNormalization", [last, "scale"]) if i % 60 == 3 else ("Mul", [last, "b"]),
        }[i % 4 if i % 20 < 4 else 1 + i % 3]
        made.append(helper.make_node(op, inputs, [f"v{i}"]))
        last = f"v{i}"
    graph = helper.make_graph(
        made,
        "long",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])],
        [onnx.ValueInfoProto(name=last)],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def seconds(nodes: int) -> float:
    model = load(long_model(nodes)).ir
    infer(model)
    began = time.process_time()
    to_channels_last(model, TENSORFLOW)
    spent = time.process_time() - began
    assert transposes(model) > nodes / 100
    return spent


def test_time_grows_with_the_graph() -> None:
    """Ten times the nodes in some ten times the time, where a quadratic step would take a hundred."""
    assert seconds(20_000) < 25 * min(seconds(2_000) for _ in range(3))
