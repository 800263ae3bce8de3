"""Gradients of elementwise arithmetic."""

import numpy as np
import pytest
from gradient_checks import check_op


def uniform(*shape: int, low: float = 0.3, high: float = 2.0) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(low, high, shape)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((1, 3), (2, 1)), ((), (2, 3))])
def test_arithmetic(op: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check_op(op, {"a": uniform(*shapes[0]), "b": uniform(*shapes[1])})


@pytest.mark.parametrize("op", ["Neg", "Exp", "Log"])
def test_functions(op: str) -> None:
    check_op(op, {"x": uniform(2, 3)})
