"""Ops that were experimental before opset 10 and removed then; ONNX Runtime still runs most of them."""

import numpy as np
import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.errors import InvalidModelError
from onward.graph.rewriter import (
    Rewriter,
    describe,
    input_of,
    needed,
    put,
    require,
    set_inputs,
    take,
)

TO_THE_END = 2**31 - 1


def _scaled(x: ir.Value, factor: float, op: Rewriter) -> ir.Value:
    return op("Mul", x, op.number(factor, x))


@upgrade("Affine", since=10)
def affine(node: ir.Node, op: Rewriter) -> None:
    x = needed(node, 0)
    product = _scaled(x, take(node, "alpha", 1.0), op)
    op.replace(op("Add", product, op.number(take(node, "beta", 0.0), x)))


@upgrade("Scale", since=10)
def scale(node: ir.Node, op: Rewriter) -> None:
    op.replace(_scaled(needed(node, 0), take(node, "scale", 1.0), op))


@upgrade("ScaledTanh", since=10)
def scaled_tanh(node: ir.Node, op: Rewriter) -> None:
    inner = _scaled(needed(node, 0), require(node, "beta"), op)
    op.replace(_scaled(op("Tanh", inner), require(node, "alpha"), op))


@upgrade("ParametricSoftplus", since=10)
def parametric_softplus(node: ir.Node, op: Rewriter) -> None:
    inner = _scaled(needed(node, 0), require(node, "beta"), op)
    op.replace(_scaled(op("Softplus", inner), require(node, "alpha"), op))


@upgrade("ImageScaler", since=10)
def image_scaler(node: ir.Node, op: Rewriter) -> None:
    """The input times `scale`, plus a bias for each channel of an (N, C, H, W) input."""
    x = needed(node, 0)
    product = _scaled(x, take(node, "scale", 1.0), op)
    bias = op.constant(np.array(require(node, "bias"), np.float32).reshape(-1, 1, 1))
    op.replace(op("Add", product, op("CastLike", bias, x)))


@upgrade("Crop", since=10)
def crop(node: ir.Node, op: Rewriter) -> None:
    """`border` is left, top, right, bottom of an (N, C, H, W) input; `scale`, if given, height and width."""
    border, size = require(node, "border"), take(node, "scale")
    if len(border) != 4:
        raise InvalidModelError(f"{describe(node)}: attribute 'border' has {len(border)} elements instead of 4")
    left, top, right, bottom = border
    ends = [top + size[0], left + size[1]] if size else [-bottom or TO_THE_END, -right or TO_THE_END]
    op.replace(op("Slice", needed(node, 0), op.ints([top, left]), op.ints(ends), op.ints([2, 3])))


@upgrade("DynamicSlice", since=10)
def dynamic_slice(node: ir.Node, op: Rewriter) -> None:
    x, starts, ends, axes = needed(node, 0), needed(node, 1), needed(node, 2), input_of(node, 3)
    if axes is None:
        axes = op("CastLike", op("Range", op.ints(0), op("Size", starts), op.ints(1)), starts)
    node.op_type = "Slice"
    set_inputs(node, [x, starts, ends, axes])


@upgrade("MeanVarianceNormalization", since=9)
def mean_variance(node: ir.Node, op: Rewriter) -> None:
    """Normalised each channel of an (N, C, H, W) input over the whole batch, or all of it at once."""
    axes = [0, 1, 2, 3] if take(node, "across_channels", 0) else [0, 2, 3]
    if take(node, "normalize_variance", 1):
        put(node, axes=axes)
    else:
        x = needed(node, 0)
        op.replace(op("Sub", x, op("ReduceMean", x, op.ints(axes))))


@upgrade("ConstantFill", since=10)
def constant_fill(node: ir.Node, op: Rewriter) -> None:
    dtype = ir.DataType(take(node, "dtype", ir.DataType.FLOAT))
    fill = np.array([take(node, "value", 0.0)]).astype(dtype.numpy())
    op.replace(op("ConstantOfShape", _filled_shape(node, op), value=ir.tensor(fill)))


@upgrade("GivenTensorFill", since=10)
def given_tensor_fill(node: ir.Node, op: Rewriter) -> None:
    op.replace(op.reshape(op.floats(require(node, "values")), _filled_shape(node, op)))


def _filled_shape(node: ir.Node, op: Rewriter) -> ir.Value:
    """The attribute `shape`; or the input's shape, or the input itself, followed by `extra_shape`."""
    like, extra = input_of(node, 0), take(node, "extra_shape", ())
    if like is None:
        return op.ints(require(node, "shape"))
    is_shape = take(node, "input_as_shape", 0)
    shape = op("Cast", like, to=ir.DataType.INT64) if is_shape else op("Shape", like)
    return op("Concat", shape, op.ints(extra), axis=0) if extra else shape
