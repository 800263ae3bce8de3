"""Gradients of products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from onward.graph.build import Builder, Tensor
from onward.spec.linear import Einsum, Gemm
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp


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
def gemm(c: Context, g: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None, *, p: Gemm) -> Gradients:
    op, turned_a, turned_b = c.op, int(p.transA), int(p.transB)
    if turned_a:
        da = op.Gemm(b, g, alpha=p.alpha, transA=turned_b, transB=1)
    else:
        da = op.Gemm(g, b, alpha=p.alpha, transB=1 - turned_b)
    if turned_b:
        db = op.Gemm(g, a, alpha=p.alpha, transA=1, transB=turned_a)
    else:
        db = op.Gemm(a, g, alpha=p.alpha, transA=1 - turned_a)
    if bias is None:
        return da, db
    return da, db, unbroadcast(g if p.beta == 1 else g * p.beta, bias)


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


@vjp("Einsum")
def einsum(c: Context, g: Tensor, *xs: Tensor, p: Einsum) -> Gradients:
    """For each operand the sum of products of the gradient and the other operands."""
    terms, output = subscripts(c, p.equation, xs)
    return [_of_operand(c, g, xs, terms, output, i) if c.wants(x.value) else None for i, x in enumerate(xs)]


def subscripts(c: Context, equation: str, xs: Sequence[Tensor]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, one letter an axis: those of an ellipsis are new ones."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        right = "..." * ("..." in left) + "".join(sorted(s for s in set(letters) if letters.count(s) == 1))
    if "..." not in equation:
        return terms, right
    free = [letter for letter in ascii_letters if letter not in equation]
    widest = 0
    for i, (term, x) in enumerate(zip(terms, xs, strict=True)):
        if "..." in term:
            if x.rank is None:
                raise c.refuse("it has an ellipsis, and the rank of an operand is not known")
            count = x.rank - len(term.replace("...", ""))
            widest = max(widest, count)
            terms[i] = term.replace("...", "".join(reversed(free[:count])))
    return terms, right.replace("...", "".join(reversed(free[:widest])))


def _of_operand(c: Context, g: Tensor, xs: Sequence[Tensor], terms: Sequence[str], output: str, i: int) -> Tensor:
    op, x, own = c.op, xs[i], terms[i]
    others = [(t, label) for j, (t, label) in enumerate(zip(xs, terms, strict=True)) if j != i]
    known = set(output).union(*(label for _, label in others))
    labels = "".join(dict.fromkeys(own))
    shared = "".join(label for label in labels if label in known)
    product = op.Einsum(
        g, *(t for t, _ in others), equation=",".join([output, *(label for _, label in others)]) + "->" + shared
    )
    lone = [axis for axis, label in enumerate(labels) if label not in known]
    found = op.Unsqueeze(product, op.ints(lone)) if lone else product
    if len(labels) < len(own):
        found = _on_diagonals(op, found, x, own)
    is_whole = found.dims is not None and found.dims == x.dims and None not in found.dims
    return found if is_whole else unbroadcast(op.Expand(found, x.shape), x)


def _on_diagonals(op: Builder, found: Tensor, x: Tensor, own: str) -> Tensor:
    """What has an axis a label, put where the axes of equal labels have equal indices, zero elsewhere."""
    seen: list[str] = []
    for axis, label in enumerate(own):
        if label not in seen:
            seen.append(label)
            continue
        found = op.Unsqueeze(found, op.ints([axis]))
        size = op.Squeeze(op.Shape(x, start=axis, end=axis + 1), op.ints([0]))
        numbers = op.Range(op.index(0), size, op.index(1))
        rank = len(dict.fromkeys(own)) + axis + 1 - len(set(own[: axis + 1]))
        along = [[-1 if place == at else 1 for place in range(rank)] for at in (axis, own.index(label))]
        same = op.Equal(*(op.Reshape(numbers, op.ints(shape)) for shape in along))
        found = op.where(same, found, 0)
        seen.append(label)
    return found


@vjp("Det")
def det(c: Context, g: Tensor, x: Tensor) -> Gradients:
    """The cofactors, which are determinants themselves: no inverse is needed, and a singular matrix is no exception."""
    op = c.op
    if x.dims is not None and x.dims[-1] == 1:
        return op.reshape_like(g, x)
    size = op.Shape(x, start=-1)
    count = op.Squeeze(size, op.ints([0]))
    matrices = op.Reshape(x, op.Concat(op.ints([-1]), size, size, axis=0))
    column = op.Unsqueeze(op.Range(op.index(0), count, op.index(1)), op.ints([1]))
    others = op.Range(op.index(0), count - 1, op.index(1))
    others = others + (others >= column).cast(others.dtype)
    minors = op.Gather(op.Gather(matrices, others, axis=1), others, axis=3)
    cofactors = op.Det(op.Transpose(minors, perm=[0, 1, 3, 2, 4]))
    odd = op.Mod(column + op.Transpose(column, perm=[1, 0]), op.index(2))
    signed = cofactors * (1 - odd * 2).cast(x.dtype)
    return op.reshape_like(signed * op.Reshape(g, op.ints([-1, 1, 1])), x)
