"""Ops that exist only as gradients of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.conv import as_given, channels_first, conv
from onward.frontends.tensorflow.rules.pool import lrn, pooled
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

SELU_SCALE = 1.0507009873554804934193349852946
SELU_ALPHA = 1.7580993408473768599402175208123
"""The scale times alpha."""


@rule("BroadcastGradientArgs")
def broadcast_gradient_args(op: Writer, a: Tensor, b: Tensor) -> list[Tensor]:
    """The axes along which each of two shapes was repeated for the other."""
    rank = op.Max(op.Size(a), op.Size(b))
    full = [op.Concat(op.Expand(op.ints([1]), op.flat(rank - op.Size(s))), op.int64(s), axis=0) for s in (a, b)]
    one = op.index(1)
    return [op.flat(op.NonZero(op.Equal(s, one))).cast(a.dtype) for s in full]


@rule("ReluGrad")
def relu(op: Writer, gradient: Tensor, x: Tensor) -> Tensor:
    return op.where(x > 0, gradient, 0)


@rule("Relu6Grad")
def relu6(op: Writer, gradient: Tensor, x: Tensor) -> Tensor:
    return op.where(op.And(x > 0, x < 6), gradient, 0)


@rule("LeakyReluGrad")
def leaky_relu(op: Writer, gradient: Tensor, x: Tensor, *, alpha: float = 0.2) -> Tensor:
    return op.where(x > 0, gradient, gradient * alpha)


@rule("EluGrad")
def elu(op: Writer, gradient: Tensor, y: Tensor) -> Tensor:
    return op.where(y < 0, gradient * (y + 1.0), gradient)


@rule("SeluGrad")
def selu(op: Writer, gradient: Tensor, y: Tensor) -> Tensor:
    return op.where(y < 0, gradient * (y + SELU_ALPHA), gradient * SELU_SCALE)


@rule("SigmoidGrad")
def sigmoid(op: Writer, y: Tensor, gradient: Tensor) -> Tensor:
    return gradient * y * (1.0 - y)


@rule("TanhGrad")
def tanh(op: Writer, y: Tensor, gradient: Tensor) -> Tensor:
    return gradient * (1.0 - y * y)


@rule("SqrtGrad")
def sqrt(op: Writer, y: Tensor, gradient: Tensor) -> Tensor:
    return gradient * 0.5 / y


@rule("RsqrtGrad")
def rsqrt(op: Writer, y: Tensor, gradient: Tensor) -> Tensor:
    return gradient * y * y * y * -0.5


@rule("ReciprocalGrad", "InvGrad")
def reciprocal(op: Writer, y: Tensor, gradient: Tensor) -> Tensor:
    return -gradient * y * y


@rule("SoftplusGrad")
def softplus(op: Writer, gradient: Tensor, x: Tensor) -> Tensor:
    return gradient * op.Sigmoid(x)


@rule("SoftsignGrad")
def softsign(op: Writer, gradient: Tensor, x: Tensor) -> Tensor:
    below = 1.0 + op.Abs(x)
    return gradient / (below * below)


@rule("BiasAddGrad")
def bias_add(op: Writer, gradient: Tensor, *, data_format: str = "NHWC") -> Tensor:
    last, rank = data_format == "NHWC", gradient.rank
    if rank is None:  # in a loop over time, say: axes to sum over become one
        sizes, rest = op.Shape(gradient), op.ints([-1])
        to = [rest, op.Gather(sizes, op.ints([-1]))] if last else [op.Gather(sizes, op.ints([0, 1])), rest]
        gradient, rank = op.Reshape(gradient, op.Concat(*to, axis=0)), 2 if last else 3
    axes = list(range(rank - 1)) if last else [0, *range(2, rank)]
    return op.reduced("ReduceSum", gradient, axes, keepdims=False)


@rule("StridedSliceGrad")
def strided_slice(
    op: Writer,
    shape: Tensor,
    begin: Tensor,
    end: Tensor,
    strides: Tensor,
    gradient: Tensor,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """Zeros, with the gradient where the slice was taken: the places are sliced as the tensor was."""
    from onward.frontends.tensorflow.rules.slice import strided_slice as sliced

    to = op.int64(shape)
    count = op.reduced("ReduceProd", to, [0], keepdims=False)
    places = op.Reshape(op.Range(op.index(0), count, op.index(1)), to)
    sizes = op.operation.inputs[0].shape
    rank = sizes[0] if sizes.rank == 1 else None
    if rank is None and gradient.rank is not None:
        rank = gradient.rank + shrink_axis_mask.bit_count() - new_axis_mask.bit_count()
    places = places if rank is None or places.rank is not None else places.ranked(rank)
    taken = sliced(
        op,
        places,
        begin,
        end,
        strides,
        begin_mask=begin_mask,
        end_mask=end_mask,
        ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
    )
    zeros = op.Expand(op.like(0, gradient), op.flat(count))
    filled = op.ScatterND(zeros, op.unsqueeze(op.flat(taken), [1]), op.flat(gradient))
    found = op.Reshape(filled, to)
    return found if rank is None or found.rank is not None else found.ranked(rank)


def back(op: Writer, forward: Callable[[Tensor], Tensor], x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of what an op is computed from, by the rules that training has for the ops it is made of."""
    from onward.training.autodiff.reverse import gradients

    start = op.Identity(x)
    found = gradients(op, forward(start).value, [start.value], gradient)[0]
    return op.zeros_like(x) if found is None else found


@rule("MaxPoolGrad", "MaxPool3DGrad")
def max_pool(
    op: Writer,
    x: Tensor,
    y: Tensor,
    gradient: Tensor,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
) -> Tensor:
    def forward(start: Tensor) -> Tensor:
        return pooled(op, "MaxPool", start, ksize, strides, padding, explicit_paddings, data_format)[0]

    return back(op, forward, x, gradient)


