"""Matrix products of integer types for which PyTorch has no kernel."""

import torch
from torch import Tensor


def integer_matmul(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` of unsigned integers: the low bits of a signed product are those of the unsigned one."""
    return (a.to(torch.int64) @ b.to(torch.int64)).to(a.dtype)


def integer_einsum(equation: str, *operands: Tensor) -> Tensor:
    """`torch.einsum` of unsigned integers, computed on signed ones."""
    return torch.einsum(equation, *(x.to(torch.int64) for x in operands)).to(operands[0].dtype)


def integer_gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Tensor:
    """`alpha * a @ b + beta * c` of integers; fractions are cut off once, at the end."""
    left, right = a.to(torch.int64), b.to(torch.int64)
    result = (left.T if trans_a else left) @ (right.T if trans_b else right)
    if alpha != 1:
        result = alpha * result.double()
    if c is not None and beta != 0:
        addend = c.to(torch.int64)
        result = result + (addend if beta == 1 else beta * addend.double())
    return result.to(torch.int64).to(a.dtype)
