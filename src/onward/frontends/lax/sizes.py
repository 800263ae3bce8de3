"""Sizes that are known when a graph is written, or only when it runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.frontends.writer import Writer
from onward.graph.build import Tensor

Size = int | Tensor
"""A number, or a scalar of int64."""


def size(op: Writer, x: Tensor, axis: int) -> Size:
    dims = x.dims
    known = None if dims is None else dims[axis]
    rank = op.rank(x, "a tensor")
    return known if isinstance(known, int) else op.Gather(op.Shape(x), op.index(axis % rank))


def sizes(op: Writer, x: Tensor) -> list[Size]:
    return [size(op, x, axis) for axis in range(op.rank(x, "a tensor"))]


def vector(op: Writer, numbers: Sequence[Size]) -> Tensor:
    """As one tensor of int64, with as few parts as there are runs of known numbers."""
    parts: list[Tensor] = []
    run: list[int] = []
    for number in numbers:
        if isinstance(number, int):
            run.append(number)
            continue
        if run:
            parts.append(op.ints(run))
            run = []
        parts.append(op.unsqueeze(number, [0]))
    if run or not parts:
        parts.append(op.ints(run))
    return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)


def scalar(op: Writer, number: Size, dtype: ir.DataType = ir.DataType.INT64) -> Tensor:
    if isinstance(number, Tensor):
        return number.cast(dtype)
    return op.constant(np.asarray(number, dtype.numpy()), dtype)


def product(op: Writer, numbers: Sequence[Size]) -> Size:
    total: Size = 1
    for number in numbers:
        if isinstance(total, int):
            total = total * number if isinstance(number, int) else (number if total == 1 else number * total)
        elif not isinstance(number, int) or number != 1:
            total = total * number
    return total


def minus(op: Writer, a: Size, b: Size) -> Size:
    return a - b if isinstance(a, int) and isinstance(b, int) else scalar(op, a) - scalar(op, b)


def plus(op: Writer, a: Size, b: Size) -> Size:
    return a + b if isinstance(a, int) and isinstance(b, int) else scalar(op, a) + scalar(op, b)


def is_at_least(a: Size, b: Size) -> bool:
    """Whether it is certain."""
    return isinstance(a, int) and isinstance(b, int) and a >= b


def reshaped(op: Writer, x: Tensor, numbers: Sequence[Size]) -> Tensor:
    """In a shape of these sizes; nothing is written where it has that shape already."""
    if x.sizes is not None and x.sizes == list(numbers):
        return x
    unknown = [i for i, number in enumerate(numbers) if not isinstance(number, int)]
    if len(unknown) == 1 and all(numbers[i] != 0 for i in range(len(numbers)) if i not in unknown):
        return op.Reshape(x, op.ints([number if isinstance(number, int) else -1 for number in numbers]))
    return op.Reshape(x, vector(op, numbers), allowzero=1)


def part(op: Writer, x: Tensor, axis: int, begin: Size, end: Size, step: int = 1) -> Tensor:
    """From one place up to another along an axis; nothing is written where that is all."""
    if begin == 0 and step == 1 and isinstance(end, int) and x.dims is not None and x.dims[axis] == end:
        return x
    steps = None if step == 1 else op.ints([step])
    return op.Slice(x, vector(op, [begin]), vector(op, [end]), op.ints([axis]), steps)
