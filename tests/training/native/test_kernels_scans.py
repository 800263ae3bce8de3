"""Compiled Scans against ONNX Runtime's own: recurrences of every form that is compiled, and those that are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from small_networks import onnx_of
from torch import nn

from onward.graph.build import Builder, Tensor
from onward.graph.scan import scan
from onward.model import Model
from onward.training.native.compiler import compiler, library
from onward.training.native.driver import DOMAIN, tell_threads
from onward.training.native.fusion import fused, whole_source
from onward.training.trainable import prepare

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")

Array = np.ndarray[Any, Any]
Sizes = dict[str, tuple[int | str, ...]]
Step = Callable[[Builder, dict[str, Tensor], Sequence[Tensor], Sequence[Tensor]], tuple[list[Tensor], list[Tensor]]]


def scanning(
    step: Step, states: Sizes, rows: Sizes, outside: Sizes, *, backwards: bool = False, dtype: Any = ir.DataType.FLOAT
) -> ir.Model:
    """A model of one Scan; all that it takes are inputs."""
    graph = ir.Graph([], [], nodes=[], name="scan", opset_imports={"": 21})
    model = ir.Model(graph, ir_version=10)
    op = Builder(model)
    given = {}
    for name, shape in {**states, **rows, **outside}.items():
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
        graph.inputs.append(value)
        given[name] = op.tensor(value)
    results = scan(
        op,
        lambda s, r: step(op, given, s, r),
        [given[name] for name in states],
        [given[name] for name in rows],
        backwards=backwards,
    )
    graph.outputs.extend([tensor.value for tensor in results])
    return model


def lstm(op: Builder, outside: dict[str, Tensor], states: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
    gates = op.many("Split", 4, op.Gemm(states[0], outside["w"], rows[0]), axis=1, num_outputs=4)
    i, o, f = map(op.Sigmoid, gates[:3])
    cell = f * states[1] + i * op.Tanh(gates[3])
    h = o * op.Tanh(cell)
    return [h, cell], [h, states[1], op.Concat(i, f, axis=1)]


def gru(op: Builder, outside: dict[str, Tensor], states: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
    """Two products behind each other, a vector, and parts of several widths."""
    z, r = op.many("Split", 2, op.Sigmoid(rows[0] + states[0] @ outside["w"]), axis=-1, num_outputs=2)
    n = op.Tanh(rows[1] + (r * states[0]) @ outside["v"] + outside["b"])
    h = op.where(n > 0, (1 - z) * n, n) + z * states[0]
    return [h], [h, op.Clip(n, op.like(-0.5, n), op.like(0.5, n))]


def sizes(name: str, time: int | str, batch: int | str, width: int) -> tuple[Step, Sizes, Sizes, Sizes]:
    state: Sizes = {"h": (batch, width)}
    if name == "lstm":
        return lstm, state | {"c": (batch, width)}, {"x": (time, batch, 4 * width)}, {"w": (width, 4 * width)}
    rows: Sizes = {"x": (time, batch, 2 * width), "y": (time, batch, width)}
    return gru, state, rows, {"w": (width, 2 * width), "v": (width, width), "b": (width,)}


def drawn(model: ir.Model, known: dict[str, int] | None = None) -> dict[str, Array]:
    """Inputs at random; matrices `w` and `v` such that what goes through them keeps its size."""
    random = np.random.default_rng(0)
    found = {}
    for value in model.graph.inputs:
        assert value.shape is not None and value.name is not None and value.dtype is not None
        shape = [d if isinstance(d, int) else (known or {})[str(d.value)] for d in value.shape]
        scale = shape[0] ** -0.5 if value.name in ("w", "v") else 0.5
        found[value.name] = (scale * random.normal(size=shape)).astype(value.dtype.numpy())
    return found


def run(model: ir.Model, feeds: dict[str, Array], library: Path | None = None, threads: int = 1) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if library is not None:
        options.register_custom_ops_library(str(library))
    session = onnxruntime.InferenceSession(Model(model).to_proto().SerializeToString(), options)
    return list(session.run(None, feeds))


def check(model: ir.Model, feeds: dict[str, Array], threads: int = 2) -> ir.Model:
    """The model with kernels, which gives the same."""
    found = fused(model)
    assert found is not None
    for ours, plain in zip(run(found[0], feeds, found[1], threads), run(model, feeds), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-6)
    return found[0]


@pytest.mark.parametrize("backwards", [False, True], ids=["forth", "back"])
@pytest.mark.parametrize("width", [1, 16, 100])
@pytest.mark.parametrize("batch", [1, 3, 8, 37])
@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_steps_are_those_of_the_graph(name: str, batch: int, width: int, backwards: bool) -> None:
    model = scanning(*sizes(name, 6, batch, width), backwards=backwards)
    made = check(model, drawn(model))
    assert [node.domain for node in made.graph] == [DOMAIN]


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_batches_and_times_may_have_names(name: str) -> None:
    model = scanning(*sizes(name, "t", "n", 24))
    for time, batch in ((1, 1), (9, 20)):
        made = check(model, drawn(model, {"t": time, "n": batch}))
        assert [node.domain for node in made.graph] == [DOMAIN]


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    model = scanning(*sizes("lstm", 9, 37, 48))
    found = fused(model)
    assert found is not None
    feeds = drawn(model)
    for one, two in zip(*(run(*found[:1], feeds, found[1], threads) for threads in (1, 2)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_what_is_no_number_stays_in_its_sequence() -> None:
    model = scanning(*sizes("lstm", 5, 12, 32))
    feeds = drawn(model)
    feeds["x"][2, 7, 3] = np.nan
    check(model, feeds)


def test_rows_that_are_computed_for_a_scan_become_part_of_its_steps() -> None:
    graph = ir.Graph([], [], nodes=[], name="scan", opset_imports={"": 21})
    model = ir.Model(graph, ir_version=10)
    op = Builder(model)
    shapes: Sizes = {"a": ("t", "n", 8), "b": ("t", "n", 8), "h": ("n", 16), "w": (16, 16), "v": (8,)}
    for name, shape in shapes.items():
        graph.inputs.append(ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(shape)))
    a, b, h, w, v = map(op.tensor, graph.inputs)
    shared = op.Tanh(b)
    rows = [op.Concat(a * v, (1 - a) * shared, axis=-1), shared]

    def step(states: Sequence[Tensor], given: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        new = op.Tanh(states[0] @ w + given[0])
        return [new], [new, given[1] * 2]

    graph.outputs.extend([tensor.value for tensor in (*scan(op, step, [h], rows, backwards=True), a * a)])
    made = check(model, drawn(model, {"t": 7, "n": 9}))
    assert sorted(node.domain or node.op_type for node in made.graph) == ["Mul", DOMAIN]
    graph.outputs.append(shared.value)
    made = check(model, drawn(model, {"t": 7, "n": 9}))
    assert sorted(node.domain or node.op_type for node in made.graph) == ["Mul", "Tanh", DOMAIN]


def other_form(op: Builder, outside: dict[str, Tensor], states: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
    return [op.Gemm(states[0], outside["w"], rows[0], transB=1)], [rows[0]]


def inner_product(op: Builder, outside: dict[str, Tensor], states: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
    return [states[0] @ op.Transpose(rows[0], perm=[1, 0]) @ rows[0]], [rows[0]]


def across_the_batch(op: Builder, outside: dict[str, Tensor], states: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
    return [states[0] + op.sum(rows[0], [0])], [rows[0]]


def turned_batch(op: Builder, outside: dict[str, Tensor], states: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
    first, second = op.many("Split", 2, states[0], axis=0, num_outputs=2)
    return [op.Concat(second, first, axis=0)], [rows[0] * 2]


def broadcast(op: Builder, outside: dict[str, Tensor], states: Sequence[Tensor], rows: Sequence[Tensor]) -> Any:
    return [states[0] * op.sum(outside["x"], [0, 2], keepdims=False)], [rows[0] * 2]


def is_left(model: ir.Model) -> bool:
    found = fused(model)
    return found is None or "Scan" in [node.op_type for node in found[0].graph]


@pytest.mark.parametrize("step", [other_form, inner_product, across_the_batch, turned_batch, broadcast])
def test_other_steps_are_left(step: Step) -> None:
    assert is_left(scanning(step, {"h": (8, 8)}, {"x": (5, 8, 8)}, {"w": (8, 8)}))


def test_other_scans_are_left() -> None:
    assert is_left(scanning(*sizes("lstm", 5, 4, 8), dtype=ir.DataType.DOUBLE))
    assert is_left(scanning(lstm, {"h": ("n", 8), "c": ("m", 8)}, {"x": (5, "n", 32)}, {"w": (8, 32)}))
    for key in ("scan_input_directions", "scan_input_axes"):
        model = scanning(*sizes("lstm", 4, 4, 8))
        assert not is_left(model)
        node = next(node for node in model.graph if node.op_type == "Scan")
        node.attributes[key] = ir.AttrInt64s(key, [1])
        assert is_left(model)


class Sequences(nn.Module):
    """Sequences of vectors to classes."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(6, 24, batch_first=True, **options)
        self.head = nn.Linear(48 if options.get("bidirectional") else 24, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0].mean(1))


