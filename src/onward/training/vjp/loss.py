"""Gradients of losses on classes."""

from __future__ import annotations

from onward.training.autodiff import Context
from onward.training.build import Tensor
from onward.training.vjp import Gradients, vjp


@vjp("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    c: Context,
    g: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str,
    ignore_index: int | None = None,
) -> Gradients:
    place, slope = _slopes(c, g, x, target, weight, reduction, ignore_index)
    return c.op.ScatterElements(c.op.zeros_like(x), place, slope, axis=1)


@vjp("SoftmaxCrossEntropyLoss")
def cross_entropy(
    c: Context,
    g: Tensor | None,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str,
    ignore_index: int | None = None,
) -> Gradients:
    """Probabilities minus what is right, from the logarithms that the op itself has computed."""
    op = c.op
    probabilities = op.Exp(c.optional_output(1))
    others = c.gradient(1)
    found = None if others is None else others - probabilities * op.sum(others, [1])
    if g is None:
        return found
    place, slope = _slopes(c, g, scores, target, weight, reduction, ignore_index)
    own = op.ScatterElements(probabilities * -slope, place, slope, axis=1, reduction="add")
    return own if found is None else own + found


def _slopes(
    c: Context, g: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int | None
) -> tuple[Tensor, Tensor]:
    """The place of each target among the classes, and the gradient of what stands there; both with an axis 1."""
    op = c.op
    if weight is not None and c.wants(weight.value):
        raise c.refuse("with respect to the weights of the classes")
    axis = op.ints([1])
    place = op.Unsqueeze(target, axis)
    valid = None
    if ignore_index is not None:
        ignored = op.Equal(place, op.like(ignore_index, place))
        place = op.where(ignored, 0, place)
        valid = op.Not(ignored).cast(x.dtype)
    share = valid if weight is None else op.Gather(weight, place, axis=0)
    if weight is not None and valid is not None and share is not None:
        share = share * valid
    if reduction == "none":
        slope = -op.Unsqueeze(g, axis)
        return place, slope if share is None else slope * share
    if reduction == "mean":
        g = g / (op.Size(place).cast(x.dtype) if share is None else op.sum(share, keepdims=False))
    return place, op.Expand(-g, op.Shape(place)) if share is None else -g * share
