"""Reductions and statistics of jax.numpy."""

import jax.numpy as jnp
from jax_cases import case, cases

cases(
    "f32[4,6]",
    sum=jnp.sum,
    sum_axis=lambda x: x.sum(axis=0),
    sum_keepdims=lambda x: x.sum(axis=1, keepdims=True),
    sum_where=lambda x: jnp.sum(x, where=x > 0),
    sum_with_start=lambda x: jnp.sum(x, axis=1, initial=10.0),
    mean=jnp.mean,
    mean_axis=lambda x: jnp.mean(x, axis=-1),
    max=jnp.max,
    max_axis=lambda x: x.max(axis=1),
    max_with_start=lambda x: jnp.max(x, axis=0, initial=0.5),
    max_where=lambda x: jnp.max(x, axis=0, where=x < 1, initial=-jnp.inf),
    min_axis=lambda x: x.min(axis=0, keepdims=True),
    all=lambda x: jnp.all(x > -1, axis=1),
    any=lambda x: jnp.any(x > 1),
    nansum=lambda x: jnp.nansum(x, axis=1),
    nanmean=lambda x: jnp.nanmean(x, axis=0),
    nanmax=lambda x: jnp.nanmax(x, axis=1),
    nanmin=lambda x: jnp.nanmin(x),
    cumsum=lambda x: jnp.cumsum(x, axis=1),
    cumsum_flat=lambda x: jnp.cumsum(x),
    cumulative_sum_with_start=lambda x: jnp.cumulative_sum(x, axis=1, include_initial=True),
    nancumsum=lambda x: jnp.nancumsum(x, axis=0),
    logsumexp_by_hand=lambda x: jnp.log(jnp.sum(jnp.exp(x - x.max()))) + x.max(),
    median=lambda x: jnp.median(x, axis=1),
    nanmedian=lambda x: jnp.nanmedian(x, axis=1),
    ptp=lambda x: jnp.ptp(x, axis=1),
    count_nonzero=lambda x: jnp.count_nonzero(x, axis=1),
    quantile=lambda x: jnp.quantile(x, 0.3, axis=1),
    percentiles=lambda x: jnp.percentile(x, jnp.array([25.0, 50.0, 90.0]), axis=0),
    quantile_nearest=lambda x: jnp.quantile(x, 0.4, axis=1, method="nearest"),
    quantile_lower=lambda x: jnp.quantile(x, 0.4, axis=1, method="lower"),
    nanquantile=lambda x: jnp.nanquantile(x, 0.5, axis=1),
)
cases(
    "f32[4,6] plain",
    prod=lambda x: jnp.prod(x, axis=1),
    cumprod=lambda x: jnp.cumprod(x / 2, axis=1),
    nanprod=lambda x: jnp.nanprod(x, axis=0),
    var=jnp.var,
    var_axis=lambda x: jnp.var(x, axis=0),
    var_unbiased=lambda x: jnp.var(x, axis=1, ddof=1),
    std=lambda x: jnp.std(x, axis=1),
    std_where=lambda x: jnp.std(x, axis=1, where=x > -1),
    nanstd=lambda x: jnp.nanstd(x, axis=0),
    average=lambda x: jnp.average(x, axis=0),
    average_weighted=lambda x: jnp.average(x, axis=1, weights=jnp.arange(1.0, 7.0)),
    covariance=jnp.cov,
    covariance_of_columns=lambda x: jnp.cov(x, rowvar=False, bias=True),
    correlation=lambda x: jnp.corrcoef(x + jnp.arange(6.0)),
    standardise=lambda x: (x - x.mean(0)) / (x.std(0) + 1e-5),
    min_max_scale=lambda x: (x - x.min(0)) / (jnp.ptp(x, axis=0) + 1e-6),
    center_and_norm=lambda x: (x - x.mean(-1, keepdims=True)) / jnp.linalg.norm(x, axis=-1, keepdims=True),
    skewness=lambda x: jnp.mean(((x - x.mean()) / (x.std() + 1e-3)) ** 3),
    moving_average=lambda x: jnp.stack([x[:, i : i + 3].mean(1) for i in range(4)], 1),
    moving_average_by_cumsum=lambda x: (jnp.cumsum(x, 1)[:, 3:] - jnp.cumsum(x, 1)[:, :-3]) / 3,
    exponential_weights=lambda x: (x * 0.5 ** jnp.arange(6.0)[::-1]).sum(1),
    mean_of_all_axes=lambda x: jnp.mean(x, axis=(0, 1)),
    root_mean_square=lambda x: jnp.sqrt(jnp.mean(x**2, -1)),
    entropy=lambda x: -jnp.sum(jnp.exp(x - 9) * (x - 9), -1),
    outliers=lambda x: jnp.abs(x - jnp.median(x)) > 2 * x.std(),
)
cases(
    "i32[4,6] -20..20",
    int_sum=jnp.sum,
    int_prod=lambda x: jnp.prod(x % 5, axis=1),
    int_mean=lambda x: jnp.mean(x, axis=0),
    int_max_min=lambda x: (x.max(), x.min(axis=1)),
    int_cumsum=lambda x: jnp.cumsum(x, axis=0),
    int_median=lambda x: jnp.median(x, axis=1),
    int_var=lambda x: jnp.var(x, axis=1),
)
cases(
    "bool[4,6]",
    bool_all_any=lambda x: (x.all(), x.any(axis=0), jnp.all(x, axis=1)),
    bool_mean=lambda x: x.mean(axis=1),
    bool_cumsum=lambda x: jnp.cumsum(x, axis=1),
    bool_max=lambda x: x.max(axis=0),
)


@case("f32[8] plain", "f32[8] plain")
def regression_line(x, y):
    slope = jnp.sum((x - x.mean()) * (y - y.mean())) / (jnp.sum((x - x.mean()) ** 2) + 1.0)
    return slope, y.mean() - slope * x.mean()


@case("f32[5,4] plain", "f32[5,4] plain")
def losses(a, b):
    gap = a - b
    huber = jnp.where(jnp.abs(gap) < 1, 0.5 * gap**2, jnp.abs(gap) - 0.5)
    return jnp.mean(gap**2), jnp.mean(jnp.abs(gap)), huber.mean(), jnp.max(jnp.abs(gap))


@case("f32[5,4] plain", "f32[6,4] plain")
def pairwise_distances(a, b):
    return jnp.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


@case("f32[5,4] plain", "f32[6,4] plain")
def cosine_similarities(a, b):
    unit = lambda v: v / jnp.linalg.norm(v, axis=-1, keepdims=True)  # noqa: E731
    return unit(a) @ unit(b).T


@case("f32[10,2] plain", "f32[3,2] plain")
def nearest_centres(points, centres):
    return jnp.argmin(jnp.sum((points[:, None] - centres) ** 2, -1), axis=1)


@case("f32[6,3] plain", "i32[6] 0..2")
def centres_of_clusters(points, labels):
    member = (labels[:, None] == jnp.arange(3)).astype(points.dtype)
    return member.T @ points / jnp.maximum(member.sum(0)[:, None], 1)