@pytest.mark.parametrize(
    ("kind", "options"), [("LSTM", {"bidirectional": True, "num_layers": 2}), ("GRU", {})], ids=["LSTM", "GRU"]
)
def test_gradients_of_recurrent_layers_are_those_of_pytorch(kind: str, options: dict[str, Any]) -> None:
    """Of a batch whose size has a name; no Scan is left."""
    torch.manual_seed(0)
    net, x, labels = Sequences(kind, **options), torch.randn(13, 9, 6), torch.randint(0, 3, (13,))
    made = prepare(onnx_of(net, x))
    found = fused(made.gradients)
    assert found is not None and not {"Scan", "LSTM"} & {node.op_type for node in found[0].graph}
    feeds = {**made.parameters, "x": x.numpy(), "labels": labels.numpy()}
    names = [value.name for value in found[0].graph.outputs]
    ours = dict(zip(names, run(found[0], feeds, found[1], threads=2), strict=True))
    nn.functional.cross_entropy(net(x), labels).backward()
    for name, weight in net.named_parameters():
        assert weight.grad is not None
        np.testing.assert_allclose(ours[f"{name}.grad"], weight.grad, rtol=1e-4, atol=1e-7, err_msg=name)


WHERE = """\
static void where(const Call *c, int64_t begin, int64_t end, char *scratch) {
  for (int64_t row = begin; row < end; row++) ((float *)c->out[0])[row] = begin;
}
static size_t where_scratch(int64_t rows) { return 64; }
static int where_types[] = {1, 1}, where_ranks[] = {1, 1}, where_axes[] = {0, 0}, where_one[] = {0};
static const Kernel where_kernel = {"where", 1, 1, 0, 1, 1, 1, 0, where_types, where_ranks, where_axes, where_one,
  where_one, where, NULL, 1, where_one, where_scratch};
"""
"""A kernel that tells at which row its part begins."""


@pytest.mark.parametrize("threads", [1, 3])
def test_a_kernel_with_memory_of_its_own_has_a_part_for_each_thread(threads: int) -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1 << 16]))
    y = ir.Value(name="y", type=x.type, shape=x.shape)
    graph = ir.Graph([x], [y], nodes=[], name="where", opset_imports={"": 21, DOMAIN: 1})
    graph.append(ir.Node(DOMAIN, "where", [x], outputs=[y]))
    tell_threads(graph, threads)
    path = library(whole_source({"where": WHERE}))
    begins = run(ir.Model(graph, ir_version=10), {"x": np.zeros(1 << 16, np.float32)}, path, threads=2)[0]
    assert len(set(begins)) == threads
