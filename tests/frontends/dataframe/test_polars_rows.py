"""What looks at many rows: aggregates, groups, windows, order, and steps on frames are what Polars computes."""

from datetime import date, datetime

import pytest

pl = pytest.importorskip("polars")

from polars_frames import INF, NAN, same  # noqa: E402

from onward.errors import UnsupportedError  # noqa: E402

TABLE = pl.DataFrame(
    {
        "s": ["a", "b", "x y", None, "zz"],
        "w": [1.5, 2.5, None, 9.0, 8.0],
        "i": [1, 2, 3, 4, 5],
        "n": ["A", "B", "C", None, "E"],
    }
)
DOUBLED = pl.DataFrame({"s": ["a", "b", "a"], "w": [1.5, 2.5, 3.5]})
DATES = pl.DataFrame(
    {"d": [date(2020, 2, 29), date(1900, 3, 1)], "h": [True, False], "t": [datetime(2020, 2, 29, 13, 30), None]}
)
AGGREGATES = {
    "sum": pl.col("i").sum(),
    "sumf": pl.col("f").sum(),
    "sumu": pl.col("u").sum(),
    "sumb": pl.col("b").sum(),
    "mean": pl.col("i").mean(),
    "meanf": pl.col("f").mean(),
    "meanb": pl.col("b").mean(),
    "med": pl.col("i").median(),
    "medf": pl.col("f").median(),
    "std": pl.col("i").std(),
    "var": pl.col("g").var(ddof=0),
    "min_": pl.col("i").min(),
    "max_": pl.col("f").max(),
    "minf": pl.col("f").min(),
    "mins": pl.col("s").min(),
    "maxs": pl.col("s").max(),
    "mint": pl.col("t").min(),
    "maxd": pl.col("d").max(),
    "minb": pl.col("b").min(),
    "q": pl.col("k").quantile(0.3),
    "q2": pl.col("f").quantile(0.7, "linear"),
    "q3": pl.col("g").quantile(0.5, "lower"),
    "cnt": pl.col("i").count(),
    "len_": pl.len(),
    "lenc": pl.col("i").len(),
    "nu": pl.col("i").n_unique(),
    "nuf": pl.col("f").n_unique(),
    "nus": pl.col("s").n_unique(),
    "first": pl.col("s").first(),
    "last": pl.col("f").last(),
    "nc": pl.col("i").null_count(),
    "any_": pl.col("b").any(),
    "all_": pl.col("b").all(),
    "anyn": pl.col("b").any(ignore_nulls=False),
    "prod": pl.col("k").product(),
    "skew": pl.col("k").skew(),
    "kurt": pl.col("k").kurtosis(),
    "corr": pl.corr("k", "u"),
    "cov": pl.cov("k", "u"),
    "am": pl.col("k").arg_max(),
    "ami": pl.col("f").arg_min(),
    "sumr": pl.col("r").sum(),
    "filt": pl.col("i").filter(pl.col("f") > 0).sum(),
    "filtm": pl.col("f").filter(pl.col("b")).mean(),
    "filtl": pl.col("s").filter(pl.col("i") > 3).first(),
    "dn": pl.col("f").drop_nulls().mean(),
    "hd": pl.col("k").head(3).sum(),
    "tl": pl.col("k").tail(2).sum(),
    "get": pl.col("k").get(0),
    "srt": pl.col("i").sort().first(),
    "srtb": pl.col("i").sort_by("f").last(),
    "dnl": pl.col("i").drop_nulls().len(),
    "nn": pl.col("f").drop_nans().max(),
    "un": pl.col("s").unique().len(),
    "shf": pl.col("k").shift(1).sum(),
    "sl": pl.col("k").slice(1, 3).max(),
    "hasn": pl.col("i").has_nulls(),
}
NOT_IN_GROUPS = ["am", "ami", "corr", "cov", "get", "kurt", "skew", "tl", "un"]
ROWS = {
    "shift": pl.col("i").shift(1),
    "shiftn": pl.col("s").shift(-2),
    "shfill": pl.col("i").shift(1, fill_value=0),
    "diff": pl.col("i").diff(),
    "difft": pl.col("t").diff(),
    "diffd": pl.col("d").diff(),
    "diffu": pl.col("u").diff(),
    "diff2": pl.col("f").diff(2),
    "pct": pl.col("g").pct_change(),
    "ff": pl.col("i").fill_null(strategy="forward"),
    "bf": pl.col("s").backward_fill(),
    "fl": pl.col("f").forward_fill(limit=1),
    "fz": pl.col("i").fill_null(strategy="zero"),
    "fm": pl.col("i").fill_null(strategy="mean"),
    "fmf": pl.col("f").fill_null(strategy="mean"),
    "fmx": pl.col("i").fill_null(strategy="max"),
    "cs": pl.col("i").cum_sum(),
    "csf": pl.col("g").cum_sum(),
    "cmx": pl.col("i").cum_max(),
    "cmn": pl.col("f").cum_min(),
    "cc": pl.col("i").cum_count(),
    "csr": pl.col("i").cum_sum(reverse=True),
    "rank": pl.col("i").rank(),
    "rankd": pl.col("f").rank("dense", descending=True),
    "ranko": pl.col("s").rank("ordinal"),
    "rankm": pl.col("i").rank("min"),
    "rm": pl.col("i").rolling_mean(3),
    "rs": pl.col("k").rolling_sum(2, min_samples=1),
    "rsd": pl.col("k").rolling_std(3, min_samples=2),
    "rmx": pl.col("g").rolling_max(3),
    "rmn": pl.col("i").rolling_min(2, min_samples=1),
    "rmed": pl.col("k").rolling_median(3, min_samples=1),
    "rc": pl.col("k").rolling_mean(3, center=True, min_samples=1),
    "rf": pl.col("f").rolling_mean(2, min_samples=1),
    "rev": pl.col("i").reverse(),
    "interp": pl.col("i").interpolate(),
    "dup": pl.col("s").is_duplicated(),
    "uq": pl.col("i").is_unique(),
    "ifd": pl.col("s").is_first_distinct(),
    "ild": pl.col("f").is_last_distinct(),
    "rle": pl.col("s").rle_id(),
    "sort": pl.col("i").sort(),
    "sortd": pl.col("f").sort(descending=True, nulls_last=True),
    "sortb": pl.col("s").sort_by("i", descending=True),
    "sortb2": pl.col("i").sort_by("e", "f"),
    "zs": (pl.col("k") - pl.col("k").mean()) / pl.col("k").std(),
    "pctr": pl.col("i").rank() / pl.col("i").count(),
    "share": pl.col("k") / pl.col("k").sum(),
    "ewm": pl.col("k").ewm_mean(alpha=0.5),
    "filt": pl.col("i").filter(pl.col("i") > 0),
    "uniq": pl.col("s").unique(maintain_order=True),
    "hd": pl.col("i").head(2),
}
NOT_WITHIN = {
    *("csr", "rc", "rev", "interp", "dup", "uq", "ifd", "ild", "rle", "ewm", "filt", "uniq", "hd"),
}
FRAMES = {
    "gb": lambda lf: lf.group_by("e").agg(pl.col("i").sum(), n=pl.len(), m=pl.col("f").mean()).sort("e"),
    "gb2": lambda lf: lf.group_by("e", "b").agg(pl.col("i").max()).sort("e", "b"),
    "gbe": lambda lf: lf.group_by((pl.col("i") % 2).alias("p"), maintain_order=True).agg(
        pl.col("f").sum(), (pl.col("k") * 2).sum().alias("z")
    ),
    "gbf": lambda lf: lf.group_by("s", maintain_order=True).agg(
        pl.col("i").filter(pl.col("k") > 0).sum().alias("x"),
        (pl.col("k") - pl.col("k").mean()).abs().max().alias("y"),
        pl.col("f").sort_by("i").first().alias("q"),
        pl.col("k").head(1).sum().alias("h"),
    ),
    "gblen": lambda lf: lf.group_by("b", maintain_order=True).len(),
    "gbx": lambda lf: lf.group_by("e", maintain_order=True).agg(pl.all().exclude("s", "b", "d", "r").first()),
    "gbfl": lambda lf: lf.group_by("e", maintain_order=True).agg(pl.col("i").mean()).filter(pl.col("i") > 1),
    "gbfloat": lambda lf: lf.group_by("f", maintain_order=True).agg(pl.col("i").count()),
    "gbdate": lambda lf: lf.group_by("d", maintain_order=True).agg(pl.col("i").count()),
    "sort": lambda lf: lf.sort("i"),
    "sort2": lambda lf: lf.sort("e", "f", descending=[True, False], nulls_last=True),
    "sort3": lambda lf: lf.sort(pl.col("i").abs(), "s"),
    "sorts": lambda lf: lf.sort("s", nulls_last=True),
    "sortt": lambda lf: lf.sort("t", descending=True),
    "head": lambda lf: lf.head(3),
    "tail": lambda lf: lf.tail(2),
    "slice": lambda lf: lf.slice(1, 3),
    "slicen": lambda lf: lf.slice(-3, 2),
    "rev": lambda lf: lf.reverse(),
    "ge": lambda lf: lf.gather_every(2),
    "ri": lambda lf: lf.with_row_index("n", offset=5),
    "uq": lambda lf: lf.unique(subset=["e"], keep="first", maintain_order=True),
    "uql": lambda lf: lf.unique(subset=["e", "b"], keep="last", maintain_order=True),
    "uqn": lambda lf: lf.unique(subset="s", keep="none", maintain_order=True),
    "dn": lambda lf: lf.drop_nulls(),
    "dns": lambda lf: lf.drop_nulls("i"),
    "dnan": lambda lf: lf.drop_nans("f"),
    "fn": lambda lf: lf.fill_null(0),
    "fnan": lambda lf: lf.fill_nan(None),
    "ren": lambda lf: lf.rename({"i": "I"}),
    "drop": lambda lf: lf.drop("i", "s"),
    "cast": lambda lf: lf.cast({"i": pl.Float64, "k": pl.Int64}),
    "filt": lambda lf: lf.filter(pl.col("i") > 0, pl.col("s") == "a"),
    "filtm": lambda lf: lf.filter(pl.col("k") > pl.col("k").mean()),
    "rem": lambda lf: lf.remove(pl.col("i") > 0),
    "filto": lambda lf: lf.filter(pl.len().over("e") > 1),
    "jl": lambda lf: lf.join(TABLE.lazy(), on="s", how="left"),
    "ji": lambda lf: lf.join(TABLE.lazy(), on="s", how="inner"),
    "js": lambda lf: lf.join(TABLE.lazy(), on="s", how="semi"),
    "ja": lambda lf: lf.join(TABLE.lazy(), on="s", how="anti"),
    "jn": lambda lf: lf.join(TABLE.lazy(), on="s", how="left", nulls_equal=True),
    "jm": lambda lf: lf.join(DOUBLED.lazy(), on="s", how="left"),
    "jmi": lambda lf: lf.join(DOUBLED.lazy(), on="s"),
    "jd": lambda lf: lf.join(DATES.lazy(), on="d", how="left"),
    "j2": lambda lf: lf.join(TABLE.lazy(), left_on=["s", "k"], right_on=["s", "i"], how="left"),
    "jlo": lambda lf: lf.join(TABLE.lazy(), left_on="s", right_on="n", how="left"),
    "jc": lambda lf: lf.join(TABLE.lazy(), on="s", how="left", coalesce=False),
    "jg": lambda lf: lf.join(lf.group_by("e").agg(m=pl.col("i").mean()), on="e", how="left"),
    "jgi": lambda lf: lf.join(lf.group_by("e").agg(m=pl.col("i").mean()), on="e", how="inner"),
    "jkf": lambda lf: lf.join(TABLE.lazy().filter(pl.col("w") > 1).select("s", "w"), on="s", how="left"),
    "jt": lambda lf: lf.join(DATES.lazy().select("t", "h"), on="t", how="left"),
    "cat": lambda lf: pl.concat([lf.select("i", "s"), lf.select(pl.col("i") + 1, "s")]),
    "catd": lambda lf: pl.concat([lf.select("i", "t"), lf.select("i", "f")], how="diagonal"),
    "hc": lambda lf: pl.concat([lf.select("i"), lf.select(x=pl.col("k"))], how="horizontal"),
    "chain": lambda lf: (
        lf.filter(pl.col("i").is_not_null())
        .with_columns(z=pl.col("k").mean())
        .sort("i")
        .head(4)
        .with_columns(q=pl.col("z") * 2 + pl.col("i"))
    ),
    "meana": lambda lf: lf.select("i", "f", "k").mean(),
}
IN_ANY_ORDER = {name for name in FRAMES if name.startswith("j")} | {"chain"}


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_of_all_rows(name: str) -> None:
    same(lambda frame: frame.select(result=AGGREGATES[name]))


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_stands_beside_columns(name: str) -> None:
    same(lambda frame: frame.with_columns(result=AGGREGATES[name]).select("i", "result"))


