"""Gradients of elementwise arithmetic."""

import numpy as np
import pytest
from gradient_checks import check_op

Shapes = tuple[tuple[int, ...], tuple[int, ...]]


def uniform(*shape: int, low: float = 0.3, high: float = 2.0) -> np.ndarray:
    return np.random.default_rng(sum(shape) + len(shape)).uniform(low, high, shape)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((1, 3), (2, 1)), ((), (2, 3))])
def test_arithmetic(op: str, shapes: Shapes) -> None:
    check_op(op, {"a": uniform(*shapes[0]), "b": uniform(*shapes[1])})


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min"])
def test_of_several(op: str) -> None:
    check_op(op, {"a": uniform(2, 3), "b": uniform(3, high=3), "c": uniform(2, 1, high=4)})


@pytest.mark.parametrize(
    "op", ["Neg", "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Sinh", "Cosh", "Asinh", "Atan", "Erf"]
)
def test_functions(op: str) -> None:
    check_op(op, {"x": uniform(2, 3)})


@pytest.mark.parametrize("op", ["Tan", "Asin", "Acos", "Atanh"])
def test_functions_on_an_interval(op: str) -> None:
    check_op(op, {"x": uniform(2, 3, low=-0.8, high=0.8)})


def test_acosh() -> None:
    check_op("Acosh", {"x": uniform(2, 3, low=1.2)})


def test_powers() -> None:
    check_op("Pow", {"x": uniform(2, 3), "y": uniform(3)})
    check_op("Pow", {"x": uniform(2, 3), "y": np.asarray([2, 0, -1])})


def test_remainder() -> None:
    check_op("Mod", {"a": uniform(2, 3, low=1, high=9), "b": uniform(3, low=2, high=3)}, fmod=1)


def test_where_and_clip() -> None:
    check_op("Where", {"c": np.asarray([[True], [False]]), "a": uniform(2, 3), "b": uniform(3)})
    check_op("Clip", {"x": uniform(4, 3), "low": np.asarray(0.7), "high": np.asarray(1.3)})
    check_op("Clip", {"x": uniform(4, 3), "_low": np.asarray(0.7), "high": np.asarray(1.3)})


def test_ties_share_the_gradient() -> None:
    """As PyTorch has it: two equal inputs get half each."""
    x = uniform(2, 3)
    check_op("Max", {"a": x, "b": x + 1}, second=False)
