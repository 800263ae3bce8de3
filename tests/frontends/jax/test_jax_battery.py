"""Every program and model of the battery, converted and run on ONNX Runtime, computes what JAX computes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("equinox")
pytest.importorskip("haiku")

import jax
import jax.numpy as jnp
import ml_dtypes
from jax_cases import Case, Refusal
from jax_compare import difference
from jax_data import VARIANTS, inputs, names_of
from jax_judge import compared, compiled, converted, judge, judge_refusal, settings
from jax_modules import CASES, MODELS, REFUSALS
from jax_op_by_op import op_by_op
from jax_refused import REFUSED

import onward
from onward.errors import UnsupportedError
from onward.frontends.jax.registry import RULES

CONVERTED = [case for case in (*CASES, *MODELS) if case.id not in REFUSED]


@pytest.mark.parametrize("case", CONVERTED, ids=lambda case: case.id)
def test_onnx_runtime_computes_the_same(case: Case) -> None:
    verdict = judge(case)
    assert verdict.word == "same", str(verdict)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_does_not_convert_is_refused(name: str) -> None:
    verdict = judge(next(case for case in (*CASES, *MODELS) if case.id == name))
    assert verdict.word == "refused", str(verdict)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
def test_what_no_graph_can_stand_for_is_refused_by_name(refusal: Refusal) -> None:
    verdict = judge_refusal(refusal)
    assert verdict.word == "refused", str(verdict)


def test_there_are_enough_and_names_are_told_apart() -> None:
    ids = [case.id for case in (*CASES, *MODELS)]
    assert len(set(ids)) == len(ids)
    assert len(CASES) >= 1500
    assert len(MODELS) >= 60
    assert {case.theme for case in MODELS} == {"linen", "nnx", "equinox", "haiku"}
    assert sum(bool(names_of(case.specs)) for case in CASES) >= 100
    assert set(ids) >= REFUSED.keys()
    assert len(REFUSED) <= len(ids) // 50


def test_sets_of_data_differ_and_are_made_again() -> None:
    specs = ("f32[b,40]", {"ids": "i32[b] 0..9"})
    made = {variant: inputs(specs, variant, "seed") for variant in VARIANTS}
    assert [made[variant][0].shape[0] for variant in VARIANTS] == [3, 1, 3]
    assert np.isnan(made["edges"][0]).any() and np.isinf(made["edges"][0]).any()
    assert np.isfinite(made["ordinary"][0]).all() and np.isfinite(made["ties"][0]).all()
    assert set(made["ties"][0].ravel() * 2 % 1) == {0.0}
    np.testing.assert_array_equal(made["edges"][0], inputs(specs, "edges", "seed")[0])
    assert not np.array_equal(made["ordinary"][0], inputs(specs, "ordinary", "other")[0])


def test_outputs_that_are_the_same_have_names_of_their_own() -> None:
    model = converted(next(case for case in CASES if case.id == "trees/the_same_twice"))
    assert len({value.name for value in model.ir.graph.outputs}) == 3


PROGRAM = Case("judge", "program", lambda x: (jnp.sin(x), jnp.argmax(x)), ("f32[6] plain",))


@pytest.mark.parametrize(
    "other, word",
    [
        (lambda x: (jnp.sin(x), jnp.argmax(x)), "same"),
        (lambda x: (jnp.sin(x) + 1e-3, jnp.argmax(x)), "wrong"),
        (lambda x: (jnp.sin(x) * (1 + 1e-4), jnp.argmax(x)), "wrong"),
        (lambda x: (jnp.sin(x), jnp.argmin(x)), "wrong"),
        (lambda x: jnp.sin(x), "wrong"),
        (lambda x: (jnp.sin(x)[None], jnp.argmax(x)), "wrong"),
        (lambda x: (jnp.sin(x), jnp.argmax(x).astype(jnp.float32)), "wrong"),
    ],
)
def test_the_judge_tells_one_program_from_another(other: Any, word: str) -> None:
    model = converted(Case("judge", "other", other, PROGRAM.specs))
    assert judge(PROGRAM, lambda _: model).word == word


@pytest.mark.parametrize("case", CONVERTED[::110], ids=lambda case: case.id)
def test_the_program_that_is_compiled_is_what_jax_computes_op_by_op(case: Case) -> None:
    given = inputs(case.specs, "ordinary", case.id)
    with settings(case.x64):
        assert compared(op_by_op(case.original(), given), compiled(case)(given)).word == "same"


def test_scans_and_constants_run_op_by_op() -> None:
    table = jnp.arange(20.0)

    def function(x: Any) -> Any:
        total, products = jax.lax.scan(lambda carry, v: (carry + v, carry * v), 0, x)
        return jax.nn.relu(total), products, jax.jit(jnp.take)(table, total)

    for given, wanted in (([1, 2, 7], [10, [0, 2, 21], 10.0]), ([], [0, [], 0.0])):
        results = op_by_op(function, (np.array(given, np.int32),))
        assert [result.tolist() for result in results] == wanted
        assert [result.dtype for result in results] == [np.int32, np.int32, np.float32]


def test_what_rounding_explains_is_settled_op_by_op_and_a_wrong_rule_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32 the gradient of a saturated tanh is all rounding: 1 minus nearly 1."""
    case = next(case for case in CASES if case.id == "gradients/grad_matmul")
    assert judge(case).word == "same"
    rule = RULES.get("tanh")
    assert rule is not None
    off = replace(rule, function=lambda op, x: rule.function(op, x) * (1 + 1e-4))
    monkeypatch.setitem(RULES._user, "tanh", off)
    for name in ("gradients/grad_matmul", "gradients/grad_tanh"):
        assert judge(next(case for case in CASES if case.id == name)).word == "wrong"


def test_the_judge_tells_how_it_failed() -> None:
    def refusing(case: Case) -> onward.Model:
        raise UnsupportedError("no")

    def crashing(case: Case) -> onward.Model:
        raise TypeError("no")

    def unloadable(case: Case) -> onward.Model:
        model = converted(case)
        next(iter(model.ir.graph)).op_type = "NoSuchOp"
        return model

    words = [judge(PROGRAM, convert).word for convert in (refusing, crashing, unloadable)]
    assert words == ["refused", "crash", "invalid"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_floats_are_compared_as_their_dtype_is_precise(dtype: Any) -> None:
    wanted = np.array([1.0, 100.0, np.nan, np.inf, 0.0], dtype)
    step = float(ml_dtypes.finfo(dtype).eps)
    assert difference(wanted, wanted * dtype(1 + step)) is None
    assert difference(wanted, np.array([1.0, 100.0 * (1 + 0.05), np.nan, np.inf, 0.0], dtype)) is not None
    for place, value in ((2, 1.0), (3, -np.inf), (3, np.nan), (0, np.nan), (4, np.inf)):
        found = wanted.copy()
        found[place] = value
        assert difference(wanted, found) is not None


def test_all_else_is_compared_exactly() -> None:
    assert difference(np.array([1, 2]), np.array([1, 2])) is None
    assert difference(np.array([2**62]), np.array([2**62 + 1])) is not None
    assert difference(np.array([1], np.int32), np.array([1], np.int64)) is not None
    assert difference(np.array([True]), np.array([False])) is not None
    assert difference(np.zeros((0, 2)), np.zeros((0, 3))) is not None
