"""The gradient of broadcasting: a sum over the axes that were stretched."""

from __future__ import annotations

from onward.graph.build import Tensor


def unbroadcast(gradient: Tensor, like: Tensor) -> Tensor:
    """`gradient` summed to the shape of `like`, of which it is a broadcast form."""
    op = gradient.op
    wide, narrow = gradient.dims, like.dims
    if wide is None or narrow is None:
        return _at_run_time(gradient, like)
    lead = len(wide) - len(narrow)
    axes = list(range(lead))
    for axis, (w, n) in enumerate(zip(wide[lead:], narrow, strict=True), lead):
        if n == 1 and w != 1:
            axes.append(axis)
        elif w != n or w is None:
            return _at_run_time(gradient, like)
    if axes:
        gradient = op.sum(gradient, axes, keepdims=len(axes) > lead)
    return op.reshape_like(gradient, like) if lead and len(axes) > lead else gradient


def _at_run_time(gradient: Tensor, like: Tensor) -> Tensor:
    """Sums over the axes that turn out to be stretched."""
    op = gradient.op
    wide, narrow = op.Shape(gradient), op.Shape(like)
    if gradient.rank is not None and like.rank is not None:
        ones = op.ints([1] * (gradient.rank - like.rank))
    else:
        missing = op.Size(wide) - op.Size(narrow)
        ones = op.Expand(op.index(1), op.Unsqueeze(missing, op.ints([0])))
    padded = op.Concat(ones, narrow, axis=0)
    axes = op.Reshape(op.NonZero(op.Not(op.Equal(wide, padded))), op.ints([-1]))
    summed = op.ReduceSum(gradient, axes, keepdims=1, noop_with_empty_axes=1)
    return op.Reshape(summed, narrow, allowzero=1)
