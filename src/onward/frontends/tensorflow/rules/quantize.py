"""Numbers rounded to the steps of a scale, as training for quantised inference does it."""

from __future__ import annotations

import numpy as np

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def _fake(op: Writer, x: Tensor, low: Tensor, high: Tensor, bits: int, narrow: bool) -> Tensor:
    """The range is moved a little, so that zero is one of its steps."""
    first, last = float(narrow), float(2**bits - 1)
    step = (high - low) / (last - first)
    zero = first - low / step
    zero = op.where(
        zero < first, op.like(first, zero), op.where(zero > last, op.like(last, zero), op.Floor(zero + 0.5))
    )
    bottom, top = (first - zero) * step, (last - zero) * step
    inverse = 1.0 / step
    shift = op.Floor(0.5 - bottom * inverse)
    clamped = op.Max(op.Min(x, top), bottom)
    rounded = op.Floor((clamped - bottom) * inverse - shift + 0.5) * step
    return op.where(op.Equal(low, high), op.zeros_like(x), rounded)


@rule("FakeQuantWithMinMaxArgs")
def fake_quant_args(
    op: Writer, x: Tensor, *, min: float = -6.0, max: float = 6.0, num_bits: int = 8, narrow_range: bool = False
) -> Tensor:
    low, high = (op.constant(np.asarray(n, np.float32)) for n in (min, max))
    return _fake(op, x, low, high, num_bits, narrow_range)


@rule("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(
    op: Writer, x: Tensor, low: Tensor, high: Tensor, *, num_bits: int = 8, narrow_range: bool = False
) -> Tensor:
    return _fake(op, x, low, high, num_bits, narrow_range)


@rule("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def there_and_back(
    op: Writer,
    x: Tensor,
    low: Tensor,
    high: Tensor,
    *,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    narrow_range: bool = False,
    axis: int = -1,
) -> Tensor:
    """The scale is that of the side of the range that needs the larger steps; zero is always one of them."""
    if not range_given:
        rank = op.rank(x, "what is rounded")
        others = [a for a in range(rank) if a != axis] if axis >= 0 else list(range(rank))
        low, high = (op.reduced(f"Reduce{kind}", x, others, keepdims=axis >= 0) for kind in ("Min", "Max"))
    elif axis >= 0:
        beside = list(range(1, op.rank(x, "what is rounded") - axis))
        low, high = op.unsqueeze(low, beside), op.unsqueeze(high, beside)
    most = float(2 ** (num_bits - 1) - 1 if signed_input else 2**num_bits - 1)
    least = (float(narrow_range) - 2.0 ** (num_bits - 1)) if signed_input else 0.0
    huge = op.like(np.finfo(x.dtype.numpy()).max, x)
    from_low = op.where(low * least > 0.0, op.like(least, x) / low, huge)
    from_high = op.where(high * most > 0.0, op.like(most, x) / high, huge)
    by_low = from_low < from_high
    scale = op.where(by_low, from_low, from_high)
    step = op.where(by_low, low / (least or 1.0), high / most)
    bottom, top = op.where(by_low, low, step * least), op.where(by_low, step * most, high)
    steps = op.Max(op.Min(x, top), bottom) * scale
    return (op.Round(steps) if round_mode == "HALF_TO_EVEN" else op.Floor(steps + 0.5)) * step