@pytest.mark.parametrize("name", [name for name in AGGREGATES if name not in NOT_IN_GROUPS])
def test_an_aggregate_of_groups(name: str) -> None:
    same(lambda frame: frame.group_by("e", maintain_order=True).agg(result=AGGREGATES[name]))
    same(lambda frame: frame.select("i", result=AGGREGATES[name].over("e")))


@pytest.mark.parametrize("name", NOT_IN_GROUPS)
def test_what_groups_do_not_have_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError):
        same(lambda frame: frame.group_by("e", maintain_order=True).agg(result=AGGREGATES[name]))


@pytest.mark.parametrize("name", ROWS)
def test_rows_before_and_after(name: str) -> None:
    same(lambda frame: frame.select(result=ROWS[name]))


@pytest.mark.parametrize("name", [name for name in ROWS if name not in NOT_WITHIN])
def test_rows_before_and_after_in_groups(name: str) -> None:
    same(lambda frame: frame.select("i", result=ROWS[name].over("e")))


@pytest.mark.parametrize("name", sorted(NOT_WITHIN))
def test_what_windows_do_not_have_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError):
        same(lambda frame: frame.select("i", result=ROWS[name].over("e")))


@pytest.mark.parametrize("name", ["shift", "cs", "rank", "diff", "ff"])
def test_windows_in_an_order(name: str) -> None:
    same(lambda frame: frame.select("i", result=ROWS[name].over("e", order_by="k")))


