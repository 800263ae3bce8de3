"""Gradients of parts of a tensor and of tensors with a border."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onward.graph.build import Tensor
from onward.spec.slice import Pad
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.vjp.elementwise import constant_of


@vjp("Slice")
def slice_(
    c: Context,
    g: Tensor,
    x: Tensor,
    starts: Tensor,
    ends: Tensor,
    axes: Tensor | None = None,
    steps: Tensor | None = None,
) -> Gradients:
    """Padding where the slice is a contiguous one that is known, else scattering by the sliced indices of each axis."""
    return _padded(c, g, x, starts, ends, axes, steps) or _scattered(c, g, x, starts, ends, axes, steps)


def _padded(
    c: Context, g: Tensor, x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None, steps: Tensor | None
) -> Tensor | None:
    given = [None if t is None else numbers_of(t) for t in (starts, ends, axes, steps)]
    if x.dims is None or given[0] is None or given[1] is None:
        return None
    if (axes is not None and given[2] is None) or (steps is not None and given[3] is None):
        return None
    firsts, lasts = ([int(i) for i in t] for t in given[:2] if t is not None)
    along = [int(i) for i in given[2]] if given[2] is not None else list(range(len(firsts)))
    strides = [int(i) for i in given[3]] if given[3] is not None else [1] * len(firsts)
    before, after = [0] * len(x.dims), [0] * len(x.dims)
    for first, last, axis, stride in zip(firsts, lasts, along, strides, strict=True):
        size = x.dims[axis]
        if stride != 1 or not isinstance(size, int):
            return None
        begin, end, _ = slice(first, last).indices(size)
        before[axis], after[axis] = begin, size - max(begin, end)
    return c.op.Pad(g, c.op.ints(before + after))


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}


def numbers_of(tensor: Tensor) -> Any:
    """The elements of a list of integers, if they are constant, sizes that are known, or computed from such."""
    found = constant_of(tensor)
    node = tensor.value.producer()
    if found is not None or node is None or tensor.rank != 1:
        return found
    if node.op_type == "Shape":
        assert node.inputs[0] is not None
        sizes = tensor.op.tensor(node.inputs[0]).dims
        start, end = (node.attributes.get(name) for name in ("start", "end"))
        part = (sizes or [None])[start.as_int() if start else 0 : end.as_int() if end else None]
        return np.asarray(part, np.int64) if all(isinstance(size, int) for size in part) else None
    if node.op_type not in ARITHMETIC:
        return None
    sides = [tensor.op.tensor(value) for value in node.inputs if value is not None]
    known = [constant_of(side) if side.rank == 0 else numbers_of(side) for side in sides]
    return None if any(side is None for side in known) else ARITHMETIC[node.op_type](*known)


def _scattered(
    c: Context, g: Tensor, x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor | None, steps: Tensor | None
) -> Tensor:
    """The flat positions of the elements, sliced as the elements were."""
    op = c.op
    size = op.Size(x)
    zero, one = op.index(0), op.index(1)
    positions = op.reshape_like(op.Range(zero, size, one), x)
    taken = op.Reshape(op.Slice(positions, starts, ends, axes, steps), op.ints([-1]))
    flat = op.Expand(op.like(0, g), op.Unsqueeze(size, op.ints([0])))
    return op.reshape_like(op.ScatterElements(flat, taken, op.Reshape(g, op.ints([-1])), axis=0), x)


@vjp("Pad")
def pad(
    c: Context,
    g: Tensor,
    x: Tensor,
    pads: Tensor,
    value: Tensor | None = None,
    axes: Tensor | None = None,
    *,
    p: Pad,
) -> Gradients:
    """The element that each place of the result was taken from: padding the positions shows which."""
    op = c.op
    size = op.Size(x)
    positions = op.reshape_like(op.Range(op.index(0), size, op.index(1)), x)
    if p.mode != "constant":
        sources = op.Reshape(op.Pad(positions, pads, None, axes, mode=p.mode), op.ints([-1]))
        flat = op.Expand(op.like(0, g), op.Unsqueeze(size, op.ints([0])))
        values = op.Reshape(g, op.ints([-1]))
        return op.reshape_like(op.ScatterElements(flat, sources, values, axis=0, reduction="add"), x)
    inside = op.Pad(g, op.Neg(pads), None, axes)
    if value is None:
        return inside
    kept = op.Pad(op.filled(x, 1), pads, None, axes)
    return inside, None, op.reshape_like(op.sum(g * (1 - kept), keepdims=False), value)
