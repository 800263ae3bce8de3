"""Gradients of normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.build import Tensor
from onward.spec.norm import LRN, BatchNorm, GroupNorm, LayerNorm, LpNorm, MeanVarianceNorm, Norm
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp


@vjp("BatchNormalization")
def batch_norm(
    c: Context, g: Tensor | None, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, p: BatchNorm
) -> Gradients:
    given = (x, scale, bias, mean, var)
    wide = [widened(t) for t in given]
    kind = wide[0].dtype
    wide = [t.cast(kind) for t in wide]
    slope = shaped(c.gradient_or_zero(0), x).cast(kind)
    if p.training_mode:
        found = _batch_norm_training(c, slope, *wide, epsilon=p.epsilon, momentum=p.momentum)
    else:
        found = _batch_norm_inference(slope, *wide, epsilon=p.epsilon)
    return [None if f is None else f.cast(t.dtype) for f, t in zip(found, given, strict=True)]


def _batch_norm_inference(
    g: Tensor, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float
) -> list[Tensor | None]:
    inverse = inverse_root(var, epsilon)
    factor = scale * inverse
    total = channel_sum(g)
    slope = channel_sum(g * (x - column(mean, x))) * inverse
    return [g * column(factor, x), slope, total, -factor * total, factor * inverse * slope * -0.5]


def _batch_norm_training(
    c: Context,
    g: Tensor,
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float,
    momentum: float,
) -> list[Tensor | None]:
    """By the batch's own statistics, which the op gives where it keeps nothing of the running ones."""
    share = 1 / count_of(x, [i for i in range(rank_of(x)) if i != 1])
    own_mean, own_var = (c.optional_output(i).cast(x.dtype) for i in (1, 2))
    if momentum == 0:
        centred = x - column(own_mean, x)
    else:
        centred = x - column(channel_sum(x) * share, x)
        own_var = channel_sum(centred * centred) * share
    inverse = inverse_root(own_var, epsilon)
    factor = scale * inverse
    total, slope = channel_sum(g), channel_sum(g * centred) * inverse
    of_centred, constant = -factor * inverse * slope, -factor * total
    means, variances = (c.gradient(i) for i in (1, 2))
    if means is not None:
        means = means.cast(x.dtype)
        constant = constant + means * (1 - momentum)
    if variances is not None:
        variances = variances.cast(x.dtype)
        of_centred = of_centred + variances * (2 * (1 - momentum))
    dx = g * column(factor, x) + (centred * column(of_centred * share, x) + column(constant * share, x))
    return [
        dx,
        slope,
        total,
        None if means is None or momentum == 0 else means * momentum,
        None if variances is None or momentum == 0 else variances * momentum,
    ]


@vjp("InstanceNormalization")
def instance_norm(c: Context, g: Tensor, x: Tensor, scale: Tensor, bias: Tensor, p: Norm) -> Gradients:
    return _grouped(g, x, scale, bias, 0, p.epsilon)


@vjp("GroupNormalization")
def group_norm(c: Context, g: Tensor, x: Tensor, scale: Tensor, bias: Tensor, p: GroupNorm) -> Gradients:
    return _grouped(g, x, scale, bias, p.num_groups, p.epsilon)


def _grouped(g: Tensor, x: Tensor, scale: Tensor, bias: Tensor, groups: int, epsilon: float) -> list[Tensor]:
    """Each group of channels of a sample by itself (each channel, if `groups` is 0)."""
    op, kind = g.op, x.dtype
    shape = op.ints([0, groups, -1])
    slope, wide, factor = widened(shaped(g, x)), widened(x), widened(scale)
    rows = op.Reshape(wide, shape)
    centred = rows - op.ReduceMean(rows, op.ints([2]))
    inverse = inverse_root(op.ReduceMean(centred * centred, op.ints([2])), epsilon)
    normal = centred * inverse
    weighted = op.Reshape(slope * column(factor, x), shape)
    dx = op.reshape_like(_through(weighted, normal, inverse, [2]), x)
    scales = channel_sum(slope * op.reshape_like(normal, x))
    return [dx.cast(kind), scales.cast(scale.dtype), channel_sum(slope).cast(bias.dtype)]


@vjp("LayerNormalization")
def layer_norm(
    c: Context, g: Tensor | None, x: Tensor, scale: Tensor, bias: Tensor | None = None, *, p: LayerNorm
) -> Gradients:
    """With the means and inverse deviations that the op itself has computed, unless they are less precise than x."""
    op, rank = c.op, rank_of(x)
    axes = list(range(p.axis % rank, rank))
    slope, wide, factor = widened(c.gradient_or_zero(0)), widened(x), widened(scale)
    if wide.dtype == p.stash_type:
        centred, inverse = wide - c.optional_output(1), c.optional_output(2)
    else:
        centred = wide - op.ReduceMean(wide, op.ints(axes))
        inverse = inverse_root(op.ReduceMean(centred * centred, op.ints(axes)), p.epsilon)
    normal = centred * inverse
    product = slope * normal
    if len(axes) == 1 and scale.rank == 1 and _is_whole(scale, x):
        ones = op.Unsqueeze(factor * (1 / count_of(x, axes)), op.ints([1]))
        dx = (slope * factor - slope @ ones - normal * (product @ ones)) * inverse
    else:
        dx = _through(slope * factor, normal, inverse, axes)
    share = 1 / count_of(x, axes)
    means, inverses = (c.gradient(i) for i in (1, 2))
    if means is not None:
        dx = dx + means.cast(wide.dtype) * share
    if inverses is not None:
        dx = dx - normal * (inverses.cast(wide.dtype) * inverse * inverse * share)
    scales = unbroadcast(product, scale).cast(scale.dtype)
    return dx.cast(x.dtype), scales, None if bias is None else unbroadcast(slope, bias).cast(bias.dtype)


