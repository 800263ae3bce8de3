"""Normalisations that PyTorch's own do not cover."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def per_channel(statistic: Tensor, x: Tensor) -> Tensor:
    """One value per channel, shaped to be combined with `x`, whose axis 1 holds the channels."""
    return statistic.reshape(-1, *[1] * (x.ndim - 2)) if x.ndim > 1 else statistic


def batch_norm_mixed(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float = 1e-5) -> Tensor:
    """Batch normalisation by given statistics, where the input and the statistics differ in type."""
    kind = torch.promote_types(torch.promote_types(x.dtype, weight.dtype), mean.dtype)
    mean, var, weight, bias = (per_channel(s.to(kind), x) for s in (mean, var, weight, bias))
    return ((x.to(kind) - mean) * torch.rsqrt(var + eps) * weight + bias).to(x.dtype)


def batch_norm_train(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    eps: float = 1e-5,
    momentum: float = 0.9,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation by the statistics of the batch, and the running statistics with the batch mixed in.

    `momentum` is the share of the old statistics that is kept; the variance is the biased one throughout.
    """
    axes = [i for i in range(x.ndim) if i != 1]
    kind = torch.promote_types(mean.dtype, torch.promote_types(x.dtype, torch.float32))
    batch_var, batch_mean = torch.var_mean(x.to(kind), axes, correction=0)
    y = batch_norm_mixed(x, weight, bias, batch_mean, batch_var, eps)
    running_mean = mean * momentum + batch_mean * (1 - momentum)
    running_var = var * momentum + batch_var * (1 - momentum)
    return y, running_mean.to(mean.dtype), running_var.to(var.dtype)


def instance_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Each channel of each sample normalised by itself, even where it has one element only."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    var, mean = torch.var_mean(wide, list(range(2, x.ndim)), correction=0, keepdim=True)
    y = (wide - mean) * torch.rsqrt(var + eps) * per_channel(weight, x) + per_channel(bias, x)
    return y.to(x.dtype)


def unless_empty(layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """What a layer that keeps the shape makes of `x`: of no elements, none."""
    return layer(x) if x.numel() else x


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None = None, axis: int = -1, eps: float = 1e-5) -> Tensor:
    """Layer normalisation over the axes from `axis` on, with a weight that may have to be broadcast."""
    shape = x.shape[axis:]
    if weight.shape == shape and (bias is None or bias.shape == shape):
        return F.layer_norm(x, shape, weight, bias, eps)
    y = F.layer_norm(x, shape, eps=eps) * weight
    return y if bias is None else y + bias


def layer_norm_statistics(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    axis: int = -1,
    eps: float = 1e-5,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer normalisation, the means, and the inverse standard deviations; these in `dtype`."""
    wide = x.to(torch.promote_types(x.dtype, dtype))
    var, mean = torch.var_mean(wide, list(range(axis % x.ndim, x.ndim)), correction=0, keepdim=True)
    inverse = torch.rsqrt(var + eps)
    y = ((wide - mean) * inverse).to(x.dtype) * weight
    return (y if bias is None else y + bias), mean.to(dtype), inverse.to(dtype)


def rms_norm(x: Tensor, weight: Tensor, axis: int = -1, eps: float = 1e-5) -> Tensor:
    """RMS normalisation over the axes from `axis` on, with a weight that may have to be broadcast."""
    shape = x.shape[axis:]
    if weight.shape == shape:
        return F.rms_norm(x, shape, weight, eps)
    return F.rms_norm(x, shape, eps=eps) * weight


def local_response_norm(x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """Each element divided by the energy of `size` neighbouring channels; an even size reaches further up."""
    below = (size - 1) // 2
    squares = F.pad((x * x).movedim(1, -1), (below, size - 1 - below))
    energy = squares.unfold(-1, size, 1).sum(-1).movedim(-1, 1)
    return x / (bias + alpha / size * energy) ** beta


def lp_normalize(x: Tensor, p: int = 2, axis: int = -1) -> Tensor:
    """Divide by the p-norm along an axis; zeros stay zeros."""
    norm = torch.linalg.vector_norm(x, p, axis, keepdim=True)
    return x / torch.where(norm == 0, 1, norm)


def mean_variance_norm(x: Tensor, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    """Subtract the mean over `axes`, divide by the standard deviation."""
    var, mean = torch.var_mean(x, list(axes), correction=0, keepdim=True)
    return (x - mean) / (var.sqrt() + 1e-9)
