"""Gradients of embeddings, written in place, are those of the plain graph, batch after batch."""

import numpy as np
import pytest
from stepping import run, session, steps
from training_models import WORDS, bag_of_words, word_batches

from onward.errors import RunFailure
from onward.training import SGD, Trainer, prepare
from onward.training.speed.scattered import scatter_in_place
from onward.training.trainable import Trainable


def made(**options: object) -> Trainable:
    return prepare(bag_of_words(), optimizer=SGD(lr=0.1), **options)


def test_the_table_is_started_from() -> None:
    _, found = scatter_in_place(made().gradients)
    assert [each.output for each in found] == ["words.grad"]


def test_gradients_are_those_of_the_batch_alone() -> None:
    trainable = made()
    trainer, plain = Trainer(trainable), session(trainable.gradients)
    for batch in word_batches(5):
        trainer.gradients(batch)
        wanted = run(plain, {**batch, **trainable.parameters})
        for name, view in trainer._gradients.views.items():
            np.testing.assert_allclose(view, wanted[f"{name}.grad"], atol=1e-6)


def test_steps_are_those_of_the_plain_graphs() -> None:
    trainable, data = made(), word_batches(6)
    losses, after = steps(trainable, data, lr=0.1)
    trainer = Trainer(trainable)
    np.testing.assert_allclose([trainer.step(batch) for batch in data], losses, rtol=1e-5)
    np.testing.assert_allclose(trainer.parameters["words"], after.parameters["words"], atol=1e-6)


def test_accumulated_gradients_are_not_left_behind() -> None:
    data = word_batches(6)
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
    trainable, (first, second) = made(), word_batches(2)
    trainer = Trainer(trainable)
    trainer.gradients(first)
    with pytest.raises(RunFailure):
        trainer.gradients({**first, "x": np.full((4, 2), WORDS)})
    trainer.gradients(second)
    wanted = run(session(trainable.gradients), {**second, **trainable.parameters})
    np.testing.assert_allclose(trainer._gradients.views["words"], wanted["words.grad"], atol=1e-6)
