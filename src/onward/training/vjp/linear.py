"""Gradients of products of matrices."""

from __future__ import annotations

from onward.training.autodiff import Context
from onward.training.broadcast import unbroadcast
from onward.training.build import Tensor
from onward.training.vjp import Gradients, vjp


@vjp("MatMul")
def matmul(c: Context, g: Tensor, a: Tensor, b: Tensor) -> Gradients:
    if a.rank is None or b.rank is None:
        raise c.refuse("the rank of an input is not known")
    if a.rank == 1 or b.rank == 1:
        return _with_vector(c, g, a, b)
    if b.rank == 2:
        return _with_matrix(c, g, a, b)
    return unbroadcast(g @ turned(b), a), unbroadcast(turned(a) @ g, b)


def _with_matrix(c: Context, g: Tensor, a: Tensor, b: Tensor) -> Gradients:
    """A stack of rows times one matrix, as linear layers are: one product of flat matrices for the weight."""
    op = c.op
    if a.rank == 2:
        return op.Gemm(g, b, transB=1), op.Gemm(a, g, transA=1)
    rows, columns = flat(a), flat(g)
    return g @ turned(b), op.Gemm(rows, columns, transA=1)


def _with_vector(c: Context, g: Tensor, a: Tensor, b: Tensor) -> Gradients:
    """As matrices of one row or column, which the result does not have."""
    op = c.op
    row = op.Unsqueeze(a, op.ints([0])) if a.rank == 1 else a
    column = op.Unsqueeze(b, op.ints([1])) if b.rank == 1 else b
    if b.rank == 1:
        g = op.Unsqueeze(g, op.ints([-1]))
    if a.rank == 1:
        g = op.Unsqueeze(g, op.ints([-2]))
    da, db = unbroadcast(g @ turned(column), row), unbroadcast(turned(row) @ g, column)
    return op.reshape_like(da, a), op.reshape_like(db, b)


@vjp("Gemm")
def gemm(
    c: Context,
    g: Tensor,
    a: Tensor,
    b: Tensor,
    bias: Tensor | None = None,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
) -> Gradients:
    op = c.op
    if transA:
        da = op.Gemm(b, g, alpha=alpha, transA=transB, transB=1)
    else:
        da = op.Gemm(g, b, alpha=alpha, transB=1 - transB)
    if transB:
        db = op.Gemm(g, a, alpha=alpha, transA=1, transB=transA)
    else:
        db = op.Gemm(a, g, alpha=alpha, transA=1 - transA)
    if bias is None:
        return da, db
    return da, db, unbroadcast(g if beta == 1 else g * beta, bias)


def turned(x: Tensor) -> Tensor:
    """The last two axes swapped."""
    assert x.rank is not None
    perm = list(range(x.rank))
    perm[-2:] = perm[:-3:-1]
    return x.op.Transpose(x, perm=perm)


def flat(x: Tensor) -> Tensor:
    """All axes but the last as one."""
    last = x.dims[-1] if x.dims is not None else None
    op = x.op
    if isinstance(last, int) and last > 0:
        return op.Reshape(x, op.ints([-1, last]))
    size = op.Shape(x, start=-1)
    return op.Reshape(x, op.Concat(op.ints([-1]), size, axis=0))
