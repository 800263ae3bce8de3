"""Activations beside weights of 8 bits: the interpreter rounds them to 8 bits as well, on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.read import dtype_of
from onward.frontends.tflite.translate import turned
from onward.graph.build import Tensor


def is_hybrid(op: Writer, weight: Tensor | None) -> bool:
    """Whether a weight is integers in the file, while what it meets is not."""
    return weight is not None and weight.value in op.operation.alone


def is_accelerated(op: Writer, weight: Tensor) -> bool:
    """Whether XNNPACK takes an op beside this weight, second of its inputs: it rounds the asymmetric way always."""
    return is_hybrid(op, weight) and dtype_of(op.operation.inputs[1]) == ir.DataType.INT8


def seen(op: Writer, x: Tensor, weight: Tensor | None, asymmetric: Any, axes: Sequence[int] = (-1,)) -> Tensor:
    """Numbers as they meet a weight: rounded where that is integers and they are not."""
    return rounded(op, x, axes, bool(asymmetric)) if is_hybrid(op, weight) else x


def product(op: Writer, x: Tensor, weight: Tensor) -> Tensor:
    """With weights that have a row a result."""
    return op.MatMul(x, turned(op, weight, [1, 0]))


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
