"""Gradients of resizing.

A resized axis is a product with a matrix of weights. What the op makes of an identity matrix is that matrix, in every
mode and with the very coordinates of whatever runs it; the gradient is the product with its transpose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onward.graph.build import Tensor
from onward.spec.resize import Resize, nearest_index, spread
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.vjp.elementwise import constant_of

LARGEST = 1 << 26
"""The most elements of a matrix of weights."""


@vjp("Resize")
def resize(
    c: Context,
    g: Tensor,
    x: Tensor,
    roi: Tensor | None = None,
    scales: Tensor | None = None,
    sizes: Tensor | None = None,
    *,
    p: Resize,
) -> Gradients:
    if x.rank is None:
        raise c.refuse("the rank of the input is not known")
    along = [axis % x.rank for axis in p.axes] if p.axes is not None else list(range(x.rank))
    if sizes is not None and sizes.sizes != [0]:
        scales = None
    else:
        sizes = None
    apart = ("axes", "extrapolation_value", "keep_aspect_ratio_policy")
    method: dict[str, Any] = {name: a for name, a in c.node.attributes.items() if name not in apart}
    factors = None if scales is None else constant_of(scales)
    if not p.crops and factors is not None:
        full = spread(x.rank, along, [float(f) for f in factors.reshape(-1)], [1.0] * x.rank)
        if (found := _of_copies(g, x, full, p)) is not None:
            return found
    if sizes is not None and p.policy != "stretch":
        if p.axes is None:
            raise c.refuse("keep_aspect_ratio_policy is given without axes")
        method |= {"keep_aspect_ratio_policy": p.policy, "axes": along}
    for i, axis in enumerate(along):
        whole = not p.crops or roi is None or _is_whole(roi, i, len(along))
        if whole and _stays(c, x, axis, None if factors is None else float(factors.reshape(-1)[i])):
            continue
        _check_size(c, x, axis)
        if "axes" in method:
            assert sizes is not None
            weights = _bounded_weights(x, axis, sizes, method)
        else:
            weights = _weights(c, x, axis, i, len(along), roi if p.crops else None, scales, method)
        g = _along(g, weights, axis, x.rank)
    return g


def _is_whole(roi: Tensor, i: int, count: int) -> bool:
    """Whether nothing is surely cropped off an axis."""
    known = constant_of(roi)
    return known is not None and tuple(known.reshape(-1)[[i, i + count]]) == (0, 1)


def _stays(c: Context, x: Tensor, axis: int, factor: float | None) -> bool:
    """Whether an axis surely stays as it is."""
    if factor is not None:
        return factor == 1
    before, after = (None if t.dims is None else t.dims[axis] for t in (x, c.y))
    return len(c.node.inputs) > 3 and isinstance(before, int) and before == after


def _check_size(c: Context, x: Tensor, axis: int) -> None:
    before, after = (None if t.dims is None else t.dims[axis] for t in (x, c.y))
    if isinstance(before, int) and before * max(before, after if isinstance(after, int) else 0) > LARGEST:
        raise c.refuse(f"the weights of an axis of {before} elements take too much memory")


def _weights(
    c: Context,
    x: Tensor,
    axis: int,
    i: int,
    count: int,
    roi: Tensor | None,
    scales: Tensor | None,
    method: dict[str, Any],
) -> Tensor:
    """How much of each element (rows) is in each of the result (columns).

    An axis of one element is doubled beside it: ONNX Runtime copies an image whose axes all keep their lengths, even
    where it is scaled a little or cropped.
    """
    op = c.op
    length, one = _length(x, axis), op.ints([1])
    image = op.Unsqueeze(_identity(x, length), op.ints([0, 2]))
    part = None
    if roi is not None:
        zeros, ones = (op.constant(np.full(3, n)).cast(roi.dtype) for n in (0, 1))
        part = _joined(zeros, _element(roi, i), ones, _element(roi, i + count))
    if scales is not None:
        factors = _joined(op.constant(np.asarray([1, 1, 2], np.float32)), _element(scales, i))
        made = op.Resize(image, part, factors, **method)
    else:
        made = op.Resize(image, part, None, _joined(one, length, op.ints([2]), _length(c.y, axis)), **method)
    return op.Squeeze(op.Slice(made, op.ints([0]), op.ints([1]), op.ints([2])), op.ints([0, 2]))


def _length(x: Tensor, axis: int) -> Tensor:
    size = None if x.dims is None else x.dims[axis]
    return x.op.ints([size]) if isinstance(size, int) else x.op.Shape(x, start=axis, end=axis + 1)


def _element(x: Tensor, index: int) -> Tensor:
    """One element of a list, as a list."""
    known = constant_of(x)
    if known is not None:
        return x.op.constant(known.reshape(-1)[index : index + 1])
    return x.op.Slice(x, x.op.ints([index]), x.op.ints([index + 1]))


def _joined(*parts: Tensor) -> Tensor:
    """Lists as one, a constant where all are."""
    op = parts[0].op
    known = [constant_of(part) for part in parts]
    if all(k is not None for k in known):
        return op.constant(np.concatenate([k for k in known if k is not None]))
    return op.Concat(*parts, axis=0)


def _bounded_weights(x: Tensor, axis: int, sizes: Tensor, method: dict[str, Any]) -> Tensor:
    """As `_weights`, where the sizes of all axes decide how far one is resized: the others are there, and constant."""
    op, rank = x.op, x.rank or 0
    others = [i for i in range(2, rank) if i != axis]
    length = _length(x, axis)
    image = op.Unsqueeze(_identity(x, length), op.ints([0, *others]))
    shape = _joined(op.ints([1]), length, *(_length(x, i) for i in range(2, rank)))
    made = op.Resize(op.Expand(image, shape), None, None, sizes, **method)
    first = op.Slice(made, op.ints([0] * len(others)), op.ints([1] * len(others)), op.ints(others)) if others else made
    return op.Squeeze(first, op.ints([0, *others]))


def _identity(x: Tensor, length: Tensor) -> Tensor:
    op = x.op
    return op.EyeLike(op.ConstantOfShape(_joined(length, length)), dtype=int(x.dtype))


def _along(g: Tensor, weights: Tensor, axis: int, rank: int) -> Tensor:
    """The sums of the elements along an axis that each row of `weights` says."""
    op = g.op
    if axis == rank - 2:
        return weights @ g
    order = [i for i in range(rank) if i != axis] + [axis]
    found = op.transpose(g, order) @ op.Transpose(weights, perm=[1, 0])
    return op.transpose(found, [order.index(i) for i in range(rank)])


def _of_copies(g: Tensor, x: Tensor, factors: Sequence[float], p: Resize) -> Tensor | None:
    """Where each element is repeated a whole number of times: the sums of the copies."""
    rank = len(factors)
    whole = [int(f) for f in factors]
    if p.mode != "nearest" or not 3 <= rank <= 5 or whole[:2] != [1, 1] or whole != list(factors):
        return None
    for factor, size in zip(whole[2:], (x.dims or [None] * rank)[2:], strict=True):
        length = size if isinstance(size, int) else None
        target = None if length is None else length * factor
        try:
            index = nearest_index(length, target, factor, p.coordinates, p.rounding)
        except ValueError:
            return None
        if not np.array_equal(index, np.arange(len(index)) // factor):
            return None
    means = g.op.AveragePool(g, kernel_shape=whole[2:], strides=whole[2:])
    return means * math.prod(whole)
