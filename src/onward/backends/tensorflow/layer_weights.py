"""Weights of layers, which are variables even where no one named them in the file."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared import layer_weights
from onward.backends.shared.layer_weights import Arrangement as Arrangement
from onward.backends.tensorflow.target import ops, tf

GRID = "onward.grid"
"""In the `meta` of a weight that is to be rounded to 8 bits when the model runs: the scale of each of its numbers."""
LARGEST = 127
"""How many steps there are on either side of zero."""


def owned(
    e: Emitter, hint: str, arranged: Mapping[str, Arrangement] | None = None, **parts: Expr | None
) -> list[Expr | None]:
    """The inputs of a layer as `shared.layer_weights.owned` gives them, rounded where they have a grid."""
    found, arranged = layer_weights.owned(e, hint, arranged, **parts), arranged or {}
    for place, (attribute, x) in enumerate(parts.items()):
        if isinstance(x, Arg) and e.const(x) is not None and GRID in x._value.meta:
            found[place] = _rounded(e, found[place], x._value, arranged.get(attribute))
    return found


def _rounded(e: Emitter, weight: Expr | None, value: ir.Value, arranged: Arrangement | None) -> Expr:
    """A weight rounded to a grid that is symmetric about zero, with one step, or one for each channel out."""
    steps = value.meta[GRID] if arranged is None else arranged[0](value.meta[GRID])
    first = steps.reshape(-1)[0]
    if (steps == first).all():
        limit = LARGEST * float(first)
        return tf.quantization.fake_quant_with_min_max_args(weight, -limit, limit, narrow_range=True)
    by_last = steps.reshape(-1, steps.shape[-1])
    if not (by_last == by_last[0]).all():  # the weights of a depthwise convolution have their channels in two axes
        by_last = steps.reshape(-1, math.prod(steps.shape[-2:]))
    limits = (LARGEST * by_last[0]).astype(np.float32)
    return ops.rounded_by_channel(weight, e.constant(limits, "limits"))
