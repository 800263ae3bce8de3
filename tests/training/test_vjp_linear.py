"""Gradients of products of matrices."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import check_op


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 2, 2, 3), (3, 2)),
        ((2, 2, 3), (2, 3, 2)),
        ((2, 3), (2, 3, 2)),
        ((2, 1, 2, 3), (3, 3, 2)),
        ((3,), (3, 2)),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((3,), (2, 3, 2)),
        ((2, 2, 3), (3,)),
    ],
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check_op("MatMul", {"a": normal(*a), "b": normal(*b)})


@pytest.mark.parametrize("bias", [(4,), (2, 4), (2, 1), (), None])
def test_gemm_bias(bias: tuple[int, ...] | None) -> None:
    inputs = {"a": normal(2, 3), "b": normal(3, 4)}
    if bias is not None:
        inputs["bias"] = normal(*bias)
    check_op("Gemm", inputs, alpha=0.5, beta=1.5)


@pytest.mark.parametrize("attributes", [{"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}])
def test_gemm_transposed(attributes: dict[str, Any]) -> None:
    a, b = normal(2, 3), normal(3, 4)
    if "transA" in attributes:
        a = a.T.copy()
    if "transB" in attributes:
        b = b.T.copy()
    check_op("Gemm", {"a": a, "b": b, "bias": normal(4)}, **attributes)
