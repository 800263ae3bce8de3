"""A training that is exported rightly is found to be the same; of one that is not, the part that differs is named."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser
from small_networks import NETWORKS, network, onnx_of

from onward.errors import OnwardError
from onward.training.export import to_jax_package, to_torch_package
from onward.training.export.state import Place
from onward.training.recipe.adapters import lora
from onward.training.recipe.losses import Penalty
from onward.training.recipe.optimizers import SGD, Adam
from onward.training.recipe.schedules import Steps, Warmup
from onward.training.recipe.user_models import OnnxOptimizer
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable, prepare
from onward.training.verification import targets
from onward.training.verification.chance import without_chance
from onward.training.verification.data import made_up
from onward.training.verification.noise import Band, Noise
from onward.training.verification.results import verdict
from onward.training.verification.source import Draws, Passed, Source, nudged, one_bit_off
from onward.training.verification.steps import OneStep, first_wrong
from onward.training.verification.verify import verify


@cache
def onnx(name: str) -> bytes:
    return onnx_of(network(name), NETWORKS[name].data(4), training=name in ("cnn", "dropout"))


def made(name: str = "mlp", **options: Any) -> Trainable:
    return prepare(onnx(name), **{"optimizer": Adam(lr=3e-3), **options})


@pytest.mark.parametrize("target", sorted(targets.TARGETS))
def test_the_same_training(target: str) -> None:
    trainable = made("cnn", average=0.9, accumulate=2, clip_norm=1.0, penalties=[Penalty(1e-3)])
    trainer = Trainer(trainable)
    for batch in made_up(trainer, 4, 5):
        trainer.step(batch)
    report = verify(trainer, ["onnxruntime", target], steps=4)
    side = report.sides[0]
    assert (report.status, report.chaos, side.failure) == ("same", None, ""), verdict(side, report)
    assert len(report.losses) == len(side.losses) == 4
    np.testing.assert_allclose(side.losses, report.losses, rtol=1e-4)
    parts = {check.part for check in side.checks}
    assert parts == {"forward", "statistics", "loss", "gradient", "state", "update"}
    first = {check.tensor for check in side.checks if check.step == 3}  # two steps were made before
    assert {"y", "1.running_mean", "0.weight", "0.weight.exp_avg", "8.bias.average"} <= first
    assert report.to_json()["sides"][0]["status"] == "same"


@pytest.mark.parametrize("target", ["torch", "tensorflow"])
def test_adapters_dropout_and_a_schedule_of_ones_own(target: str) -> None:
    own = made("dropout", lora=lora(rank=2), schedule=Warmup(1, lambda step: 1 / step))
    report = verify(own, target, steps=2)
    assert report.status == "same", verdict(report.sides[0], report)
    assert "dropout is off" in report.notes[0] and "a list of what it gives" in report.notes[1]
    assert {check.tensor for check in report.sides[0].checks if check.part == "gradient"} == {
        f"{layer}.weight.lora_{part}" for layer in (0, 3, 5) for part in "ab"
    }


def test_data_that_a_model_asks_for_its_size() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> net (float[N, 4] x) => (float[N, 2] y)
        <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
        size = Shape <start = 0, end = 1> (x) two = Constant <value_ints = [2]> ()
        shape = Concat <axis = 0> (size, two)
        one = Constant <value_float = 1.0> () more = Expand (one, shape)
        found = MatMul (x, w) y = Add (found, more) }"""
    )
    report = verify(prepare(model, "mse", SGD(lr=0.1)), "tensorflow", steps=1)
    assert report.status == "same", verdict(report.sides[0], report)


class Here:
    """Asks a package in this process: PyTorch is loaded already."""

    def __init__(self, make: Any) -> None:
        self.run, _ = make()

    def __call__(self, question: dict[str, Any]) -> Any:
        return self.run(question)

    def close(self) -> None:
        pass


def spoiled(monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str) -> None:
    """Packages that are written from now on have another text in one of their files."""
    write = targets._named

    def named(place: str) -> Any:
        found = write(place)
        if not place.endswith("_package"):
            return found

        def writing(trainable: Trainable, out: Path) -> Path:
            folder: Path = found(trainable, out)
            text = (folder / file).read_text()
            assert old in text
            (folder / file).write_text(text.replace(old, new))
            return folder

        return writing

    monkeypatch.setattr(targets, "_named", named)
    monkeypatch.setattr(targets, "Isolated", Here)


SPOILED = {
    "an activation": ("model.py", "nn.GELU()", 'nn.GELU("tanh")', "forward", "y"),
    "the loss": ("train.py", "return F.cross_entropy(", "return 1.0005 * F.cross_entropy(", "loss", "loss"),
    "a gradient": (
        "train.py",
        'net(batch["x"])',
        'net(batch["x"]); y = y + 0.001 * (y - y.detach())',
        "gradient",
        "3.bias",
    ),
    "the memory": ("train.py", "lr=0.003", "betas=(0.9, 0.9991), lr=0.003", "state", "0.weight.exp_avg_sq"),
    "the learning rate": ("train.py", "lr=0.003", "lr=0.003003", "update", "0.weight"),
}
"""What of a package is changed, and what is said of it."""