@pytest.mark.parametrize("name", FRAMES)
def test_a_step_on_frames(name: str) -> None:
    same(FRAMES[name], in_order=name not in IN_ANY_ORDER)


@pytest.mark.parametrize(
    "values", [[-INF, -INF], [-INF, 1.0], [1.0, INF], [INF, NAN], [1.0, 2.0, NAN], [-INF, 1.0, 2.0]]
)
def test_quantiles_between_infinities_and_nan(values: list[float]) -> None:
    frame = pl.DataFrame({"f": values, "k": [1] * len(values)})
    for how in ("linear", "midpoint", "lower", "higher", "nearest"):
        same(lambda lf: lf.select(pl.col("f").quantile(0.25, how)), frame)  # noqa: B023
        same(lambda lf: lf.select(pl.col("f").quantile(0.75, how).over("k")), frame)  # noqa: B023
    same(lambda lf: lf.select(pl.col("f").median(), m=pl.col("f").median().over("k")), frame)


@pytest.mark.parametrize("how", ["linear", "midpoint", "lower", "higher", "nearest"])
@pytest.mark.parametrize("count", range(1, 8))
def test_quantiles_of_few_rows(how: str, count: int) -> None:
    """Of two that are equally near, the nearest is the upper one."""
    frame = pl.DataFrame({"i": list(range(count)), "k": [1] * count})
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 1.0):
        same(lambda lf: lf.select(a=pl.col("i").quantile(share, how)), frame, on=[frame])  # noqa: B023
        same(lambda lf: lf.select(a=pl.col("i").quantile(share, how).over("k")), frame, on=[frame])  # noqa: B023
