"""Parts of the way forward are computed anew on the way back: less is alive, and training is the same."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import numpy_helper
from test_lifetimes import FLOATS, most_alive

from onward.errors import OnwardError
from onward.training import SGD, Trainer, prepare
from onward.training.runtime import frozen, session
from onward.training.speed.segments import recompute_segments

LAYERS, WIDTH = 16, 8
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

    def watched(graph: onnx.GraphProto, loss: str, how: str) -> None:
        before = most_alive(graph)
        recompute_segments(graph, loss, how)
        alive.append((before, most_alive(graph)))

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
