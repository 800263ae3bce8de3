"""Parts of the way forward are computed anew on the way back: less is alive, and training is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import numpy_helper
from test_lifetimes import FLOATS, most_alive

from onward.cli import main
from onward.errors import NothingSavedWarning, OnwardError
from onward.training import SGD, Trainer, prepare
from onward.training.runtime import frozen, session
from onward.training.speed.peak import known_bytes, planned_peak
from onward.training.speed.segments import recompute_segments

LAYERS, WIDTH = 16, 8
ENDS = ("", ".anew")
RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal((4, WIDTH)).astype(np.float32) for _ in range(2))


def network(dropout: bool = False) -> onnx.ModelProto:
    """Layers on a stream, of several ops each."""
    nodes, weights = [], []
    for i in range(LAYERS):
        matrix = RNG.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH
        weights.append(numpy_helper.from_array(matrix, f"layers.{i}.weight"))
        nodes += [
            oh.make_node("MatMul", [f"x{i}", f"layers.{i}.weight"], [f"a{i}"]),
            oh.make_node("Tanh", [f"a{i}"], [f"b{i}"]),
            oh.make_node("Dropout", [f"b{i}"], [f"d{i}"]) if dropout else oh.make_node("Exp", [f"b{i}"], [f"d{i}"]),
            oh.make_node("Sin", [f"d{i}"], [f"c{i}"]),
            oh.make_node("Add", [f"x{i}", f"c{i}"], [f"x{i + 1}"], name=f"layers.{i}.end"),
        ]
    ends = [oh.make_tensor_value_info(name, FLOATS, ["n", WIDTH]) for name in ("x0", f"x{LAYERS}")]
    graph = oh.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    return oh.make_model(graph, ir_version=10, opset_imports=[oh.make_opsetid("", 21)])


def losses(model: onnx.ModelProto, recompute: str | None, kernels: bool = False) -> list[float]:
    trainer = Trainer(prepare(model, "mse", SGD(lr=0.1)), recompute=recompute, kernels=kernels)
    return [trainer.step({"x0": X, "labels": Y}) for _ in range(3)]


@pytest.mark.parametrize("how", ["layers", "sqrt", "layers.*.end"])
def test_training_is_the_same_and_holds_less(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[tuple[int, int]] = []

    def watched(graph: onnx.GraphProto, loss: str, how: str) -> bool:
        before = most_alive(graph)
        changed = recompute_segments(graph, loss, how)
        alive.append((before, most_alive(graph)))
        return changed

    monkeypatch.setattr(session, "recompute_segments", watched)
    model = network()
    assert losses(model, how) == pytest.approx(losses(model, None), rel=1e-6)
    before, after = alive[0]
    assert after < 0.7 * before


def test_what_is_drawn_is_not_drawn_again() -> None:
    """Else the way back would be of another dropout."""
    model = network(dropout=True)
    assert losses(model, "layers") == pytest.approx(losses(model, None), rel=1e-6)


def test_weights_wait_for_what_is_computed_anew() -> None:
    model = network()
    assert losses(model, "layers", kernels=True) == pytest.approx(losses(model, None, kernels=False), rel=1e-5)


def way_and_back(layers: int, size: int, statistics: bool) -> onnx.GraphProto:
    """Layers forwards and backwards in order, a mean of each for running statistics."""
    nodes, shapes = [], {}
    for i in range(layers):
        nodes += [oh.make_node("Exp", [f"y{i}"], [f"e{i}"]), oh.make_node("Sin", [f"e{i}"], [f"s{i}"])]
        nodes += [oh.make_node("Cos", [f"s{i}"], [f"c{i}"]), oh.make_node("Tanh", [f"c{i}"], [f"y{i + 1}"])]
        shapes |= {f"{kind}{i}": [size] for kind in "ysec"}
        if statistics:
            nodes.append(oh.make_node("ReduceMean", [f"e{i}"], [f"mean{i}"], keepdims=0))
    nodes.append(oh.make_node("ReduceSum", [f"y{layers}"], ["loss"], keepdims=0))
    nodes.append(oh.make_node("Neg", [f"y{layers}"], [f"g{layers}"]))
    shapes |= {f"y{layers}": [size], f"g{layers}": [size]}
    for i in reversed(range(layers)):
        nodes.append(oh.make_node("Sum", [f"g{i + 1}", f"e{i}", f"s{i}", f"c{i}"], [f"g{i}"]))
        shapes[f"g{i}"] = [size]
    names = ["loss", "g0", *(f"mean{i}" for i in range(layers) if statistics)]
    outputs = [oh.make_tensor_value_info(name, FLOATS, [size] if name == "g0" else []) for name in names]
    known = [oh.make_tensor_value_info(name, FLOATS, shape) for name, shape in shapes.items() if name not in names]
    start = oh.make_tensor_value_info("y0", FLOATS, [size])
    return oh.make_graph(nodes, "layers", [start], outputs, value_info=known)


@pytest.mark.parametrize("statistics", [False, True])
@pytest.mark.parametrize("how", ["layers", "sqrt", "y*"])
def test_no_more_than_some_layers_are_held(how: str, statistics: bool) -> None:
    """Running statistics read what the way forward gives: nothing is computed anew for them."""
    graph = way_and_back(16, 1 << 20, statistics)
    before = planned_peak(graph, known_bytes(graph))
    assert recompute_segments(graph, "loss", how)
    assert planned_peak(graph, {f"{name}{end}": size for name, size in known_bytes(graph).items() for end in ENDS}) < (
        0.6 * before
    )
    onnx.checker.check_graph(graph)
    names = [node.output[0] for node in graph.node]
    assert not [name for name in names[: names.index("loss")] if name.endswith(".anew")]


def test_what_is_small_is_held() -> None:
    """Where the means of large values are all that the way back reads, the large ones are not computed anew."""
    nodes = [oh.make_node("Exp", ["y0"], ["y1"])]
    for i in range(1, 40):
        nodes.append(oh.make_node("ReduceMean", [f"y{i}"], [f"m{i}"], keepdims=0))
        nodes.append(oh.make_node("Add", [f"y{i}", f"m{i}"], [f"x{i}"]))
        nodes += [oh.make_node("Exp", [f"x{i}"], [f"e{i}"]), oh.make_node("Sin", [f"e{i}"], [f"y{i + 1}"])]
    nodes += [oh.make_node("ReduceSum", ["y40"], ["loss"], keepdims=0), oh.make_node("Neg", ["y40"], ["g40"])]
    for i in reversed(range(1, 40)):
        nodes.append(oh.make_node("Sum", [f"g{i + 1}", f"m{i}", f"e{i}"], [f"g{i}"]))
    shapes = {f"{kind}{i}": [1 << 20] for kind in "xyeg" for i in range(1, 41)} | {f"m{i}": [] for i in range(1, 40)}
    ends = [oh.make_tensor_value_info(name, FLOATS, [1 << 20]) for name in ("y0", "g1")]
    loss = oh.make_tensor_value_info("loss", FLOATS, [])
    made = {node.output[0] for node in nodes} - {"g1", "loss"}
    known = [oh.make_tensor_value_info(name, FLOATS, shape) for name, shape in shapes.items() if name in made]
    graph = oh.make_graph(nodes, "means", ends[:1], [loss, ends[1]], value_info=known)
    recompute_segments(graph, "loss", "y*[05]")
    names = {node.output[0] for node in graph.node}
    assert "e7.anew" in names
    assert "m7.anew" not in names


@pytest.mark.parametrize("how", ["layers", "sqrt", "e0"])
def test_what_would_hold_no_less_is_left_out(how: str) -> None:
    graph = way_and_back(1, 1 << 20, False)
    before = graph.SerializeToString()
    assert not recompute_segments(graph, "loss", how)
    assert graph.SerializeToString() == before


def test_the_user_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a weight is larger than all that the way back reads."""
    wide = numpy_helper.from_array(np.zeros((WIDTH, 4096), np.float32), "w")
    ends = [oh.make_tensor_value_info(name, FLOATS, [4, size]) for name, size in (("x", WIDTH), ("y", 4096))]
    graph = oh.make_graph([oh.make_node("MatMul", ["x", "w"], ["y"])], "wide", ends[:1], ends[1:], [wide])
    model = oh.make_model(graph, ir_version=10, opset_imports=[oh.make_opsetid("", 21)])
    made = prepare(model, "mse", SGD(lr=0.1))
    told = "recompute='layers' would hold no less at once in this model, so nothing is computed anew"
    with pytest.warns(NothingSavedWarning, match=told):
        Trainer(made, recompute="layers")
    made.save(tmp_path / "a.onnx")
    np.savez(tmp_path / "a.npz", x=X, labels=np.zeros((4, 4096), np.float32))
    command = ["train", "run", "a.onnx", "--data", "a.npz", "--out", "b.onnx", "--recompute", "layers", "--quiet"]
    assert main([str(tmp_path / each) if "." in each else each for each in command]) == 0
    assert f"onward: {told}" in capsys.readouterr().err


def test_names_that_fit_nothing_are_refused() -> None:
    with pytest.raises(OnwardError, match="recompute: no node on the way to the loss is called 'blocks"):
        losses(network(), "blocks.*")


def test_frozen_weights_are_bound_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network()
    data = {"x0": X, "labels": Y}
    made = prepare(model, "mse", SGD(lr=0.1), trainable=["layers.1[0-5].*"])
    plain = Trainer(made, kernels=False)
    expected = [plain.step(data) for _ in range(3)], plain.evaluate(data)
    monkeypatch.setattr(frozen, "LEAST", 0)
    monkeypatch.setattr(frozen, "SMALLEST", 0)
    trainer = Trainer(made, kernels=False)
    assert set(trainer._frozen) == {f"layers.{i}.weight" for i in range(10)}
    assert trainer.inputs == ["x0", "labels"]
    found = [trainer.step(data) for _ in range(3)], trainer.evaluate(data)
    assert found[0] == pytest.approx(expected[0], rel=1e-6)
    assert found[1] == pytest.approx(expected[1], rel=1e-6)
