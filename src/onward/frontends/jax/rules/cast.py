"""Changes of dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer, onnx_dtype
from onward.frontends.lax import elementwise as lax
from onward.frontends.tensorflow.values import Complex
from onward.graph.build import Tensor


@rule("convert_element_type", broadcasts=True)
def convert_element_type(op: Writer, x: Tensor, *, new_dtype: Any) -> Tensor | Complex:
    if np.dtype(new_dtype).kind == "c":
        real = x.cast(onnx_dtype(new_dtype))
        return Complex(real, op.zeros_like(real))
    return lax.convert(op, x, onnx_dtype(new_dtype))
