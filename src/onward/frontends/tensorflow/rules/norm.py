"""Normalisations."""

from __future__ import annotations

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.conv import as_given, channels_first
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(
    op: Writer,
    x: Tensor,
    scale: Tensor,
    offset: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
    exponential_avg_factor: float = 1.0,
) -> list[Tensor]:
    """The result, mean and variance to go on with, and twice what the gradient wants to know again."""
    rank = op.rank(x, "what is normalised")
    turned = channels_first(op, x, data_format, rank)
    if not is_training:
        y = op.BatchNormalization(turned, scale, offset, mean, variance, epsilon=epsilon)
        return [as_given(op, y, data_format, rank), mean, variance, mean, variance, mean]
    axes = [0, *range(2, rank)]
    spread = list(range(1, rank - 1))
    batch_mean = op.reduced("ReduceMean", turned, axes, keepdims=False)
    centred = turned - op.unsqueeze(batch_mean, spread)
    batch_variance = op.reduced("ReduceMean", centred * centred, axes, keepdims=False)
    y = op.BatchNormalization(turned, scale, offset, batch_mean, batch_variance, epsilon=epsilon)
    count = (op.Size(turned) / op.Size(scale)).cast(x.dtype)
    unbiased = batch_variance * (count / op.Max(count - 1.0, op.like(1, count)))
    new_mean, new_variance = batch_mean, unbiased
    if exponential_avg_factor != 1:
        kept = 1 - exponential_avg_factor
        new_mean = mean * kept + batch_mean * exponential_avg_factor
        new_variance = variance * kept + unbiased * exponential_avg_factor
    return [as_given(op, y, data_format, rank), new_mean, new_variance, batch_mean, batch_variance, batch_mean]
