"""What sequences of scores stand for, when symbols may repeat and be blank."""

from __future__ import annotations

import onnx_ir as ir

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor


@rule("CTCGreedyDecoder")
def greedy_decoder(
    op: Writer, scores: Tensor, lengths: Tensor, *, merge_repeated: bool = False, blank_index: int = -1
) -> list[Tensor]:
    """The best symbol of each step, without blanks, as a sparse tensor; and the scores of the way, negated."""
    best = op.ArgMax(scores, axis=2, keepdims=0)
    symbols = op.Transpose(best, perm=[1, 0])
    classes = op.Gather(op.Shape(scores), op.index(2))
    blank = classes + op.index(blank_index) if blank_index < 0 else op.index(blank_index)
    steps = op.Range(op.index(0), op.Gather(op.Shape(scores), op.index(0)), op.index(1))
    inside = op.unsqueeze(steps, [0]) < op.unsqueeze(op.int64(lengths), [1])
    kept = op.And(inside, op.Not(op.Equal(symbols, blank)))
    if merge_repeated:
        start = op.Expand(op.index(-1), op.Concat(op.Shape(lengths), op.ints([1]), axis=0))
        before = op.Concat(start, op.Slice(symbols, op.ints([0]), op.ints([-1]), op.ints([1])), axis=1)
        kept = op.And(kept, op.Not(op.Equal(symbols, before)))
    counted = op.CumSum(kept.cast(ir.DataType.INT64), op.index(1))
    at = op.Transpose(op.NonZero(kept), perm=[1, 0])
    row = op.Slice(at, op.ints([0]), op.ints([1]), op.ints([1]))
    column = op.unsqueeze(op.GatherND(counted, at) - op.index(1), [1])
    ends = op.Slice(counted, op.ints([-1]), op.ints([FAR]), op.ints([1]))
    longest = op.reduced("ReduceMax", op.Concat(op.flat(ends), op.ints([0]), axis=0), [0], keepdims=True)
    most = op.Transpose(op.reduced("ReduceMax", scores, [2], keepdims=False), perm=[1, 0])
    total = op.reduced("ReduceSum", op.where(inside, most, op.like(0, most)), [1], keepdims=True)
    return [
        op.Concat(row, column, axis=1),
        op.GatherND(symbols, at),
        op.Concat(op.Shape(lengths), longest, axis=0),
        -total,
    ]
