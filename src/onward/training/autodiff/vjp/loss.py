"""Gradients of losses on classes."""

from __future__ import annotations

from onward.graph.build import Tensor
from onward.spec.loss import Loss
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp


@vjp("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    c: Context, g: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, *, p: Loss
) -> Gradients:
    place, slope, share = _slopes(c, g, x, target, weight, p)
    own = c.op.ScatterElements(c.op.zeros_like(x), place, slope, axis=1)
    return own, None, _of_weights(c, x, place, share, weight, p)


@vjp("SoftmaxCrossEntropyLoss")
def cross_entropy(
    c: Context, g: Tensor | None, scores: Tensor, target: Tensor, weight: Tensor | None = None, *, p: Loss
) -> Gradients:
    """Probabilities minus what is right, from the logarithms that the op itself has computed."""
    op = c.op
    probabilities = op.Exp(c.optional_output(1))
    others = c.gradient(1)
    found = None if others is None else others - probabilities * op.sum(others, [1])
    if g is None:
        return found
    place, slope, share = _slopes(c, g, scores, target, weight, p)
    own = op.ScatterElements(probabilities * -slope, place, slope, axis=1, reduction="add")
    classes = _of_weights(c, c.optional_output(1), place, share, weight, p)
    return own if found is None else own + found, None, classes


def _slopes(
    c: Context, g: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, p: Loss
) -> tuple[Tensor, Tensor, Tensor]:
    """The place of each target among the classes, the gradient of what stands there, and that of a weight of 1 there.

    All with an axis 1.
    """
    op = c.op
    axis = op.ints([1])
    place = op.Unsqueeze(target, axis)
    valid = None
    if p.ignore_index is not None:
        ignored = op.Equal(place, op.like(p.ignore_index, place))
        place = op.where(ignored, 0, place)
        valid = op.Not(ignored).cast(x.dtype)
    share = valid if weight is None else op.Gather(weight, place, axis=0)
    if weight is not None and valid is not None and share is not None:
        share = share * valid
    if p.reduction == "mean":
        g = g / (op.Size(place).cast(x.dtype) if share is None else op.sum(share, keepdims=False))
    one = -op.Unsqueeze(g, axis) if p.reduction == "none" else op.Expand(-g, op.Shape(place))
    return place, one if share is None else one * share, one if valid is None else one * valid


def _of_weights(c: Context, x: Tensor, place: Tensor, one: Tensor, weight: Tensor | None, p: Loss) -> Tensor | None:
    """The gradient of the weights of the classes, by which a mean is divided, too."""
    op = c.op
    if weight is None or not c.wants(weight.value):
        return None
    found = op.GatherElements(x, place, axis=1) * one
    if p.reduction == "mean":
        found = found + one * c.y
    rows, flat = (op.Reshape(t, op.ints([-1])) for t in (place, found))
    return op.ScatterElements(op.zeros_like(weight), rows, flat, axis=0, reduction="add")
