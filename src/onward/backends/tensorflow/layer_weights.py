"""Weights of layers, which are variables even where no one named them in the file."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.scopes import scope_of
from onward.backends.emit.weights import Part, Transform
from onward.backends.tensorflow.target import ops, tf

Arrangement = tuple[Transform, str]
"""How a weight is rearranged, and what that is called, so that two uses of one weight share it."""
GRID = "onward.grid"
"""In the `meta` of a weight that is to be rounded to 8 bits when the model runs: the scale of each of its numbers."""
LARGEST = 127
"""How many steps there are on either side of zero."""


def owned(
    e: Emitter, hint: str, arranged: Mapping[str, Arrangement] | None = None, **parts: Expr | None
) -> list[Expr | None]:
    """The inputs of a layer; constants without a name become its parameters, such as `lstm.weight`.

    Those to be `arranged` are written in another arrangement; None for one that is computed when the model runs.
    """
    arranged = arranged or {}
    constants = {a: x._value for a, x in parts.items() if isinstance(x, Arg) and e.const(x) is not None}
    unnamed = {
        attribute: Part(value, *arranged.get(attribute, (None, "")))
        for attribute, value in constants.items()
        if not e.weights.is_named(value)
    }
    found = e.weights.owned(unnamed, scope_of(e.node), hint) if unnamed else {}
    for attribute in arranged.keys() - found.keys():
        if attribute in constants:
            found[attribute] = e.weights.arranged(constants[attribute], *arranged[attribute])
    for attribute, value in constants.items():
        if GRID in value.meta:
            found[attribute] = _rounded(e, found.get(attribute, parts[attribute]), value, arranged.get(attribute))
    return [found.get(a, None if a in arranged else x) for a, x in parts.items()]


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
