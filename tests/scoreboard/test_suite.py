"""ONNX's own backend suite, all 2,033 cases, with shapes as written and with shapes unknown."""

import importlib.util
import sys

import numpy as np
import onnx
import pytest

from onward.backends.backend import ROUNDING
from onward.scoreboard import suite
from onward.scoreboard.exceptions import DRAWS, exceptions, sometimes

SHARDS = 16
RUNS = [
    *(("torch", unknown) for unknown in (False, True)),
    ("tensorflow", False),
    ("tensorflow:function", True),
    ("jax:jit", False),
    ("jax", True),
]
EVERY = {("jax", True): 16}
"""Of which runs only some of the shards are run: what passes under jit hardly fails without it."""


def needed(runner: str) -> None:
    if importlib.util.find_spec(runner.partition(":")[0]) is None:
        pytest.skip(f"{runner} is not installed")


def test_the_suite_is_complete() -> None:
    assert len(suite.cases()) == 2033
    for runner, unknown in RUNS:
        assert exceptions(runner, unknown).keys() <= suite.cases().keys()


@pytest.mark.parametrize(
    ("runner", "unknown_shapes"), RUNS, ids=[f"{name}-{'unknown' if unknown else 'known'}" for name, unknown in RUNS]
)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_suite(shard: int, runner: str, unknown_shapes: bool) -> None:
    needed(runner)
    if shard % EVERY.get((runner, unknown_shapes), 1):
        pytest.skip("this shard is run with known shapes, under jit")
    names = sorted(suite.cases())[shard::SHARDS]
    known = exceptions(runner, unknown_shapes)
    results = suite.run(runner, names, unknown_shapes, jobs=1)
    if runner.startswith("jax"):
        sys.modules["jax"].clear_caches()  # programs of so many cases take gigabytes
    failed = {r.name: r.message for r in results if r.outcome != "pass"}
    assert not {name: message for name, message in failed.items() if name not in known}
    expected = {name for name, reason in known.items() if name in names and reason not in sometimes(runner)}
    assert expected <= failed.keys(), f"these pass now and should leave the table: {expected - failed.keys()}"


@pytest.mark.parametrize("runner", ["torch", "tensorflow", "tensorflow:function", "jax", "jax:jit"])
@pytest.mark.parametrize("name", [name for name, why in exceptions("tensorflow").items() if why == ROUNDING])
def test_what_softmax_is_given_where_the_last_bit_decides(name: str, runner: str) -> None:
    """All its numbers are equal but for rounding, and then it gives each the same share."""
    needed(runner)
    case = suite.cases()[name]
    model = onnx.ModelProto.FromString(suite.model_of(case).SerializeToString())
    last = model.graph.node.pop()
    assert last.op_type == "Softmax"
    model.graph.output[0].name = last.input[0]
    (inputs, (shares,)), *_ = suite.data_sets(case)
    (found,), (wanted,) = (suite.prepare(where, model)(list(inputs)) for where in (runner, "onnxruntime"))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_allclose(found, np.full_like(found, found.mean(dtype=np.float64)), rtol=1e-5)
    np.testing.assert_allclose(shares, 1 / shares.size, rtol=case.rtol)


@pytest.mark.parametrize("runner", ["torch", "tensorflow", "jax"])
@pytest.mark.parametrize("name", DRAWS)
def test_bernoulli_by_its_statistics(name: str, runner: str) -> None:
    """The draw has the mean and the independence that the probabilities ask for, and the dtype of the case."""
    needed(runner)
    case = suite.cases()[name]
    model = suite.forget_shapes(suite.model_of(case))
    (inputs, expected), *_ = suite.data_sets(case)
    probabilities = np.linspace(0.0, 1.0, 11)[:, None].repeat(20_000, axis=1).astype(inputs[0].dtype)
    rank = model.graph.input[0].type.tensor_type.shape
    del rank.dim[:]
    rank.dim.add().dim_param = "rows"
    rank.dim.add().dim_param = "draws"
    (drawn,) = suite.prepare(runner, model)([probabilities])
    assert drawn.dtype == expected[0].dtype
    assert set(np.unique(drawn)) == {0, 1}
    means = drawn.astype(np.float64).mean(axis=1)
    # The expanded cases carry the body that ONNX's schema had for the op: it draws 1 with probability 1 - p.
    direct = any(node.op_type == "Bernoulli" for node in model.graph.node)
    wanted = probabilities[:, 0] if direct else 1 - probabilities[:, 0]
    deviation = np.sqrt(wanted * (1 - wanted) / drawn.shape[1])
    assert np.all(np.abs(means - wanted) <= 5 * deviation + 1e-4)
    pairs = np.corrcoef(drawn[1:-1].astype(np.float64))
    assert np.all(np.abs(pairs - np.eye(len(pairs))) < 0.05)
