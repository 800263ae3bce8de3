"""The tensor arrays of TensorFlow 1: a handle, which nothing is asked of, and what the array holds, called its flow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules import sequence
from onward.frontends.tensorflow.rules.sequence import List
from onward.frontends.tensorflow.values import Reserved, TensorList
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor


@rule("TensorArrayV3")
def array(
    op: Writer, size: Tensor, *, dtype: ir.DataType, element_shape: list[int | None] | None = None
) -> list[Reserved]:
    shape = -1 if element_shape is None else [-1 if d is None else d for d in element_shape]
    made = Reserved(size, dtype, op.constant(np.asarray(shape, np.int64)))
    return [made, made]


@rule("TensorArrayReadV3")
def read(op: Writer, handle: List, index: Tensor, flow: List) -> Tensor:
    return op.Gather(sequence.stacked(op, flow), index, axis=0)


@rule("TensorArrayWriteV3")
def write(op: Writer, handle: List, index: Tensor, item: Tensor, flow: List) -> List:
    return sequence.set_item(op, flow, index, item)


@rule("TensorArrayGatherV3")
def gather(op: Writer, handle: List, indices: Tensor, flow: List) -> Tensor:
    items = sequence.stacked(op, flow)
    if _counts_to(op, indices, sequence.length(op, TensorList(items))):
        return items
    return op.Gather(items, indices, axis=0)


@rule("TensorArrayScatterV3")
def scatter(op: Writer, handle: List, indices: Tensor, items: Tensor, flow: List) -> TensorList:
    """Into as much room as the array has, or as it needs where it grows."""
    if isinstance(flow, Reserved) and _counts_to(op, indices, flow.count):
        return TensorList(items)
    places = op.unsqueeze(op.int64(indices), [1])
    if not isinstance(flow, Reserved):
        return TensorList(op.ScatterND(sequence.stacked(op, flow), places, items))
    highest = op.reduced("ReduceMax", op.int64(indices), [0], keepdims=True) + op.index(1)
    count = op.Max(op.flat(op.int64(flow.count)), highest)
    inner = op.Slice(op.Shape(items), op.ints([1]), op.ints([FAR]))
    zeros = op.Expand(op.like(0, items), op.Concat(count, inner, axis=0))
    return TensorList(op.ScatterND(zeros, places, items))


@rule("TensorArrayConcatV3")
def concat(op: Writer, handle: List, flow: List) -> Sequence[Tensor]:
    return sequence.end_to_end(op, flow)


@rule("TensorArraySplitV3")
def split(op: Writer, handle: List, items: Tensor, lengths: Tensor, flow: List) -> TensorList:
    sizes = set(op.numbers(lengths, "how long the parts are"))
    if len(sizes) != 1:
        raise UnsupportedError("parts of several lengths in one tensor array are not supported")
    inner = op.Slice(op.Shape(items), op.ints([1]), op.ints([FAR]))
    return TensorList(op.Reshape(items, op.Concat(op.ints([-1, *sizes]), inner, axis=0)))


@rule("TensorArraySizeV3")
def size(op: Writer, handle: List, flow: List) -> Tensor:
    return sequence.length(op, flow)


@rule("TensorArrayCloseV3")
def close(op: Writer, handle: List) -> Sequence[Tensor]:
    return []


def _counts_to(op: Writer, indices: Tensor, count: Tensor) -> bool:
    """Whether indices are all from zero to a count: they stand for the whole array then."""
    known, size = op.known(indices), op.known(count)
    if known is not None:
        return size is not None and np.array_equal(known, np.arange(int(size.reshape(()))))
    made = _uncast(indices.value).producer()
    if made is None or made.op_type != "Range":
        return False
    start, limit, step = (op.tensor(value) for value in made.inputs if value is not None)
    begins, steps = op.known(start), op.known(step)
    return begins is not None and begins == 0 and steps is not None and steps == 1 and _is_same(limit, count)


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two values are computed alike."""
    waiting = [(one.value, other.value)]
    while waiting:
        a, b = map(_uncast, waiting.pop())
        if a is b:
            continue
        if a.const_value is not None and b.const_value is not None:
            if not np.array_equal(a.const_value.numpy(), b.const_value.numpy()):
                return False
            continue
        made, also = a.producer(), b.producer()
        if made is None or also is None or made.op_type != also.op_type or a.index() != b.index():
            return False
        if made.attributes != also.attributes or len(made.inputs) != len(also.inputs):
            return False
        for x, y in zip(made.inputs, also.inputs, strict=True):
            if x is None or y is None:
                if x is not y:
                    return False
            else:
                waiting.append((x, y))
    return True


def _uncast(value: ir.Value) -> ir.Value:
    """Without casts, which do not change a size."""
    while (made := value.producer()) is not None and made.op_type == "Cast" and made.inputs[0] is not None:
        value = made.inputs[0]
    return value
