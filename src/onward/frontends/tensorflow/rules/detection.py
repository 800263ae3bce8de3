"""Boxes around things in images: the best of those that overlap."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("NonMaxSuppressionV2")
def suppression_v2(op: Writer, boxes: Tensor, scores: Tensor, count: Tensor, overlap: Tensor) -> Tensor:
    return _selected(op, boxes, scores, count, overlap, None)


@rule("NonMaxSuppressionV3")
def suppression_v3(op: Writer, boxes: Tensor, scores: Tensor, count: Tensor, overlap: Tensor, least: Tensor) -> Tensor:
    return _selected(op, boxes, scores, count, overlap, least)


@rule("NonMaxSuppressionV4")
def suppression_v4(
    op: Writer,
    boxes: Tensor,
    scores: Tensor,
    count: Tensor,
    overlap: Tensor,
    least: Tensor,
    *,
    pad_to_max_output_size: bool = False,
) -> list[Tensor]:
    chosen = _selected(op, boxes, scores, count, overlap, least)
    found = op.Shape(chosen)
    if pad_to_max_output_size:
        missing = op.flat(op.int64(count)) - found
        chosen = op.Pad(chosen, op.Concat(op.ints([0]), missing, axis=0))
    return [chosen, op.squeeze(found, [0]).cast(ir.DataType.INT32)]


def _selected(
    op: Writer, boxes: Tensor, scores: Tensor, count: Tensor, overlap: Tensor, least: Tensor | None
) -> Tensor:
    found = op.NonMaxSuppression(
        op.unsqueeze(boxes, [0]),
        op.unsqueeze(scores, [0, 1]),
        op.flat(op.int64(count)),
        op.flat(overlap),
        None if least is None else op.flat(least),
    )
    return op.squeeze(op.Slice(found, op.ints([2]), op.ints([3]), op.ints([1])), [1]).cast(ir.DataType.INT32)


@rule("NonMaxSuppressionV5")
def suppression_v5(
    op: Writer,
    boxes: Tensor,
    scores: Tensor,
    count: Tensor,
    overlap: Tensor,
    least: Tensor,
    sigma: Tensor,
    *,
    pad_to_max_output_size: bool = False,
) -> list[Tensor]:
    if np.any(op.fixed(sigma, "how much overlapping boxes lose")):
        raise UnsupportedError("boxes that lose a part of their score to others are not supported")
    chosen, found = suppression_v4(
        op, boxes, scores, count, overlap, least, pad_to_max_output_size=pad_to_max_output_size
    )
    kept = op.Gather(scores, chosen)
    if pad_to_max_output_size:
        places = op.Range(op.index(0), op.squeeze(op.Shape(chosen), [0]), op.index(1))
        kept = op.where(places < op.int64(found), kept, op.like(0, kept))
    return [chosen, kept, found]


@rule("CombinedNonMaxSuppression")
def combined_suppression(
    op: Writer,
    boxes: Tensor,
    scores: Tensor,
    count: Tensor,
    total: Tensor,
    overlap: Tensor,
    least: Tensor,
    *,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> list[Tensor]:
    """Of each class by itself; then the best of all classes, with zeros up to the number asked for."""
    dims = [*(boxes.dims or [None] * 4)[1:3], (scores.dims or [None] * 3)[2]]
    if not all(isinstance(d, int) for d in dims):
        raise UnsupportedError("the number of boxes or of classes is not known")
    n, _, classes = (int(d) for d in dims if isinstance(d, int))
    per_class, most = (op.numbers(t, "the number of boxes")[0] for t in (count, total))
    most = min(most, per_class * classes) if pad_per_class else most
    batch = op.Slice(op.Shape(scores), op.ints([0]), op.ints([1]))

    def shape(*rest: int) -> Tensor:
        return op.Concat(batch, op.ints(rest), axis=0)

    by_class = op.Transpose(scores, perm=[0, 2, 1])
    own = op.Expand(op.Transpose(boxes, perm=[0, 2, 1, 3]), shape(classes, n, 4))
    found = op.NonMaxSuppression(
        op.Reshape(own, op.ints([-1, n, 4])),
        op.Reshape(by_class, op.ints([-1, 1, n])),
        op.ints([per_class]),
        op.flat(overlap),
        op.flat(least),
    )
    row, place = (op.Slice(found, op.ints([i]), op.ints([i + 1]), op.ints([1])) for i in (0, 2))
    numbers = op.squeeze(row * op.ints([n]) + place, [1])
    flat = op.flat(by_class)
    lowest = float(np.finfo(np.float32).min)
    kept = op.ScatterElements(op.filled(flat, lowest), numbers, op.Gather(flat, numbers), axis=0)
    taken = min(most, classes * n)
    best, which = op.many("TopK", 2, op.Reshape(kept, op.ints([-1, classes * n])), op.ints([taken]), axis=1)
    there = best > lowest
    nothing = op.like(0, best)
    chosen = op.GatherND(op.Reshape(own, op.ints([-1, classes * n, 4])), op.unsqueeze(which, [2]), batch_dims=1)
    if clip_boxes:
        chosen = op.Min(op.Max(chosen, op.like(0, chosen)), op.like(1, chosen))
    results = [
        op.where(op.unsqueeze(there, [2]), chosen, nothing),
        op.where(there, best, nothing),
        op.where(there, op.Div(which, op.ints([n])).cast(best.dtype), nothing),
    ]
    if most > taken:
        results = [
            op.Pad(result, op.ints([0] * (rank + 1) + [most - taken] + [0] * (rank - 2)))
            for result, rank in zip(results, (3, 2, 2), strict=True)
        ]
    counted = op.reduced("ReduceSum", there.cast(ir.DataType.INT32), [1], keepdims=False)
    return [*results, counted]
