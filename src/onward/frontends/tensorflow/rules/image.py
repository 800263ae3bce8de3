"""Colours."""

from __future__ import annotations

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def _channels(op: Writer, x: Tensor) -> list[Tensor]:
    return [op.Gather(x, op.ints([i]), axis=-1) for i in range(3)]


@rule("RGBToHSV")
def rgb_to_hsv(op: Writer, x: Tensor) -> Tensor:
    red, green, blue = _channels(op, x)
    value = op.Max(red, green, blue)
    spread = value - op.Min(red, green, blue)
    zero, one = op.like(0, x), op.like(1, x)
    saturation = op.where(value > zero, spread / op.where(value > zero, value, one), zero)
    scale = 1.0 / (op.where(spread > zero, spread, one) * 6.0)
    hue = op.where(
        op.Equal(red, value),
        (green - blue) * scale,
        op.where(op.Equal(green, value), (blue - red) * scale + 2.0 / 6.0, (red - green) * scale + 4.0 / 6.0),
    )
    hue = op.where(spread > zero, hue, zero)
    return op.Concat(op.where(hue < zero, hue + 1.0, hue), saturation, value, axis=-1)


@rule("HSVToRGB")
def hsv_to_rgb(op: Writer, x: Tensor) -> Tensor:
    hue, saturation, value = _channels(op, x)
    sector = hue * 6.0
    zero, one = op.like(0, x), op.like(1, x)

    def part(of: Tensor) -> Tensor:
        return ((op.Max(op.Min(of, one), zero) - 1.0) * saturation + 1.0) * value

    red = part(op.Abs(sector - 3.0) - 1.0)
    green = part(2.0 - op.Abs(sector - 2.0))
    blue = part(2.0 - op.Abs(sector - 4.0))
    return op.Concat(red, green, blue, axis=-1)


@rule("AdjustContrastv2")
def adjust_contrast(op: Writer, x: Tensor, factor: Tensor) -> Tensor:
    rank = op.rank(x, "the images")
    mean = op.reduced("ReduceMean", x, [rank - 3, rank - 2], keepdims=True)
    return (x - mean) * factor + mean


@rule("AdjustSaturation")
def adjust_saturation(op: Writer, x: Tensor, factor: Tensor) -> Tensor:
    hue, saturation, value = _channels(op, rgb_to_hsv(op, x))
    scaled = op.Max(op.Min(saturation * factor, op.like(1, x)), op.like(0, x))
    return hsv_to_rgb(op, op.Concat(hue, scaled, value, axis=-1))


@rule("AdjustHue")
def adjust_hue(op: Writer, x: Tensor, delta: Tensor) -> Tensor:
    hue, saturation, value = _channels(op, rgb_to_hsv(op, x))
    turned = hue + delta
    return hsv_to_rgb(op, op.Concat(turned - op.Floor(turned), saturation, value, axis=-1))