def _is_whole(scale: Tensor, x: Tensor) -> bool:
    """Whether the scale surely has one element for each of the last axis."""
    return scale.dims is not None and x.dims is not None and scale.dims[-1] == x.dims[-1] is not None


@vjp("RMSNormalization")
def rms_norm(c: Context, g: Tensor, x: Tensor, scale: Tensor, p: LayerNorm) -> Gradients:
    op, rank = c.op, rank_of(x)
    axes = list(range(p.axis % rank, rank))
    slope, wide, factor = widened(g), widened(x), widened(scale)
    inverse = inverse_root(op.ReduceMean(wide * wide, op.ints(axes)), p.epsilon)
    normal = wide * inverse
    product = slope * normal
    if len(axes) == 1 and scale.rank == 1 and _is_whole(scale, x):
        along = product @ op.Unsqueeze(factor * (1 / count_of(x, axes)), op.ints([1]))
    else:
        along = op.ReduceMean(product * factor, op.ints(axes))
    dx = (slope * factor - normal * along) * inverse
    return dx.cast(x.dtype), unbroadcast(product, scale).cast(scale.dtype)


def _through(g: Tensor, normal: Tensor, inverse: Tensor, axes: Sequence[int]) -> Tensor:
    """From the gradient of what was normalised over `axes`, before any scale, to that of the input."""
    op = g.op
    over = op.ints(axes)
    return (g - op.ReduceMean(g, over) - normal * op.ReduceMean(g * normal, over)) * inverse


@vjp("LRN")
def local_response_norm(c: Context, g: Tensor, x: Tensor, p: LRN) -> Gradients:
    """Each element acts on itself, and through the energy on the channels around it: the same window, turned."""
    size, below, above = p.size, (p.size - 1) // 2, p.size // 2
    factor = p.alpha / size
    energy = _over_channels(x * x, size, below, above) * factor + p.bias
    direct = g * energy**-p.beta
    around = _over_channels(direct * x / energy, size, above, below)
    return direct - x * around * (2 * factor * p.beta)


def _over_channels(x: Tensor, size: int, below: int, above: int) -> Tensor:
    """The sums of `size` neighbouring channels."""
    op = x.op
    planes = op.Unsqueeze(op.Reshape(x, op.ints([0, 0, -1])), op.ints([1]))
    means = op.AveragePool(planes, kernel_shape=[size, 1], pads=[below, 0, above, 0], count_include_pad=1)
    return op.reshape_like(means * size, x)


@vjp("LpNormalization")
def lp_normalize(c: Context, g: Tensor, x: Tensor, p: LpNorm) -> Gradients:
    """Zeros stay zeros, as if divided by 1."""
    op = c.op
    reduce = op.ReduceL1 if p.p == 1 else op.ReduceL2
    norm = reduce(x, op.ints([p.axis]), keepdims=1)
    norm = op.where(op.Equal(norm, op.like(0, norm)), 1, norm)
    along = op.sum(g * c.y, [p.axis])
    return (g - (op.Sign(x) if p.p == 1 else c.y) * along) / norm


@vjp("MeanVarianceNormalization")
def mean_variance_norm(c: Context, g: Tensor, x: Tensor, p: MeanVarianceNorm) -> Gradients:
    op = c.op
    over = op.ints(p.axes)
    centred = x - op.ReduceMean(x, over)
    deviation = op.Sqrt(op.ReduceMean(centred * centred, over))
    divisor = deviation + 1e-9
    along = op.ReduceMean(g * centred, over) / (divisor * op.where(deviation > 0, deviation, 1))
    return (g - op.ReduceMean(g, over) - centred * along) / divisor


def rank_of(x: Tensor) -> int:
    if x.rank is None:
        raise UnsupportedError("the gradient of a normalisation of a tensor whose rank is not known is not supported")
    return x.rank


def shaped(g: Tensor, x: Tensor) -> Tensor:
    """A gradient of the shape of `x`, also where ONNX infers no shape for the op's result."""
    return g.op.reshape_like(g, x) if g.rank is None else g


def widened(x: Tensor) -> Tensor:
    """Statistics of half precision are computed in single precision."""
    return x.cast(ir.DataType.FLOAT) if x.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16) else x


def inverse_root(x: Tensor, epsilon: float) -> Tensor:
    return x.op.Reciprocal(x.op.Sqrt(x + epsilon))


def column(statistic: Tensor, x: Tensor) -> Tensor:
    """One value a channel, to be combined with `x`, whose axis 1 holds the channels."""
    return statistic.op.Reshape(statistic, statistic.op.ints([-1, *[1] * (rank_of(x) - 2)]))


def channel_sum(x: Tensor) -> Tensor:
    """The sums of all axes but the second: over the places first, which is where most of the numbers are."""
    assert x.rank is not None
    op = x.op
    places = op.sum(x, range(2, x.rank), keepdims=False) if x.rank > 2 else x
    return op.sum(places, [0], keepdims=False)


def count_of(x: Tensor, axes: Sequence[int]) -> Tensor:
    """How many elements of `x` share its other axes, as a scalar of its dtype."""
    op, dims = x.op, x.dims
    sizes = [] if dims is None else [d for d in (dims[axis] for axis in axes) if isinstance(d, int)]
    if len(sizes) == len(axes):
        return op.like(math.prod(sizes), x)
    return op.ReduceProd(op.Gather(op.Shape(x), op.ints(axes)), keepdims=0).cast(x.dtype)
