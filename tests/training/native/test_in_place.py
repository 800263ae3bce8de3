"""Weights that change as soon as their gradients are there: the same bits as with all gradients kept, and none held."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from small_networks import batches, network, onnx_of
from training_models import bag_of_words, word_batches

from onward.errors import OnwardError
from onward.model import Model
from onward.training import Group, Trainer, prepare
from onward.training.native import compiler
from onward.training.native.in_place import with_updates
from onward.training.recipe.optimizers import LAMB, SGD, Adam, AdamW, Optimizer
from onward.training.runtime import checkpoint
from onward.training.runtime import trainer as trainers
from onward.training.runtime.divergence import DivergedError
from onward.training.speed.lifetimes import UPDATE, is_update, order_nodes
from onward.training.trainable import Trainable

pytestmark = pytest.mark.skipif(compiler.compiler() is None, reason="there is no C compiler")
OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "sgd": lambda: SGD(lr=0.1),
    "momentum": lambda: SGD(lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adamw": lambda: AdamW(lr=1e-2),
}


def made(kind: str, optimizer: Optimizer, **options: Any) -> tuple[Trainable, list[dict[str, Any]]]:
    if kind == "words":
        return prepare(bag_of_words(), optimizer=optimizer, **options), word_batches(5)
    data = batches(kind, 5)
    model = onnx_of(network(kind), data[0][0])
    return prepare(model, optimizer=optimizer, **options), [{"x": x.numpy(), "labels": y.numpy()} for x, y in data]


def both(trainable: Trainable, monkeypatch: pytest.MonkeyPatch) -> tuple[Trainer, Trainer]:
    """A trainer that uses gradients up, and one that keeps them."""
    used = Trainer(trainable, kernels=True)
    assert used._used is not None
    with monkeypatch.context() as patch:
        patch.setattr(trainers, "used", lambda *given: None)
        return used, Trainer(trainable, kernels=True)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["mlp", "cnn", "words"])
def test_steps_have_the_same_bits(kind: str, optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trainable, data = made(kind, OPTIMIZERS[optimizer]())
    used, kept = both(trainable, monkeypatch)
    assert [used.step(batch) for batch in data] == [kept.step(batch) for batch in data]
    for name, array in {**kept.parameters, **kept.state, **kept.buffers}.items():
        assert ({**used.parameters, **used.state, **used.buffers}[name] == array).all(), name


def test_groups_averages_and_rates_are_those_of_each_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    trainable, data = made("mlp", Adam(lr=1e-2), groups=[Group("0.*", lr=0.1)], average=0.9)
    used, kept = both(trainable, monkeypatch)
    for batch in data:
        used.lr = kept.lr = used.lr / 2
        assert used.step(batch) == kept.step(batch)
    assert all((used.state[name] == array).all() for name, array in kept.state.items())


def test_a_row_that_is_longer_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    tables = {"words": rng.normal(size=(7, 5000)), "head": rng.normal(size=(5000, 3)) / 70}
    model = bag_of_words()
    for tensor in model.graph.initializer:
        if tensor.name in tables:
            tensor.CopyFrom(onnx.numpy_helper.from_array(tables[tensor.name].astype(np.float32), tensor.name))
    used, kept = both(prepare(model, optimizer=AdamW(lr=1e-2)), monkeypatch)
    for seed in range(3):
        draw = np.random.default_rng(seed)
        batch = {"x": draw.integers(-7, 7, (6, 3)), "labels": draw.integers(0, 3, 6)}
        assert used.step(batch) == kept.step(batch)
    assert (used.parameters["words"] == kept.parameters["words"]).all()


def test_gradients_are_not_held_together() -> None:
    trainable, _ = made("mlp", AdamW(lr=1e-2))
    model, _ = with_updates(trainable)
    proto = Model(model).to_proto()
    order_nodes(proto.graph)
    nodes = list(proto.graph.node)
    ends = [place for place, node in enumerate(nodes) if is_update(node)]
    assert len(ends) == len(trainable.parameters)
    assert not any(value.name.endswith(".grad") for value in proto.graph.output)
    born = {name: place for place, node in enumerate(nodes) for name in node.output}
    gradients = [(born[name], end) for end in ends for name in nodes[end].input if name.endswith(".grad")]
    assert len(gradients) == len(ends)
    most = max(sum(start <= place < end for start, end in gradients) for place in range(len(nodes)))
    assert most <= 2 < len(gradients)


def test_a_weight_waits_for_those_who_read_a_view_of_it() -> None:
    change = oh.make_node(f"{UPDATE}0", ["w", "g"], ["w.next"], domain="onward.kernels")
    nodes = [
        oh.make_node("Exp", ["x"], ["g"]),
        change,
        oh.make_node("Reshape", ["w", "shape"], ["matrix"]),
        oh.make_node("Squeeze", ["matrix"], ["row"]),
        oh.make_node("Neg", ["g"], ["late"]),
        oh.make_node("Mul", ["row", "late"], ["y"]),
    ]
    names = {"x": onnx.TensorProto.FLOAT, "w": onnx.TensorProto.FLOAT, "shape": onnx.TensorProto.INT64}
    graph = oh.make_graph(
        nodes,
        "views",
        [oh.make_tensor_value_info(name, kind, [4]) for name, kind in names.items()],
        [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in ("w.next", "y")],
    )
    order_nodes(graph)
    assert graph.node[-1] == change
    assert len(graph.node) == len(nodes)


def test_a_loss_that_is_no_number_changes_nothing() -> None:
    trainable, data = made("mlp", AdamW(lr=1e-2))
    trainer = Trainer(trainable, kernels=True)
    assert trainer._used is not None
    trainer.step(data[0])
    before = {name: array.copy() for name, array in {**trainer.parameters, **trainer.state}.items()}
    with pytest.raises(DivergedError):
        trainer.step({**data[1], "x": np.full_like(data[1]["x"], np.nan)})
    assert all((({**trainer.parameters, **trainer.state})[name] == array).all() for name, array in before.items())


@pytest.mark.parametrize(
    "options", [{"accumulate": 2}, {"clip_norm": 1.0}, {"optimizer": LAMB(lr=1e-2)}], ids=["several", "norm", "layers"]
)
def test_gradients_are_kept_where_they_are_wanted_together(options: dict[str, Any]) -> None:
    trainable, data = made("mlp", **{"optimizer": SGD(lr=0.1), **options})
    trainer = Trainer(trainable, kernels=True)
    assert trainer._used is None
    assert np.isfinite(trainer.step(data[0]))


def test_a_step_that_broke_off_halfway_is_not_saved(tmp_path: Path) -> None:
    trainable, data = made("mlp", SGD(lr=0.1))
    trainer = Trainer(trainable, kernels=True)
    checkpoint.save(tmp_path / "whole", trainer)
    trainer.torn = True
    for act in (trainer.tuned, trainer.continued, trainer.check_finite, lambda: trainer.step(data[0])):
        with pytest.raises(OnwardError, match="some weights and not others"):
            act()
    checkpoint.load(tmp_path / "whole", trainer)
    assert np.isfinite(trainer.step(data[0]))