@rule("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool(
    op: Writer,
    shape: Tensor,
    gradient: Tensor,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str = "NHWC",
) -> Tensor:
    def forward(start: Tensor) -> Tensor:
        return pooled(op, "AveragePool", start, ksize, strides, padding, (), data_format)[0]

    return back(op, forward, op.Expand(op.like(0, gradient), op.int64(shape)), gradient)


@rule("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def conv_filter(
    op: Writer,
    x: Tensor,
    sizes: Tensor,
    gradient: Tensor,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "",
    dilations: Sequence[int] = (),
) -> Tensor:
    options: dict[str, Any] = {"strides": strides, "padding": padding, "explicit_paddings": explicit_paddings}
    given = {"data_format": data_format, "dilations": dilations}
    options |= {name: value for name, value in given.items() if value}

    def forward(start: Tensor) -> Tensor:
        return conv(op, x, start, **options)

    return back(op, forward, op.Expand(op.like(0, gradient), op.int64(sizes)), gradient)


@rule("LRNGrad")
def local_response(
    op: Writer,
    gradient: Tensor,
    x: Tensor,
    y: Tensor,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> Tensor:
    def forward(start: Tensor) -> Tensor:
        return lrn(op, start, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta)

    return back(op, forward, x, gradient)


@rule("MirrorPadGrad")
def mirror_pad(op: Writer, gradient: Tensor, pads: Tensor, *, mode: str) -> Tensor:
    from onward.frontends.tensorflow.rules.shape import mirror_pad as padded

    added = op.reduced("ReduceSum", op.int64(pads), [1], keepdims=False)
    before = op.Expand(op.like(0, gradient), op.Shape(gradient) - added)
    rank = op.rank(gradient, "the gradient")
    return back(op, lambda start: padded(op, start, pads, mode=mode), before.ranked(rank), gradient)


@rule("CropAndResizeGradImage")
def crop_and_resize(
    op: Writer, gradient: Tensor, boxes: Tensor, which: Tensor, shape: Tensor, *, method: str = "bilinear"
) -> Tensor:
    from onward.frontends.tensorflow.rules.resize import crop_and_resize as cropped

    sizes = op.ints([int(d) for d in (gradient.dims or [])[1:3] if isinstance(d, int)])
    if sizes.dims != [2]:
        raise UnsupportedError("the gradient of crops whose size is not known is not supported")
    image = op.Expand(op.like(0, gradient), op.int64(shape))
    return back(op, lambda start: cropped(op, start, boxes, which, sizes, method=method), image, gradient)


@rule("FusedBatchNormGradV3", "FusedBatchNormGradV2", "FusedBatchNormGrad")
def batch_norm(
    op: Writer,
    gradient: Tensor,
    x: Tensor,
    scale: Tensor,
    mean: Tensor,
    variance: Tensor,
    *rest: Tensor,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> list[Tensor]:
    rank = op.rank(x, "what is normalised")
    g, turned = (channels_first(op, t, data_format, rank) for t in (gradient, x))
    axes, spread = [0, *range(2, rank)], list(range(1, rank - 1))
    inverse = 1.0 / op.Sqrt(variance + epsilon)
    normal = (turned - op.unsqueeze(mean, spread)) * op.unsqueeze(inverse, spread)
    to_offset = op.reduced("ReduceSum", g, axes, keepdims=False)
    to_scale = op.reduced("ReduceSum", g * normal, axes, keepdims=False)
    factor = op.unsqueeze(scale * inverse, spread)
    if is_training:
        count = (op.Size(turned) / op.Size(scale)).cast(x.dtype)
        average = op.unsqueeze(to_offset / count, spread) + normal * op.unsqueeze(to_scale / count, spread)
        g = g - average
    back = as_given(op, g * factor, data_format, rank)
    nothing = op.zeros_like(scale)
    return [back, to_scale, to_offset, nothing, nothing]


@rule("ResizeBilinearGrad", "ResizeNearestNeighborGrad", "ResizeBicubicGrad")
def resize(
    op: Writer, gradient: Tensor, x: Tensor, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Tensor:
    """The weights of the way there, transposed."""
    import tensorflow as tf

    from onward.frontends.tensorflow.rules.resize import unit_weights, weighted

    call = getattr(tf.raw_ops, op.operation.type.removesuffix("Grad"))
    dims = x.sizes[1:3] if op.operation.type != "ResizeNearestNeighborGrad" and x.sizes else None
    after = gradient.dims[1:3] if gradient.dims else None
    if dims is None:
        dims = op.numbers(x, "the size") if op.operation.type == "ResizeNearestNeighborGrad" else None
    if dims is None or after is None or not all(isinstance(d, int) for d in after):
        raise UnsupportedError("the gradient of a resize between sizes that are not known is not supported")
    options = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    sizes = zip(dims, (int(d) for d in after if isinstance(d, int)), strict=True)
    return weighted(op, gradient, *(unit_weights(call, axis, *pair, **options).T for axis, pair in enumerate(sizes)))


@rule("ConcatOffset")
def concat_offset(op: Writer, axis: Tensor, *shapes: Tensor) -> list[Tensor]:
    """Where each of the joined tensors begins."""
    where = op.numbers(axis, "the axis")[0]
    rank = shapes[0].sizes[0] if shapes[0].sizes else None
    if rank is None:
        raise UnsupportedError("the rank of what is joined is not known")
    where = op.axis(where, rank)
    mask = op.constant(np.eye(rank, dtype=shapes[0].dtype.numpy())[where])
    offsets = [op.zeros_like(shapes[0])]
    for shape in shapes[:-1]:
        offsets.append(offsets[-1] + shape * mask)
    return offsets
