"""Activations beside weights of 8 bits: the interpreter rounds them to 8 bits as well, on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.canon.build import Tensor
from onward.frontends.tensorflow.writer import Writer


def is_hybrid(op: Writer, x: int, weight: int) -> bool:
    """Whether of two inputs of the op being written one is in floats, the other in integers."""
    return op.operation.scale(x) is None and op.operation.scale(weight) is not None


def rounded(op: Writer, x: Tensor, axes: Sequence[int], asymmetric: bool) -> Tensor:
    """Numbers as integers of 8 bits stand for them, with one scale for all that lie along `axes`.

    Either the scale reaches as far on both sides of zero, or from the least number to the greatest.
    """
    if asymmetric:
        low = op.Min(op.reduced("ReduceMin", x, axes, keepdims=True), op.like(0, x))
        high = op.Max(op.reduced("ReduceMax", x, axes, keepdims=True), op.like(0, x))
        step = _step(op, high - low, 255)
        least = op.Round(low / step)
        return op.Min(op.Max(op.Round(x / step), least), least + 255.0) * step
    step = _step(op, op.reduced("ReduceMax", op.Abs(x), axes, keepdims=True), 127)
    return op.Round(x / step) * step


def _step(op: Writer, size: Tensor, steps: int) -> Tensor:
    return op.where(size > 0.0, size / float(steps), op.like(1, size))


def weighted(op: Writer, x: Tensor, axes: Sequence[int], asymmetric: Any, place: int = 0) -> Tensor:
    """An input, by its place, as it meets the weights in the second: rounded where these are integers and it is not."""
    return rounded(op, x, axes, bool(asymmetric)) if is_hybrid(op, place, 1) else x
