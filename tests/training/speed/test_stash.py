"""Values for the way back are held as bfloat16: the loss is exact, gradients nearly, choices are the same."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import numpy_helper
from test_lifetimes import FLOATS

from onward.errors import OnwardError
from onward.training import SGD, Trainer, prepare
from onward.training.runtime import session

LAYERS, ROWS, WIDTH = 6, 32, 128
EPSILON = 2.0**-8
"""Of bfloat16."""
RNG = np.random.default_rng(0)
DATA = {"x0": RNG.standard_normal((ROWS, WIDTH)).astype(np.float32), "labels": np.zeros((ROWS, 1), np.float32)}


def network(*activations: str) -> onnx.ModelProto:
    """Layers on a stream; the largest of each row is what is learned."""
    nodes, weights = [], []
    for i in range(LAYERS):
        matrix = RNG.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 11
        weights.append(numpy_helper.from_array(matrix, f"{i}.weight"))
        nodes.append(oh.make_node("MatMul", [f"x{i}", f"{i}.weight"], [f"a{i}.0"]))
        nodes += [oh.make_node(op, [f"a{i}.{j}"], [f"a{i}.{j + 1}"]) for j, op in enumerate(activations)]
        nodes.append(oh.make_node("Add", [f"x{i}", f"a{i}.{len(activations)}"], [f"x{i + 1}"]))
    nodes.append(oh.make_node("ReduceMax", [f"x{LAYERS}", "axes"], ["y"]))
    weights.append(numpy_helper.from_array(np.array([1]), "axes"))
    ends = [oh.make_tensor_value_info("x0", FLOATS, ["n", WIDTH]), oh.make_tensor_value_info("y", FLOATS, ["n", 1])]
    graph = oh.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    return oh.make_model(graph, ir_version=10, opset_imports=[oh.make_opsetid("", 21)])


def step(model: onnx.ModelProto, stash: str | None, kernels: bool, recompute: str | None = None) -> tuple:
    """The loss, and how far each weight went."""
    trainer = Trainer(prepare(model, "mse", SGD(lr=1.0)), kernels=kernels, stash=stash, recompute=recompute)
    before = {name: array.copy() for name, array in trainer.parameters.items()}
    loss = trainer.step(DATA)
    return loss, {name: array - before[name] for name, array in trainer.parameters.items()}


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is held as bfloat16."""
    found: list[str] = []
    stash = session.stash

    def watched(graph: onnx.GraphProto, *given: object) -> None:
        stash(graph, *given)
        types = {a.i for node in graph.node if node.op_type == "Cast" for a in node.attribute}
        assert not found or onnx.TensorProto.BFLOAT16 in types
        found.extend(name for node in graph.node for name in node.output if name.endswith(".bfloat16"))

    monkeypatch.setattr(session, "stash", watched)
    return found


@pytest.mark.parametrize(
    ("activations", "kernels", "recompute"),
    [
        (("Tanh", "Sin"), False, None),
        (("Relu",), False, None),
        (("Relu", "Sin"), False, "layers"),
        (("Relu", "Sin"), True, None),
    ],
)
def test_the_loss_is_exact_and_gradients_nearly(
    activations: tuple[str, ...], kernels: bool, recompute: str | None, held: list[str]
) -> None:
    model = network(*activations)
    exact, slopes = step(model, None, kernels, recompute)
    loss, rounded = step(model, "bfloat16", kernels, recompute)
    assert held
    assert loss == pytest.approx(exact, rel=1e-6)
    assert any((rounded[name] != slope).any() for name, slope in slopes.items())
    for name, slope in slopes.items():
        assert np.linalg.norm(rounded[name] - slope) < 2 * EPSILON * np.linalg.norm(slope), name


def test_what_is_compared_stays_as_it_is(held: list[str]) -> None:
    """Equal numbers share the gradient of a maximum: after rounding there would be more of them."""
    step(network("Tanh", "Sin"), "bfloat16", kernels=False)
    assert held
    assert f"x{LAYERS}.bfloat16" not in held
    assert "y.bfloat16" not in held


def test_small_tensors_stay_as_they_are(held: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    model = network("Tanh", "Sin")
    monkeypatch.setattr("onward.training.speed.stash.LEAST", 1 << 20)
    _, slopes = step(model, None, kernels=False)
    _, same = step(model, "bfloat16", kernels=False)
    assert not held
    assert all(slopes[name] == pytest.approx(same[name], rel=1e-5, abs=1e-7) for name in slopes)


def test_other_types_are_refused() -> None:
    with pytest.raises(OnwardError, match="stash: values are held as bfloat16, or as they are, not as 'float16'"):
        step(network("Tanh"), "float16", kernels=False)
