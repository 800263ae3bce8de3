"""Convolutions with XLA's meaning: axes in any order, both sides dilated, any padding, groups of both kinds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.lax.sizes import Size, minus, part, plus, product, reshaped, size, sizes, vector
from onward.frontends.writer import Writer
from onward.graph.build import Tensor

KERNELS = {ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
"""Dtypes that ONNX Runtime convolves, in float32."""
MOST_AXES = 3
MOST_TAPS = 512
"""Products that a convolution may be written as, where ONNX Runtime has no kernel."""

Pads = Sequence[tuple[Size, Size]]


@dataclass(frozen=True)
class Window:
    """How the taps move: a number for each spatial axis."""

    strides: Sequence[int]
    pads: Pads
    """Added before and after, taken away where negative; of the input once it is spread."""
    spread: Sequence[int]
    """The distance of the numbers of the input: zeros are put between."""
    dilations: Sequence[int]
    """The distance of the taps."""


def convolution(
    op: Writer,
    x: Tensor,
    w: Tensor,
    window: Window,
    axes: tuple[Sequence[int], Sequence[int], Sequence[int]],
    groups: int = 1,
    batch_groups: int = 1,
) -> Tensor:
    """`axes`: where batch, features and space are in the input and result, and features out, in and space in `w`."""
    of_x, of_w, of_y = (list(order) for order in axes)
    x = op.transpose(x, of_x)
    w = op.arranged(w, of_w)
    if batch_groups > 1:
        x, groups = _batches_as_features(op, x, batch_groups), batch_groups
    y = _convolved(op, x, w, window, groups)
    return op.transpose(y, [of_y.index(axis) for axis in range(len(of_y))])


def _batches_as_features(op: Writer, x: Tensor, count: int) -> Tensor:
    """Each group of the batch, side by side."""
    batch, features, *space = sizes(op, x)
    each: Size = batch // count if isinstance(batch, int) else batch / count
    split = reshaped(op, x, [count, each, features, *space])
    order = [1, 0, 2, *range(3, 3 + len(space))]
    return reshaped(op, op.transpose(split, order), [each, product(op, [count, features]), *space])


def _convolved(op: Writer, x: Tensor, w: Tensor, window: Window, groups: int) -> Tensor:
    """Batch, features and space in this order, on both sides."""
    is_spread = any(step != 1 for step in window.spread)
    if is_spread and (any(step != 1 for step in window.strides) or not _has_kernel(x, w)):
        x, is_spread = _spread(op, x, window.spread), False
    if is_spread:
        return _transposed(op, x, w, window, groups)
    x, pads = _padded(op, x, window.pads, _has_kernel(x, w))
    if not _has_kernel(x, w):
        return _by_taps(op, x, w, window, groups)
    return op.Conv(
        x,
        w,
        strides=list(window.strides),
        dilations=list(window.dilations),
        group=groups,
        pads=[a for a, _ in pads] + [b for _, b in pads],
        kernel_shape=(w.sizes or [])[2:] or None,
    )


def _has_kernel(x: Tensor, w: Tensor) -> bool:
    return x.dtype in KERNELS and 3 <= (w.rank or 0) <= 2 + MOST_AXES


def _padded(op: Writer, x: Tensor, pads: Pads, inside: bool) -> tuple[Tensor, list[tuple[int, int]]]:
    """What is taken away is gone, and what cannot be left to the convolution is added."""
    rest: list[tuple[int, int]] = []
    added: list[tuple[int, Size, Size]] = []
    for i, (before, after) in enumerate(pads):
        axis = 2 + i
        if not isinstance(before, int) or not isinstance(after, int):
            added.append((axis, before, after))
            rest.append((0, 0))
            continue
        if before < 0 or after < 0:
            x = part(op, x, axis, max(-before, 0), minus(op, size(op, x, axis), max(-after, 0)))
        rest.append((max(before, 0), max(after, 0)))
    if not inside:
        added += [(2 + i, *pair) for i, pair in enumerate(rest) if pair != (0, 0)]
        rest = [(0, 0)] * len(rest)
    if added:
        numbers = vector(op, [a for _, a, _ in added] + [b for _, _, b in added])
        x = op.Pad(x, numbers, op.like(0, x), op.ints([axis for axis, _, _ in added]))
    return x, rest


def _spread(op: Writer, x: Tensor, steps: Sequence[int]) -> Tensor:
    """With zeros between the numbers: each becomes the first of a row, and the last row loses its zeros."""
    for i, step in enumerate(steps):
        if step == 1:
            continue
        axis, lengths = 2 + i, sizes(op, x)
        alone = op.unsqueeze(x, [axis + 1])
        wide = op.Pad(alone, op.ints([0, step - 1]), op.like(0, x), op.ints([axis + 1]))
        whole = product(op, [lengths[axis], step])
        flat = reshaped(op, wide, [*lengths[:axis], whole, *lengths[axis + 1 :]])
        x = part(op, flat, axis, 0, minus(op, whole, step - 1))
    return x


def _transposed(op: Writer, x: Tensor, w: Tensor, window: Window, groups: int) -> Tensor:
    """A spread input: a transposed convolution with the taps the other way round, cut to size."""
    taps = _taps(w)
    widths = [(k - 1) * d + 1 for k, d in zip(taps, window.dilations, strict=True)]
    cut: list[tuple[int, int]] = []
    missing: list[tuple[int, int]] = []
    for width, (before, after) in zip(widths, window.pads, strict=True):
        if not isinstance(before, int) or not isinstance(after, int):
            raise UnsupportedError("a transposed convolution whose padding is computed when the model runs")
        ends = width - 1 - before, width - 1 - after
        cut.append((max(ends[0], 0), max(ends[1], 0)))
        missing.append((max(-ends[0], 0), max(-ends[1], 0)))
    y = op.ConvTranspose(
        x,
        _turned(op, w, groups),
        strides=list(window.spread),
        dilations=list(window.dilations),
        group=groups,
        pads=[a for a, _ in cut] + [b for _, b in cut],
        kernel_shape=taps,
    )
    return _padded(op, y, missing, inside=False)[0]


def _turned(op: Writer, w: Tensor, groups: int) -> Tensor:
    """Weights as a transposed convolution has them: features in first, and the taps the other way round."""
    out, each, *taps = w.sizes or []
    space = list(range(2, 2 + len(taps)))
    known = op.known(w)
    if known is not None:
        turned = np.flip(known.reshape(groups, out // groups, each, *taps), tuple(axis + 1 for axis in space))
        return op.stored(w, turned.swapaxes(1, 2).reshape(groups * each, out // groups, *taps))
    w = op.turned_round(w, space)
    if groups == 1:
        return op.transpose(w, [1, 0, *space])
    split = op.Reshape(w, op.ints([groups, out // groups, each, *taps]))
    order = [0, 2, 1, *(axis + 1 for axis in space)]
    return op.Reshape(op.transpose(split, order), op.ints([groups * each, out // groups, *taps]))


def _taps(w: Tensor) -> list[int]:
    if w.sizes is None:
        raise UnsupportedError("the filters of a convolution are of a size that is known only when the model runs")
    return w.sizes[2:]


def _by_taps(op: Writer, x: Tensor, w: Tensor, window: Window, groups: int) -> Tensor:
    """A sum of products, one for each tap: for dtypes and numbers of axes that ONNX Runtime has no kernel for."""
    taps = _taps(w)
    count = len(list(itertools.product(*map(range, taps))))
    if count > MOST_TAPS:
        raise UnsupportedError(f"ONNX Runtime has no convolution of {x.dtype.name.lower()}; compute it in float32")
    batch, _, *space = sizes(op, x)
    out = (w.sizes or [])[0]
    lengths: list[Size] = []
    for length, k, d, step in zip(space, taps, window.dilations, window.strides, strict=True):
        last = minus(op, length, (k - 1) * d + 1)
        lengths.append(plus(op, last // step if isinstance(last, int) else last / step, 1))
    each = (w.sizes or [])[1]
    total: Tensor | None = None
    for place in itertools.product(*map(range, taps)):
        piece = x
        for i, at in enumerate(place):
            begin = at * window.dilations[i]
            end = plus(op, _times(op, minus(op, lengths[i], 1), window.strides[i]), begin + 1)
            piece = part(op, piece, 2 + i, begin, end, window.strides[i])
        rows = reshaped(op, piece, [batch, groups, each, product(op, lengths)])
        tap = w
        for i in reversed(range(len(place))):
            tap = op.Gather(tap, op.index(place[i]), axis=2 + i)
        matrix = op.MatMul(op.Reshape(tap, op.ints([groups, out // groups, each])), rows)
        total = matrix if total is None else total + matrix
    if total is None:
        shape = vector(op, [batch, out, *lengths])
        return op.Expand(op.like(0, x), shape)
    return reshaped(op, total, [batch, out, *lengths])


def _times(op: Writer, number: Size, factor: int) -> Size:
    return number * factor
