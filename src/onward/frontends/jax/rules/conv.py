"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.frontends.jax.dimensions import is_known
from onward.frontends.jax.registry import rule
from onward.frontends.jax.rules.linear import computed_in
from onward.frontends.jax.writer import Writer
from onward.frontends.lax.conv import Window, convolution
from onward.graph.build import Tensor


@rule("conv_general_dilated")
def conv_general_dilated(
    op: Writer,
    x: Tensor,
    w: Tensor,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[Any, Any]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
) -> Tensor:
    inside = computed_in(op.dtype, x.dtype, w.dtype)
    pads = [tuple(int(p) if is_known(p) else op.size(p) for p in pair) for pair in padding]
    window = Window(list(window_strides), pads, list(lhs_dilation), list(rhs_dilation))  # type: ignore[arg-type]
    axes = dimension_numbers.lhs_spec, dimension_numbers.rhs_spec, dimension_numbers.out_spec
    y = convolution(op, x.cast(inside), w.cast(inside), window, axes, feature_group_count, batch_group_count)
    y.value.shape = ir.Shape(op.dims(op.outs[0].shape)) if y.value.producer() is not None else y.value.shape
    return y.cast(op.dtype)
