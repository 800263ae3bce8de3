"""Sorting, searching, sets and histograms."""

import jax.numpy as jnp
from jax_cases import case, cases

cases(
    "f32[4,7]",
    sort=jnp.sort,
    sort_axis_0=lambda x: jnp.sort(x, axis=0),
    sort_flat=lambda x: jnp.sort(x, axis=None),
    sort_descending=lambda x: jnp.sort(x, descending=True),
    argsort=jnp.argsort,
    argsort_axis_0=lambda x: jnp.argsort(x, axis=0),
    argsort_descending=lambda x: jnp.argsort(x, descending=True),
    argsort_of_negative=lambda x: jnp.argsort(-x),
    argmax=jnp.argmax,
    argmax_axis=lambda x: jnp.argmax(x, axis=1),
    argmax_keepdims=lambda x: jnp.argmax(x, axis=0, keepdims=True),
    argmin=lambda x: jnp.argmin(x, axis=-1),
    nanargmax=lambda x: jnp.nanargmax(x, axis=1),
    nanargmin=lambda x: jnp.nanargmin(x, axis=0),
    partition=lambda x: jnp.sort(jnp.partition(x, 3)[..., :3]),
    largest_two_sum=lambda x: jnp.sort(x, axis=1)[:, -2:].sum(1),
    ranks=lambda x: jnp.argsort(jnp.argsort(x, axis=1), axis=1),
    median_by_sorting=lambda x: jnp.sort(x, axis=1)[:, 3],
    lexsort=lambda x: jnp.lexsort((x[0], jnp.round(x[1]))),
    top_mask=lambda x: x >= jnp.sort(x, axis=-1)[:, -3:-2],
    sort_then_cumsum=lambda x: jnp.cumsum(jnp.sort(x, axis=1)[:, ::-1], axis=1),
)
cases(
    "i32[4,7]",
    sort_ints=jnp.sort,
    argsort_ints=jnp.argsort,
    argmax_ints=lambda x: jnp.argmax(x, 1),
    sort_ints_descending=lambda x: jnp.sort(x, descending=True),
    unique_sized=lambda x: jnp.unique(x, size=10, fill_value=-1),
    unique_counts_sized=lambda x: jnp.unique(x, size=10, fill_value=0, return_counts=True),
    unique_inverse_sized=lambda x: jnp.unique(x[0], size=7, return_inverse=True, return_index=True),
)
cases(
    "f32[6] -2..2",
    searchsorted_left=lambda x: jnp.searchsorted(jnp.array([-1.0, 0.0, 0.0, 1.0]), x),
    searchsorted_right=lambda x: jnp.searchsorted(jnp.array([-1.0, 0.0, 0.0, 1.0]), x, side="right"),
    searchsorted_compare_all=lambda x: jnp.searchsorted(jnp.array([-1.0, 0.0, 1.0]), x, method="compare_all"),
    searchsorted_by_sort=lambda x: jnp.searchsorted(jnp.array([-1.0, 0.0, 1.0]), x, method="sort"),
    digitize=lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])),
    digitize_right=lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0]), right=True),
    histogram=lambda x: jnp.histogram(x, bins=4, range=(-2.0, 2.0)),
    histogram_of_own_range=lambda x: jnp.histogram(x, bins=3)[0],
    histogram_edges=lambda x: jnp.histogram(x, bins=jnp.array([-2.0, -0.5, 0.5, 2.0]))[0],
    histogram_density=lambda x: jnp.histogram(x, bins=4, range=(-2.0, 2.0), density=True)[0],
    quantile_by_index=lambda x: jnp.sort(x)[jnp.clip(jnp.floor(0.3 * 6).astype(int), 0, 5)],
)
cases(
    "i32[12] 0..7",
    bincount=lambda x: jnp.bincount(x, length=8),
    bincount_short=lambda x: jnp.bincount(x, length=5),
    bincount_weights=lambda x: jnp.bincount(x, weights=x * 0.5, length=8),
    isin=lambda x: jnp.isin(x, jnp.array([1, 3, 5])),
    isin_inverted=lambda x: jnp.isin(x, jnp.array([1, 3, 5]), invert=True),
    mode_of_values=lambda x: jnp.argmax(jnp.bincount(x, length=8)),
    first_of_each=lambda x: jnp.unique(x, size=8, return_index=True, fill_value=-1)[1],
    run_starts=lambda x: jnp.concatenate([jnp.array([True]), x[1:] != x[:-1]]),
    cumulative_counts=lambda x: jnp.cumsum(x[:, None] == jnp.arange(8), axis=0),
)


@case("i32[6] 0..9", "i32[5] 0..9")
def sets_sized(a, b):
    return (
        jnp.intersect1d(a, b, size=5, fill_value=-1),
        jnp.union1d(a, b, size=10, fill_value=-1),
        jnp.setdiff1d(a, b, size=6, fill_value=-1),
    )


@case("i32[6] 0..9", "i32[5] 0..9")
def exclusive_or_sized(a, b):
    return jnp.setxor1d(a, b, size=11, fill_value=-1)


@case("f32[9]", "i32[9] 0..3")
def sort_by_another(values, groups):
    order = jnp.argsort(groups, stable=True)
    return values[order], groups[order]


@case("f32[5,8] plain", "i32[] 1..7")
def threshold_at_kth(x, k):
    ordered = jnp.sort(x, axis=-1)[:, ::-1]
    cut = jnp.take_along_axis(ordered, jnp.full((5, 1), k), axis=1)
    return jnp.where(x > cut, x, 0.0)


@case("f32[9] plain", "f32[9] plain")
def histogram_of_pairs(x, y):
    return jnp.histogram2d(x, y, bins=3, range=((-3.0, 3.0), (-3.0, 3.0)))[0]


@case("f32[6,2] -3..3")
def histogram_of_points(x):
    return jnp.histogramdd(x, bins=(2, 3), range=((-3.0, 3.0), (-3.0, 3.0)))[0]


@case("f32[10]", "f32[10]")
def rank_correlation(x, y):
    rank = lambda v: jnp.argsort(jnp.argsort(v)).astype(jnp.float32)  # noqa: E731
    return jnp.corrcoef(rank(x), rank(y))


@case("f32[20] 0..10")
def empirical_distribution(x):
    points = jnp.linspace(0, 10, 6)
    return jnp.searchsorted(jnp.sort(x), points, side="right") / x.size


@case("u8[10]", "i8[10]")
def small_ints_sorted(x, y):
    return jnp.sort(x), jnp.argsort(y), jnp.max(x), jnp.argmin(y)


@case("bool[10]")
def bools_sorted(x):
    return jnp.sort(x), jnp.argsort(x), jnp.argmax(x)
