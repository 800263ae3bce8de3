"""Lists of tensors, which TensorFlow's loops read from and write to."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Collected, NotCollected, Reserved, TensorList
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor

List = TensorList | Reserved | Collected


def stacked(op: Writer, items: List) -> Tensor:
    """The list as one tensor; nothing was put into a reserved one, and TensorFlow reads zeros there."""
    if isinstance(items, TensorList):
        return items.stacked
    if isinstance(items, Collected):
        raise NotCollected
    shape = op.known(items.shape)
    if shape is None or shape.ndim == 0 or (shape < 0).any():
        raise UnsupportedError("a list of tensors whose shape is not known before the loop is not supported")
    size = op.Concat(op.flat(op.int64(items.count)), op.ints(shape.tolist()), axis=0)
    return op.Expand(op.constant(np.zeros((), items.dtype.numpy())), size)


def padded(op: Writer, items: Tensor, count: Tensor) -> Tensor:
    """With zeros behind, where fewer were put in than there is room for."""
    known, length = op.known(count), items.dims[0] if items.dims else None
    if known is not None and (int(known.reshape(())) == 0 or int(known.reshape(())) == length):
        return items
    room = op.size_of(count)
    dims = None if room is None else op.tensor(room[0]).dims
    if room is not None and dims is not None and isinstance(length, str) and dims[room[1]] == length:
        return items
    size = op.Shape(items)
    missing = op.Max(op.flat(op.int64(count)) - op.Slice(size, op.ints([0]), op.ints([1])), op.index(0))
    inner = op.Slice(size, op.ints([1]), op.ints([FAR]))
    return op.Concat(items, op.Expand(op.like(0, items), op.Concat(missing, inner, axis=0)), axis=0)


@rule("TensorListReserve")
def reserve(op: Writer, shape: Tensor, count: Tensor, *, element_dtype: ir.DataType) -> Reserved:
    return Reserved(count, element_dtype, shape)


@rule("EmptyTensorList")
def empty(op: Writer, shape: Tensor, most: Tensor, *, element_dtype: ir.DataType) -> Reserved:
    return Reserved(op.constant(np.zeros((), np.int32)), element_dtype, shape)


@rule("TensorListFromTensor")
def from_tensor(op: Writer, x: Tensor, shape: Tensor) -> TensorList:
    return TensorList(x)


@rule("TensorListGetItem")
def get_item(op: Writer, items: List, index: Tensor, shape: Tensor) -> Tensor:
    return op.Gather(stacked(op, items), index, axis=0)


@rule("TensorListSetItem")
def set_item(op: Writer, items: List, index: Tensor, item: Tensor) -> List:
    if isinstance(items, Collected):
        if items.item is not None:
            raise NotCollected
        return Collected(item, index)
    place = op.Reshape(op.int64(index), op.ints([1, 1]))
    if isinstance(items, Reserved):
        size = op.Concat(op.flat(op.int64(items.count)), item.shape, axis=0)
        return TensorList(op.ScatterND(op.Expand(op.like(0, item), size), place, op.unsqueeze(item, [0])))
    return TensorList(op.ScatterND(stacked(op, items), place, op.unsqueeze(item, [0])))


@rule("TensorListPushBack")
def push_back(op: Writer, items: List, item: Tensor) -> List:
    if isinstance(items, Collected):
        if items.item is not None:
            raise NotCollected
        return Collected(item)
    if isinstance(items, Reserved):
        return TensorList(op.unsqueeze(item, [0]))
    return TensorList(op.Concat(items.stacked, op.unsqueeze(item, [0]), axis=0))


@rule("TensorListPopBack")
def pop_back(op: Writer, items: List, shape: Tensor) -> list[TensorList | Tensor]:
    whole = stacked(op, items)
    rest = op.Slice(whole, op.ints([0]), op.ints([-1]), op.ints([0]))
    return [TensorList(rest), op.Gather(whole, op.index(-1), axis=0)]


@rule("TensorListStack")
def stack(op: Writer, items: List, shape: Tensor) -> Tensor:
    return stacked(op, items)


@rule("TensorListLength")
def length(op: Writer, items: List) -> Tensor:
    if isinstance(items, Reserved):
        return items.count
    return op.Gather(op.Shape(stacked(op, items)), op.index(0)).cast(ir.DataType.INT32)


@rule("TensorListElementShape")
def element_shape(op: Writer, items: List, *, shape_type: ir.DataType) -> Tensor:
    if isinstance(items, Reserved):
        return items.shape.cast(shape_type)
    return op.Slice(op.Shape(stacked(op, items)), op.ints([1]), op.ints([FAR])).cast(shape_type)


@rule("TensorListGather")
def gather(op: Writer, items: List, indices: Tensor, shape: Tensor) -> Tensor:
    return op.Gather(stacked(op, items), indices, axis=0)


@rule("TensorListScatterV2")
def scatter(op: Writer, x: Tensor, indices: Tensor, shape: Tensor, count: Tensor) -> TensorList:
    known = op.known(count)
    size = op.flat(op.int64(count))
    if known is not None and int(known.reshape(())) < 0:
        size = op.reduced("ReduceMax", op.int64(indices), [0], keepdims=True) + op.index(1)
    inner = op.Slice(op.Shape(x), op.ints([1]), op.ints([FAR]))
    zeros = op.Expand(op.like(0, x), op.Concat(size, inner, axis=0))
    return TensorList(op.ScatterND(zeros, op.unsqueeze(op.int64(indices), [1]), x))


@rule("TensorListConcatV2")
def concat(op: Writer, items: List, shape: Tensor, leading: Tensor) -> list[Tensor]:
    return end_to_end(op, items)


def end_to_end(op: Writer, items: List) -> list[Tensor]:
    """Items of one length, which a stack is made of, as one tensor, and how long each is."""
    whole = stacked(op, items)
    rank = op.rank(whole, "the items of a list")
    size = op.Shape(whole)
    joined = op.Reshape(whole, op.Concat(op.ints([-1]), op.Slice(size, op.ints([2]), op.ints([FAR])), axis=0))
    if rank < 2:
        raise UnsupportedError("numbers cannot be joined end to end")
    lengths = op.Expand(op.Gather(size, op.index(1)), op.Slice(size, op.ints([0]), op.ints([1])))
    return [joined, lengths]
