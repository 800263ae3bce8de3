"""Shapes, slices, gathering and scattering, reductions."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import activated, fused, like
from onward.frontends.tflite.read import DTYPES, dtype_of
from onward.frontends.tflite.registry import rule
from onward.graph.build import Tensor

SAME = {
    "BATCH_TO_SPACE_ND": "BatchToSpaceND",
    "BROADCAST_ARGS": "BroadcastArgs",
    "BROADCAST_TO": "BroadcastTo",
    "EXPAND_DIMS": "ExpandDims",
    "FILL": "Fill",
    "DENSIFY": "Identity",
    "GATHER_ND": "GatherNd",
    "MATRIX_DIAG": "MatrixDiag",
    "MATRIX_SET_DIAG": "MatrixSetDiag",
    "NON_MAX_SUPPRESSION_V4": "NonMaxSuppressionV4",
    "PAD": "Pad",
    "PADV2": "PadV2",
    "RANGE": "Range",
    "RANK": "Rank",
    "REVERSE_V2": "ReverseV2",
    "SCATTER_ND": "ScatterNd",
    "SEGMENT_SUM": "SegmentSum",
    "SLICE": "Slice",
    "SPACE_TO_BATCH_ND": "SpaceToBatchND",
    "SPARSE_TO_DENSE": "SparseToDense",
    "TILE": "Tile",
    "TRANSPOSE": "Transpose",
    "UNSORTED_SEGMENT_MAX": "UnsortedSegmentMax",
    "UNSORTED_SEGMENT_MIN": "UnsortedSegmentMin",
    "UNSORTED_SEGMENT_PROD": "UnsortedSegmentProd",
    "UNSORTED_SEGMENT_SUM": "UnsortedSegmentSum",
    "WHERE": "Where",
}


def _same(op_type: str) -> Any:
    def function(op: Writer, *inputs: Tensor) -> Any:
        options = {"pad_to_max_output_size": True} if op_type == "NonMaxSuppressionV4" else {}
        return like(op, op_type, *inputs, **options)

    return function


for _lite, _tensorflow in SAME.items():
    rule(_lite)(_same(_tensorflow))

REDUCTIONS = {
    "MEAN": "Mean",
    "SUM": "Sum",
    "REDUCE_ALL": "All",
    "REDUCE_ANY": "Any",
    "REDUCE_MAX": "Max",
    "REDUCE_MIN": "Min",
    "REDUCE_PROD": "Prod",
}


@rule(*REDUCTIONS)
def reduction(op: Writer, x: Tensor, axes: Tensor) -> Tensor:
    kind = REDUCTIONS[op.operation.type]
    return like(op, kind, x, axes, keep_dims=op.operation.options.keepDims)  # type: ignore[no-any-return]


@rule("ARG_MAX", "ARG_MIN")
def arg(op: Writer, x: Tensor, axis: Tensor) -> Tensor:
    kind = {"ARG_MAX": "ArgMax", "ARG_MIN": "ArgMin"}[op.operation.type]
    return like(op, kind, x, axis, output_type=dtype_of(op.operation.outputs[0]))  # type: ignore[no-any-return]


@rule("CUMSUM")
def cumsum(op: Writer, x: Tensor, axis: Tensor) -> Tensor:
    options = op.operation.options
    return like(  # type: ignore[no-any-return]
        op, "Cumsum", x, axis, exclusive=options.exclusive, reverse=options.reverse
    )


@rule("TOPK_V2")
def top_k(op: Writer, x: Tensor, k: Tensor) -> list[Tensor]:
    return like(op, "TopKV2", x, k, sorted=True)  # type: ignore[no-any-return]


@rule("SHAPE")
def shape(op: Writer, x: Tensor) -> Tensor:
    return like(op, "Shape", x, out_type=dtype_of(op.operation.outputs[0]))  # type: ignore[no-any-return]


@rule("RESHAPE")
def reshape(op: Writer, x: Tensor, to: Tensor | None = None) -> Tensor:
    if to is None:
        to = op.ints([int(n) for n in op.operation.options.newShape])
    known, signature = op.known(to), op.operation.outputs[0].shapeSignature
    if known is not None and signature is not None and len(signature) == known.size and (signature < 0).sum() == 1:
        to = op.ints([int(n) for n in signature])
    return like(op, "Reshape", x, to)  # type: ignore[no-any-return]


@rule("SQUEEZE")
def squeeze(op: Writer, x: Tensor) -> Tensor:
    dims = op.operation.options.squeezeDims
    return like(op, "Squeeze", x, squeeze_dims=[] if dims is None else [int(d) for d in dims])  # type: ignore[no-any-return]


@rule("CONCATENATION")
def concatenation(op: Writer, *tensors: Tensor) -> Tensor:
    return activated(op, op.Concat(*tensors, axis=op.operation.options.axis), fused(op))


@rule("PACK")
def pack(op: Writer, *tensors: Tensor) -> Tensor:
    return like(op, "Pack", *tensors, axis=op.operation.options.axis)  # type: ignore[no-any-return]


@rule("UNPACK")
def unpack(op: Writer, x: Tensor) -> list[Tensor]:
    options = op.operation.options
    return like(op, "Unpack", x, num=options.num, axis=options.axis)  # type: ignore[no-any-return]


@rule("SPLIT")
def split(op: Writer, axis: Tensor, x: Tensor) -> list[Tensor]:
    return like(op, "Split", axis, x, num_split=op.operation.options.numSplits)  # type: ignore[no-any-return]


@rule("SPLIT_V")
def split_v(op: Writer, x: Tensor, sizes: Tensor, axis: Tensor) -> list[Tensor]:
    return like(op, "SplitV", x, sizes, axis)  # type: ignore[no-any-return]


@rule("MIRROR_PAD")
def mirror_pad(op: Writer, x: Tensor, pads: Tensor) -> Tensor:
    mode = ("REFLECT", "SYMMETRIC")[op.operation.options.mode]
    return like(op, "MirrorPad", x, pads, mode=mode)  # type: ignore[no-any-return]


@rule("STRIDED_SLICE")
def strided_slice(op: Writer, x: Tensor, begin: Tensor, end: Tensor, strides: Tensor) -> Tensor:
    options = op.operation.options
    if getattr(options, "offset", False):
        raise UnsupportedError("ends that count from the beginning of the slice are not supported")
    return like(  # type: ignore[no-any-return]
        op,
        "StridedSlice",
        x,
        begin,
        end,
        strides,
        begin_mask=options.beginMask,
        end_mask=options.endMask,
        ellipsis_mask=options.ellipsisMask,
        new_axis_mask=options.newAxisMask,
        shrink_axis_mask=options.shrinkAxisMask,
    )


@rule("GATHER")
def gather(op: Writer, x: Tensor, indices: Tensor) -> Tensor:
    options = op.operation.options
    axis = op.index(options.axis)
    return like(op, "GatherV2", x, indices, axis, batch_dims=getattr(options, "batchDims", 0))  # type: ignore[no-any-return]


@rule("ONE_HOT")
def one_hot(op: Writer, indices: Tensor, depth: Tensor, on: Tensor, off: Tensor) -> Tensor:
    return like(op, "OneHot", indices, depth, on, off, axis=op.operation.options.axis)  # type: ignore[no-any-return]


@rule("REVERSE_SEQUENCE")
def reverse_sequence(op: Writer, x: Tensor, lengths: Tensor) -> Tensor:
    options = op.operation.options
    return like(  # type: ignore[no-any-return]
        op, "ReverseSequence", x, lengths, seq_dim=options.seqDim, batch_dim=options.batchDim
    )


@rule("UNIQUE")
def unique(op: Writer, x: Tensor) -> list[Tensor]:
    return like(op, "Unique", x, out_idx=DTYPES[op.operation.options.idxOutType])  # type: ignore[no-any-return]


@rule("BUCKETIZE")
def bucketize(op: Writer, x: Tensor) -> Tensor:
    return like(op, "Bucketize", x, boundaries=list(op.operation.options.boundaries))  # type: ignore[no-any-return]


@rule("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(op: Writer, x: Tensor, update: Tensor, start: Tensor) -> Tensor:
    """Each place of the update, moved by the start, which is kept within the tensor."""
    if update.sizes is None or x.sizes is None:
        raise UnsupportedError("the size of an update is not known")
    import numpy as np

    grid = np.stack(np.meshgrid(*(np.arange(n) for n in update.sizes), indexing="ij"), -1)
    most = op.ints([a - b for a, b in zip(x.sizes, update.sizes, strict=True)])
    begin = op.Max(op.Min(op.int64(start), most), op.index(0))
    return op.ScatterND(x, op.constant(grid.astype(np.int64)) + begin, update)


@rule("RFFT2D")
def rfft2d(op: Writer, x: Tensor, lengths: Tensor) -> Any:
    return like(op, "RFFT2D", x, lengths)


@rule("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
def random(op: Writer, shape: Tensor) -> Tensor:
    kind = {"RANDOM_UNIFORM": "RandomUniform", "RANDOM_STANDARD_NORMAL": "RandomStandardNormal"}[op.operation.type]
    return like(op, kind, shape, dtype=ir.DataType.FLOAT)  # type: ignore[no-any-return]


@rule("MULTINOMIAL")
def multinomial(op: Writer, logits: Tensor, count: Tensor) -> Tensor:
    dtype = dtype_of(op.operation.outputs[0])
    (size,) = op.numbers(count, "how many numbers are drawn")
    return op.Multinomial(logits, sample_size=size, dtype=int(dtype))
