"""Gradients of sums and other reductions."""

from __future__ import annotations

from onward.training.autodiff import Context
from onward.training.build import Tensor
from onward.training.vjp import Gradients, vjp


def restored(c: Context, reduced: Tensor, x: Tensor, axes: Tensor | None, keepdims: int) -> Tensor:
    """A reduced tensor with the reduced axes back, of size 1, so that it broadcasts to `x`."""
    if keepdims or (axes is None and reduced.rank == 0):
        return reduced
    if axes is not None:
        return c.op.Unsqueeze(reduced, axes)
    ones = c.op.Expand(c.op.ints([1]), c.op.Shape(c.op.Shape(x)))
    return c.op.Reshape(reduced, ones)


def reduces_nothing(axes: Tensor | None, noop_with_empty_axes: int) -> bool:
    """Whether the attribute turns the reduction into the identity; empty axes at run time are not foreseen."""
    empty = axes is None or axes.sizes == [0]
    return bool(noop_with_empty_axes) and empty


@vjp("ReduceSum")
def reduce_sum(
    c: Context, g: Tensor, x: Tensor, axes: Tensor | None = None, *, keepdims: int, noop_with_empty_axes: int
) -> Gradients:
    if reduces_nothing(axes, noop_with_empty_axes):
        return g
    return c.op.Expand(restored(c, g, x, axes, keepdims), x.shape)
