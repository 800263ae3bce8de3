"""Convolutions, pools and products of matrices."""

from __future__ import annotations

from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.rules.conv import convolved, took_bias, transposed
from onward.frontends.tensorflow.rules.pool import pooled
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.hybrid import is_accelerated, product, seen
from onward.frontends.tflite.like_tensorflow import activated, fused, like, padding
from onward.frontends.tflite.registry import rule
from onward.frontends.tflite.translate import turned
from onward.graph.build import Tensor


def _sizes(filters: Tensor) -> list[int]:
    if filters.sizes is None:
        raise UnsupportedError("the size of the filters is not known")
    return filters.sizes


@rule("CONV_2D")
def conv_2d(op: Writer, x: Tensor, filters: Tensor, bias: Tensor | None = None) -> Tensor:
    options = op.operation.options
    _out, height, width, taken = _sizes(filters)
    channels = x.dims[3] if x.dims else None
    group = channels // taken if isinstance(channels, int) else 1
    strides = [1, options.strideH, options.strideW, 1]
    rates = [1, options.dilationHFactor, options.dilationWFactor, 1]
    weight = turned(op, filters, [0, 3, 1, 2])
    fast = is_accelerated(op, filters)
    by_place = fast and [height, width, options.strideH, options.strideW] == [1] * 4  # it is a matrix there
    x = seen(op, x, filters, fast, [3] if by_place else [1, 2, 3])
    y = convolved(op, x, weight, [height, width], group, strides, padding(op), (), "NHWC", rates)
    return _biased(op, y, bias)


@rule("DEPTHWISE_CONV_2D")
def depthwise(op: Writer, x: Tensor, filters: Tensor, bias: Tensor | None = None) -> Tensor:
    options = op.operation.options
    _, height, width, _out = _sizes(filters)
    channels = x.dims[3] if x.dims else None
    if not isinstance(channels, int):
        raise UnsupportedError("the number of channels is not known")
    strides = [1, options.strideH, options.strideW, 1]
    rates = [1, options.dilationHFactor, options.dilationWFactor, 1]
    weight = turned(op, filters, [3, 0, 1, 2])
    x = seen(op, x, filters, True, [1, 2, 3])
    y = convolved(op, x, weight, [height, width], channels, strides, padding(op), (), "NHWC", rates)
    return _biased(op, y, bias)


def _biased(op: Writer, y: Tensor, bias: Tensor | None) -> Tensor:
    """With the bias, in the convolution where it can be, and with the activation that is built in."""
    return activated(op, y if bias is None or took_bias(y, bias) else y + bias, fused(op))


@rule("TRANSPOSE_CONV")
def transpose_conv(op: Writer, sizes: Tensor, filters: Tensor, x: Tensor, bias: Tensor | None = None) -> Tensor:
    options = op.operation.options
    _, height, width, _ = _sizes(filters)
    weight = turned(op, filters, [3, 0, 1, 2])
    x = seen(op, x, filters, True, [1, 2, 3])
    strides = [1, options.strideH, options.strideW, 1]
    y = transposed(op, sizes, weight, x, [height, width], 1, strides, padding(op), (), "NHWC", ())
    return _biased(op, y, bias)


@rule("CONV_3D")
def conv_3d(op: Writer, x: Tensor, filters: Tensor, bias: Tensor | None = None) -> Tensor:
    options = op.operation.options
    strides = [1, options.strideD, options.strideH, options.strideW, 1]
    rates = [1, options.dilationDFactor, options.dilationHFactor, options.dilationWFactor, 1]
    y = like(op, "Conv3D", x, filters, strides=strides, dilations=rates, padding=padding(op), data_format="NDHWC")
    return _biased(op, y, bias)


@rule("CONV_3D_TRANSPOSE")
def conv_3d_transpose(op: Writer, sizes: Tensor, filters: Tensor, x: Tensor, bias: Tensor | None = None) -> Tensor:
    options = op.operation.options
    strides = [1, options.strideD, options.strideH, options.strideW, 1]
    rates = [1, options.dilationDFactor, options.dilationHFactor, options.dilationWFactor, 1]
    how: dict[str, Any] = {"strides": strides, "dilations": rates, "padding": padding(op), "data_format": "NDHWC"}
    y = like(op, "Conv3DBackpropInputV2", sizes, filters, x, **how)
    return _biased(op, y, bias)


@rule("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(op: Writer, x: Tensor) -> Tensor:
    options = op.operation.options
    op_type = "MaxPool" if op.operation.type == "MAX_POOL_2D" else "AveragePool"
    window = [1, options.filterHeight, options.filterWidth, 1]
    strides = [1, options.strideH, options.strideW, 1]
    return activated(op, pooled(op, op_type, x, window, strides, padding(op), (), "NHWC")[0], fused(op))


@rule("L2_POOL_2D")
def l2_pool(op: Writer, x: Tensor) -> Tensor:
    options = op.operation.options
    window = [1, options.filterHeight, options.filterWidth, 1]
    strides = [1, options.strideH, options.strideW, 1]
    mean = pooled(op, "AveragePool", x * x, window, strides, padding(op), (), "NHWC")[0]
    return activated(op, op.Sqrt(mean), fused(op))


@rule("FULLY_CONNECTED")
def fully_connected(op: Writer, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    options = op.operation.options
    if options.weightsFormat:
        raise UnsupportedError("weights in a format of their own are not supported")
    taken = _sizes(weight)[1]
    if not options.keepNumDims and (x.rank != 2 or (x.dims or [None])[-1] != taken):
        x = op.Reshape(x, op.ints([-1, taken]))
    y = product(op, seen(op, x, weight, options.asymmetricQuantizeInputs or is_accelerated(op, weight)), weight)
    return _biased(op, y, bias)


@rule("BATCH_MATMUL")
def batch_matmul(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    options = op.operation.options
    a = seen(op, a, b, options.asymmetricQuantizeInputs or is_accelerated(op, b), [-2 if options.adjX else -1])
    return like(op, "BatchMatMulV2", a, b, adj_x=options.adjX, adj_y=options.adjY)  # type: ignore[no-any-return]


@rule("LOCAL_RESPONSE_NORMALIZATION")
def lrn(op: Writer, x: Tensor) -> Tensor:
    options = op.operation.options
    return like(  # type: ignore[no-any-return]
        op, "LRN", x, depth_radius=options.radius, bias=options.bias, alpha=options.alpha, beta=options.beta
    )


@rule("SPACE_TO_DEPTH")
def space_to_depth(op: Writer, x: Tensor) -> Tensor:
    return like(op, "SpaceToDepth", x, block_size=op.operation.options.blockSize)  # type: ignore[no-any-return]


@rule("DEPTH_TO_SPACE")
def depth_to_space(op: Writer, x: Tensor) -> Tensor:
    return like(op, "DepthToSpace", x, block_size=op.operation.options.blockSize)  # type: ignore[no-any-return]


@rule("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(op: Writer, x: Tensor, size: Tensor) -> Tensor:
    options = op.operation.options
    kind = {"RESIZE_BILINEAR": "ResizeBilinear", "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighbor"}
    return like(  # type: ignore[no-any-return]
        op,
        kind[op.operation.type],
        x,
        size,
        align_corners=options.alignCorners,
        half_pixel_centers=options.halfPixelCenters,
    )
