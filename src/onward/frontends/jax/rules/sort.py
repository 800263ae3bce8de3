"""Sorting, and the largest few."""

from __future__ import annotations

from collections.abc import Sequence

from onward.errors import UnsupportedError
from onward.frontends.jax.dimensions import Dim
from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer, onnx_dtype
from onward.frontends.lax import sort as lax
from onward.graph.build import Tensor


@rule("sort")
def sort(op: Writer, *operands: Tensor, dimension: int, num_keys: int) -> Sequence[Tensor]:
    return lax.sort(op, operands, int(dimension), int(num_keys))


@rule("top_k")
def top_k(op: Writer, x: Tensor, *, k: Dim, axis: int = -1) -> Sequence[Tensor]:
    (count,) = op.numbers_of([k], "the number of largest")
    rank = op.rank(x, "what is sorted")
    values, places = lax.top_k(op, x, count, int(axis) % rank)
    return [values, places.cast(onnx_dtype(op.outs[1].dtype))]


@rule("approx_top_k")
def approx_top_k(
    op: Writer, x: Tensor, *, k: Dim, reduction_dimension: int, is_max_k: bool, aggregate_to_topk: bool
) -> Sequence[Tensor]:
    """None is left out."""
    if not aggregate_to_topk:
        raise UnsupportedError(
            "largest numbers of parts (aggregate_to_topk=False) are not supported; take those of all"
        )
    (count,) = op.numbers_of([k], "the number of largest")
    axis = int(reduction_dimension) % op.rank(x, "what is sorted")
    values, places = lax.top_k(op, x if is_max_k else op.Neg(x), count, axis)
    return [values if is_max_k else op.Neg(values), places]


@rule("lt_to", broadcasts=True)
def lt_to(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return lax.is_before(op, a, b)


@rule("le_to", broadcasts=True)
def le_to(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.Not(lax.is_before(op, b, a))


@rule("eq_to", broadcasts=True)
def eq_to(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.Not(op.Or(lax.is_before(op, a, b), lax.is_before(op, b, a)))
