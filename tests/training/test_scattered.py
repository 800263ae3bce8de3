"""Gradients of embeddings, written in place, are those of the plain graph, batch after batch."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from stepping import run, session, steps

from onward.errors import RunFailure
from onward.training import SGD, Trainer, prepare
from onward.training.speed.scattered import scatter_in_place
from onward.training.trainable import Trainable

WORDS, WIDTH, CLASSES = 30, 6, 3


def bag_of_words() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {"words": (WORDS, WIDTH), "head": (WIDTH, CLASSES)}
    nodes = [
        helper.make_node("Gather", ["words", "x"], ["found"]),
        helper.make_node("ReduceMean", ["found", "axes"], ["mean"], keepdims=0),
        helper.make_node("MatMul", ["mean", "head"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "bag",
        [helper.make_tensor_value_info("x", TensorProto.INT64, ["n", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", CLASSES])],
        [numpy_helper.from_array(rng.normal(size=s).astype(np.float32), name) for name, s in weights.items()]
        + [numpy_helper.from_array(np.array([1]), "axes")],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def batches(count: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [
        {"x": rng.integers(-WORDS, WORDS, (4, 2 + i % 3)), "labels": rng.integers(0, CLASSES, 4)} for i in range(count)
    ]


def made(**options: object) -> Trainable:
    return prepare(bag_of_words(), optimizer=SGD(lr=0.1), **options)


def test_the_table_is_started_from() -> None:
    _, found = scatter_in_place(made().gradients)
    assert [each.output for each in found] == ["words.grad"]


def test_gradients_are_those_of_the_batch_alone() -> None:
    trainable = made()
    trainer, plain = Trainer(trainable), session(trainable.gradients)
    for batch in batches(5):
        trainer.gradients(batch)
        wanted = run(plain, {**batch, **trainable.parameters})
        for name, view in trainer._gradients.views.items():
            np.testing.assert_allclose(view, wanted[f"{name}.grad"], atol=1e-6)


def test_steps_are_those_of_the_plain_graphs() -> None:
    trainable, data = made(), batches(6)
    losses, after = steps(trainable, data, lr=0.1)
    trainer = Trainer(trainable)
    np.testing.assert_allclose([trainer.step(batch) for batch in data], losses, rtol=1e-5)
    np.testing.assert_allclose(trainer.parameters["words"], after.parameters["words"], atol=1e-6)


def test_accumulated_gradients_are_not_left_behind() -> None:
    data = batches(6)
    several = Trainer(made(accumulate=2))
    for batch in data:
        several.step(batch)
    weights = {name: array.copy() for name, array in made().parameters.items()}
    plain = session(made().gradients)
    for pair in (data[:2], data[2:4], data[4:]):
        found = [run(plain, {**batch, **weights}) for batch in pair]
        weights = {
            name: array - 0.05 * (found[0][f"{name}.grad"] + found[1][f"{name}.grad"])
            for name, array in weights.items()
        }
    np.testing.assert_allclose(several.parameters["words"], weights["words"], atol=1e-6)


def test_a_run_that_fails_leaves_nothing_behind() -> None:
    trainable, (first, second) = made(), batches(2)
    trainer = Trainer(trainable)
    trainer.gradients(first)
    with pytest.raises(RunFailure):
        trainer.gradients({**first, "x": np.full((4, 2), WORDS)})
    trainer.gradients(second)
    wanted = run(session(trainable.gradients), {**second, **trainable.parameters})
    np.testing.assert_allclose(trainer._gradients.views["words"], wanted["words.grad"], atol=1e-6)
