"""Gradients through random ops."""

from __future__ import annotations

from onward.graph.build import Tensor
from onward.spec.activation import Dropout
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp
from onward.training.autodiff.vjp.elementwise import constant_of


@vjp("Dropout")
def dropout(
    c: Context,
    g: Tensor,
    x: Tensor,
    ratio: Tensor | None = None,
    training_mode: Tensor | None = None,
    *,
    p: Dropout,
) -> Gradients:
    """By the mask of the very same draw. What is kept was divided by its probability."""
    op = c.op
    known = None if training_mode is None else constant_of(training_mode)
    if training_mode is None or (known is not None and not known.any()):
        return g
    kept = 1 - (op.like(0.5, g) if ratio is None else ratio.cast(g.dtype))
    factor = op.Reciprocal(op.where(kept > 0, kept, 1))
    if known is None:
        factor = op.Where(training_mode, factor, op.like(1, factor))
    return g * (c.optional_output(1).cast(g.dtype) * factor)


no_gradient("drawn at random", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
no_gradient("drawn at random", "Bernoulli", "Multinomial")
