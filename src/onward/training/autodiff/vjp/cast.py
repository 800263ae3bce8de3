"""Gradients of conversions between dtypes."""

from __future__ import annotations

from onward.graph.build import Tensor
from onward.training.autodiff.quantised_values import is_narrow
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp


@vjp("Cast", "CastLike", of_levels=True)
def cast(c: Context, g: Tensor, x: Tensor, *_: object, **__: object) -> Gradients:
    return g if is_narrow(x.value) else g.cast(x.dtype)


no_gradient("bits read as another type", "BitCast")
