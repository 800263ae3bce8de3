"""Boxes that are left when those that overlap better ones lose some of their score."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.registry import rule
from onward.graph.build import Tensor
from onward.graph.scan import scan

LEAST = -3.0e38
"""The score of a box that is out."""


@rule("NON_MAX_SUPPRESSION_V5")
def soft_suppression(
    op: Writer, boxes: Tensor, scores: Tensor, count: Tensor, overlap: Tensor, least: Tensor, sigma: Tensor
) -> list[Tensor]:
    """The best box again and again; zeros where none is left."""
    scalar = op.ints([])
    overlap, least, sigma = (op.Reshape(part, scalar) for part in (overlap, least, sigma))
    rounds = op.Range(op.index(0), op.Reshape(op.int64(count), scalar), op.index(1))
    bound = op.like(LEAST, scores)

    def chosen(states: Sequence[Tensor], _: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        (left,) = states
        place = op.ArgMax(left, axis=0, keepdims=1)
        score = op.Gather(left, place)
        there = score > bound
        shared = _shared(op, boxes, op.Gather(boxes, place, axis=0))
        soft = op.where(sigma > 0.0, -0.5 / op.where(sigma > 0.0, sigma, op.like(1, sigma)), op.like(0, sigma))
        after = left * op.Exp(soft * shared * shared)
        gone = op.Or(shared >= overlap, after <= least)
        itself = op.Equal(op.Range(op.index(0), op.Size(left), op.index(1)), place)
        next_left = op.where(op.Or(gone, op.Or(itself, left <= bound)), bound, after)
        found = op.where(there, place, op.ints([0])).cast(ir.DataType.INT32), op.where(there, score, op.like(0, score))
        return [op.where(there, next_left, left)], [op.squeeze(part, [0]) for part in found]

    start = op.where(scores > least, scores, bound)
    _, places, values = scan(op, chosen, [start], [rounds])
    total = op.sum((values > 0.0).cast(ir.DataType.INT32), [0], keepdims=False)
    return [places, values, total]


def _shared(op: Writer, boxes: Tensor, one: Tensor) -> Tensor:
    """What each box has in common with one of them, as a part of what both cover; corners may be any two opposite."""
    (low, high), (one_low, one_high) = _corners(op, boxes), _corners(op, one)
    zero = op.like(0, boxes)
    common = op.reduced("ReduceProd", op.Max(op.Min(high, one_high) - op.Max(low, one_low), zero), [1], keepdims=False)
    sizes, size = (op.reduced("ReduceProd", b - a, [1], keepdims=False) for a, b in ((low, high), (one_low, one_high)))
    union = sizes + size - common
    return op.where(op.And(sizes > 0.0, size > 0.0), common / op.where(union > 0.0, union, op.like(1, union)), zero)


def _corners(op: Writer, boxes: Tensor) -> tuple[Tensor, Tensor]:
    a, b = op.many("Split", 2, boxes, op.ints([2, 2]), axis=1)
    return op.Min(a, b), op.Max(a, b)
