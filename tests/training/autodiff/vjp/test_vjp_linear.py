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


EQUATIONS = {
    "ij,jk->ik": ((2, 3), (3, 2)),
    "ij->i": ((2, 3),),
    "ii": ((3, 3),),
    "iij->ji": ((2, 2, 3),),
    "ijij->i": ((2, 3, 2, 3),),
    "ij,k->k": ((2, 3), (2,)),
    "ij,ik,jl->kl": ((2, 2), (2, 3), (2, 2)),
    "...ij,...jk->...ik": ((2, 2, 3), (1, 3, 2)),
    "...ij,j": ((2, 2, 3), (3,)),
    "bhqd,bhkd->bhqk": ((1, 2, 2, 3), (1, 2, 2, 3)),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    inputs = {f"x{i}": normal(*shape) + i for i, shape in enumerate(EQUATIONS[equation])}
    check_op("Einsum", inputs, second=len(inputs) < 3, equation=equation)


def test_einsum_that_sums_over_an_ellipsis() -> None:
    """ONNX Runtime refuses the equation."""
    check_op("Einsum", {"a": normal(2, 1, 2), "b": normal(3)}, equation="i...j,...->ij", runtime=False)


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (2, 1, 1)])
def test_determinant(shape: tuple[int, ...]) -> None:
    check_op("Det", {"x": normal(*shape)})


def test_determinant_of_a_singular_matrix() -> None:
    """PyTorch's own gradient is right or all zeros, depending on whether its factorisation rounds to a zero."""
    x = normal(3, 3)
    x[2] = x[1]
    check_op("Det", {"x": x}, second=False, autograd=False)
