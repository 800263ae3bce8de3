"""Schedules as expressions give what the schedules give, in the words of each framework."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from onward.errors import OnwardError, UnsupportedError
from onward.training.export.jax.script import Script as InJax
from onward.training.export.schedules import PYTHON, Words, factor
from onward.training.export.tensorflow.words import NUMBERS
from onward.training.recipe.described import read_schedule, write_schedule
from onward.training.recipe.schedules import Constant, Cosine, Linear, Schedule, Steps, Table, Warmup

SCHEDULES = [
    Constant(),
    Steps(3, 0.5),
    Linear(8, 0.1),
    Cosine(8, 0.1),
    Warmup(2, Warmup(3, Linear(4))),
    Warmup(3, Steps(2, 0.5)),
    Table([1, 0.5, 0.75]),
    Warmup(4, Cosine(5)),
    Warmup(3, Table.of(lambda step: 1 / step, 4)),
]
STEPS = range(1, 13)


def python(words: str) -> list[float]:
    return [eval(words, {"math": math, "step": step}) for step in STEPS]


def in_jax(words: str) -> Any:
    jax = pytest.importorskip("jax")
    found = jax.jit(lambda step: eval(words, {"jnp": jax.numpy, "step": step}))
    return [float(found(step)) for step in STEPS]


def in_tensorflow(words: str) -> Any:
    tf = pytest.importorskip("tensorflow")
    found = tf.function(lambda step: eval(words, {"tf": tf, "math": math, "step": step}))
    return [float(found(tf.constant(step, tf.float32))) for step in STEPS]


@pytest.mark.parametrize(
    ("words", "given"),
    [(PYTHON, python), (InJax.numbers, in_jax), (NUMBERS, in_tensorflow)],
    ids=["python", "jax", "tf"],
)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_factors(words: Words, given: Any, schedule: Schedule) -> None:
    expected = [schedule(step) for step in STEPS]
    np.testing.assert_allclose(given(factor(schedule, words)), expected, rtol=1e-5, atol=1e-7)


def test_a_table_is_what_a_function_gave() -> None:
    table = Table.of(lambda step: 1 / step, 3)
    assert [table(step) for step in (1, 2, 3, 9)] == [1, 1 / 2, 1 / 3, 1 / 3]
    assert read_schedule(write_schedule(Warmup(2, table))) == Warmup(2, table)
    with pytest.raises(OnwardError, match="one number or more"):
        Table([])
    with pytest.raises(OnwardError, match="no number"):
        Table([1.0, float("inf")])


def test_a_function_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnsupportedError, match=r"Table\.of"):
        factor(lambda step: 1 / step)
    with pytest.raises(OnwardError, match=r"Table\.of"):
        write_schedule(lambda step: 1 / step)