@pytest.mark.parametrize("what", SPOILED)
def test_the_part_that_differs_is_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, old, new, part, tensor = SPOILED[what]
    spoiled(monkeypatch, file, old, new)
    report = verify(made(), "torch", steps=2)
    found = report.sides[0].difference
    assert report.status == "different" and found is not None, verdict(report.sides[0], report)
    assert (found.step, found.part, found.tensor) == (1, part, tensor), verdict(report.sides[0], report)
    assert tensor in verdict(report.sides[0], report)


def test_the_step_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule of the package forgets its third step."""
    spoiled(monkeypatch, "train.py", "* rate(start + number)", "* rate(min(start + number, 2))")
    report = verify(made(schedule=Steps(every=2, factor=0.5)), "torch", steps=5)
    side = report.sides[0]
    assert side.parted == 3 and side.difference is not None, verdict(side, report)
    assert (side.difference.step, side.difference.part) == (3, "update")


class Elsewhere(Source):
    """ONNX Runtime as a framework: it starts where it was made, and its gradients may be too large."""

    scale = 1.0

    def put(self, start: Trainable) -> None:
        super().put(self.trainable)

    def passed(self, batch: Any, outputs: Any) -> Passed:  # type: ignore[override]
        found = super().passed(self.trainable, batch)
        return replace(found, gradients={name: self.scale * array for name, array in found.gradients.items()})


@pytest.mark.parametrize(("up", "scale", "expected"), [(0, 1.0, None), (1, 1.0, None), (1, 1.5, "gradient")])
def test_a_number_at_the_edge_of_relu_may_be_on_its_other_side(up: float, scale: float, expected: str | None) -> None:
    graph = "edge (float[b, 2] x) => (float[b, 1] y) <float[2, 1] w = {1, -1}> {h = MatMul(x, w) y = Relu(h)}"
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {graph}')
    trainable = prepare(model.SerializeToString(), loss="mse", optimizer=SGD(lr=0.1))
    weights = trainable.parameters["w"]
    moved = np.nextafter(weights, weights + np.float32(up))
    other = Elsewhere(replace(trainable, parameters={"w": moved}))
    other.scale = scale
    batch = {"x": np.array([[1, 1], [2, 0]], np.float32), "labels": np.array([[0.01], [1]], np.float32)}
    source = Source(trainable)
    checks, _ = OneStep(source, Draws(source, 0))(other, trainable, [batch])  # type: ignore[arg-type]
    wrong = first_wrong(checks)
    assert (wrong and wrong.part) == expected


def test_states_that_are_large_are_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled(monkeypatch, "train.py", "* rate(start + number)", "* rate(min(start + number, 5))")
    monkeypatch.setattr("onward.training.verification.verify.ROOM", 4)
    report = verify(made(schedule=Steps(every=5, factor=0.5)), "torch", steps=8)
    found = report.sides[0].difference
    assert found is not None and (found.step, found.part) == (6, "update"), verdict(report.sides[0], report)


def test_what_does_not_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled(monkeypatch, "train.py", "return F.cross_entropy(", "return F.cross_entropies(")
    report = verify(made(), "torch", steps=2)
    assert report.status == "failed"
    assert "cross_entropies" in report.sides[0].failure


def test_chaos_is_not_judged() -> None:
    """Beyond the step at which noise is as large as the loss, nothing is said."""
    band = Band.of([1.0, 1.0, 1.0], Noise([1e-7, 1e-3, 0.5], {}, draws=4))
    assert band.chaos == 3 and band.compared == 2
    assert [band.check(step, 1.01).status for step in (1, 2)] == ["different", "same"]


def test_one_bit_off() -> None:
    start = made("cnn")
    moved = one_bit_off(start, 0)
    for group in ("parameters", "buffers"):
        for name, array in getattr(start, group).items():
            steps = getattr(moved, group)[name].view(np.int32) - array.view(np.int32)
            assert set(np.unique(steps)) <= {-1, 0, 1} and (array == 0).sum() == (steps == 0).sum()
    before, after = start.update.graph, nudged(start.update, 0).graph
    numbers = {str(value.const_value.numpy()) for value in before.initializers.values() if value.const_value}
    others = {str(value.const_value.numpy()) for value in after.initializers.values() if value.const_value}
    assert "1.0" in numbers & others and "0.999" not in others


def test_dropout_is_switched_off_in_forward_and_gradient() -> None:
    start, notes = without_chance(made("dropout"))
    plain = onnx_of(network("dropout"), NETWORKS["dropout"].data(4))
    batch = made_up(Trainer(start), 1, 0)[0]
    one, two = (Source(start).passed(start, batch) for _ in range(2))
    without = Source(prepare(plain, optimizer=Adam())).passed(start, batch)
    for name, gradient in without.gradients.items():
        np.testing.assert_allclose(one.gradients[name], gradient, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(one.gradients[name], two.gradients[name])
    assert notes


def test_made_up_data_fit() -> None:
    for name in ("mlp", "lstm"):
        trainer = Trainer(made(name, optimizer=SGD(lr=0.01)))
        found = made_up(trainer, 20, 0)
        assert {len(array) for batch in found for array in batch.values()} == {8}
        assert not np.array_equal(found[0]["x"], found[1]["x"]) and found[16] is found[0]
        assert np.isfinite([trainer.step(batch) for batch in found]).all()


def test_places_move_back() -> None:
    array = np.arange(6.0).reshape(2, 3)
    place = Place("w", "w", (3, 2), np.arange(6).reshape(2, 3).T.reshape(-1))
    np.testing.assert_array_equal(place.moved_back(place.moved(array), array), array)


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(OnwardError, match="there are onnxruntime, torch"):
        verify(made(), "torhc")
    with pytest.raises(OnwardError, match="nothing to compare with"):
        verify(made(), ["onnxruntime"])
    with pytest.raises(OnwardError, match="at least 1"):
        verify(made(), "torch", steps=0)
    with pytest.raises(OnwardError, match="'labels'"):
        verify(made(), "torch", data={"x": np.zeros((4, 12), np.float32)})


BY_ROWS = parser.parse_model(
    """<ir_version: 10, opset_import: ["" : 21]> agraph (float[N] w, float[N] g, float lr, float[N] v)
    => (float[N] y, float[N] v2) {
    half = Constant <value = float {0.5}> () a = Mul (v, half) v2 = Add (a, g) first = Constant <value_ints = [0]> ()
    size = ReduceL1 (v2, first) few = Constant <value = float {0.01}> () safe = Add (size, few)
    q = Div (v2, safe) m = Mul (q, lr) y = Sub (w, m) }"""
)
"""Steps are scaled along the first axis of each weight: neither PyTorch nor JAX has words for it here."""


def by_graphs(lr: float = 1e-2) -> Trainable:
    """A training that goes on by its graphs: PyTorch has the head, and JAX the filters, with their axes turned."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> agraph (float[N, 1, 4, 4] x) => (float[N, 3] y) {
        found = Conv (x, filters) half = Constant <value = float {0.5}> () kept = Dropout (found, half)
        flat = Flatten (kept) y = MatMul (flat, head) }"""
    )
    draw = np.random.default_rng(0)
    for name, shape in {"filters": (8, 1, 4, 4), "head": (8, 3)}.items():
        model.graph.initializer.append(numpy_helper.from_array(draw.standard_normal(shape, np.float32), name))
    return prepare(model, optimizer=OnnxOptimizer(BY_ROWS, lr=lr))


SPOILED_GRAPHS = {
    "the loss": ("step.py", "torch.mean(u)", "1.0005 * torch.mean(u)", (1, "loss", "loss")),
    "a gradient": ("step.py", "float_divide(1.0,", "float_divide(1.001,", (1, "gradient", "head")),
    "the update": ("update.py", "+ 0.01", "+ 0.011", (1, "update", "filters")),
    "the memory": ("update.py", "head_v * 0.5", "head_v * 0.501", (2, "state", "head.v")),
}


@pytest.mark.parametrize("what", SPOILED_GRAPHS)
def test_the_part_of_a_graph_that_differs_is_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, old, new, expected = SPOILED_GRAPHS[what]
    spoiled(monkeypatch, file, old, new)
    report = verify(by_graphs(), "torch", steps=3)
    found = report.sides[0].difference
    assert report.status == "different" and found is not None, verdict(report.sides[0], report)
    assert (found.step, found.part, found.tensor) == expected, verdict(report.sides[0], report)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_graphs_draw_dropout(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same batch has other masks in each step, and none where trainings are compared."""
    if framework == "jax":
        pytest.importorskip("jax")
    write = {"torch": to_torch_package, "jax": to_jax_package}[framework]
    monkeypatch.syspath_prepend(str(tmp_path))
    start = by_graphs(lr=1e-30)
    for name, chance in ((f"{framework}_drawn", True), (f"{framework}_plain", False)):
        write(start if chance else without_chance(start)[0], tmp_path / name)
        module = importlib.import_module(f"{name}.train")
        batch = made_up(Trainer(start), 1, 0)[0]
        if framework == "torch":
            batch = {key: module.torch.from_numpy(array) for key, array in batch.items()}
        state = module.load_state()
        losses = module.train(state, [batch] * 4)
        for key, array in start.parameters.items():
            np.testing.assert_array_equal(state[key], array)
        assert len(set(losses)) == (4 if chance else 1)
