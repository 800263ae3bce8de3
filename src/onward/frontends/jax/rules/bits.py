"""The bits of numbers."""

from __future__ import annotations

from typing import Any

from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer, onnx_dtype
from onward.frontends.lax import bits
from onward.graph.build import Tensor

rule("shift_left", broadcasts=True)(bits.shift_left)
rule("shift_right_logical", broadcasts=True)(bits.shift_right_logical)
rule("shift_right_arithmetic", broadcasts=True)(bits.shift_right_arithmetic)
rule("population_count", broadcasts=True)(bits.population_count)
rule("clz", broadcasts=True)(bits.leading_zeros)
rule("nextafter", broadcasts=True)(bits.next_after)


@rule("bitcast_convert_type")
def bitcast_convert_type(op: Writer, x: Tensor, *, new_dtype: Any) -> Tensor:
    return bits.bitcast(op, x, onnx_dtype(new_dtype))
