"""What looks like a DataFrame of Polars to a function, and records what is done to it in a LazyFrame without data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import polars as pl

from onward.errors import UnsupportedError
from onward.frontends.dataframe.polars.plan import REFERENCE, SOURCE

_NOWHERE = 2**31 - 2
"""A place that a series of one value does not have: taking it fails, should anyone work it out."""
_FORWARDED = frozenset(
    (
        *("select", "select_seq", "with_columns", "with_columns_seq", "filter", "remove", "drop", "rename", "cast"),
        *("sort", "head", "limit", "tail", "slice", "unique", "reverse", "gather_every", "top_k", "bottom_k", "shift"),
        *("drop_nulls", "drop_nans", "fill_null", "fill_nan", "interpolate", "with_row_index", "set_sorted"),
        *("unnest", "explode", "unpivot", "match_to_schema", "join", "join_asof"),
        *("mean", "sum", "min", "max", "median", "std", "var", "quantile", "null_count", "count"),
    )
)
"""Methods that frames with and without data have alike."""
_GROUPS = frozenset(
    (
        *("agg", "having", "len", "count", "first", "last", "sum", "mean", "median", "min", "max"),
        *("n_unique", "quantile", "all", "head", "tail"),
    )
)
_INSTEAD = {
    "height": "`pl.len()`",
    "shape": "`pl.len()`",
    "item": "an expression that stands beside columns, such as `pl.col('x').sum()`",
    "to_dummies": "`(pl.col('x') == 'a').cast(pl.UInt8)` for each category",
    "pivot": "a `filter` and an aggregate for each column",
    "map_rows": "expressions",
    "iter_rows": "expressions",
    "rows": "expressions",
    "to_numpy": "expressions",
    "to_pandas": "expressions of Polars",
    "sample": "nothing, as a model has no random numbers",
}
_UFUNCS = {
    "log": lambda e: e.log(),
    "log2": lambda e: e.log(2),
    "log10": lambda e: e.log10(),
    "log1p": lambda e: e.log1p(),
    "exp": lambda e: e.exp(),
    "sqrt": lambda e: e.sqrt(),
    "absolute": lambda e: e.abs(),
    "fabs": lambda e: e.abs(),
    "sin": lambda e: e.sin(),
    "cos": lambda e: e.cos(),
    "tan": lambda e: e.tan(),
    "tanh": lambda e: e.tanh(),
    "floor": lambda e: e.floor(),
    "ceil": lambda e: e.ceil(),
    "sign": lambda e: e.sign(),
    "isnan": lambda e: e.is_nan(),
    "negative": lambda e: -e,
}
_LOCK = RLock()


class Trace:
    """One run of a function: the frame that it is given, and the columns that it took out of frames."""

    def __init__(self, base: pl.LazyFrame) -> None:
        self.base = base
        self.references: dict[str, tuple[pl.LazyFrame, pl.Expr]] = {}

    def series(self, frame: pl.LazyFrame, expr: pl.Expr, name: str) -> TracedSeries:
        """A column of a frame, which stands for itself wherever it is used."""
        dtype = frame.select(expr).collect_schema().dtypes()[0]
        token = f"{REFERENCE}{len(self.references)}"
        self.references[token] = (frame, expr)
        marked = pl.lit(pl.Series(token, [None], dtype=dtype)).gather(_NOWHERE).alias(name)
        made: TracedSeries = TracedSeries.__new__(TracedSeries)
        made._pyexpr = marked._pyexpr
        made.__dict__.update(_onward=(self, frame, name, dtype))
        return made

    @contextmanager
    def running(self) -> Iterator[None]:
        """While it lasts, frames without data are collected into frames that record, and numpy's functions are
        expressions."""
        with _LOCK:
            collect, concat, ufunc = pl.LazyFrame.collect, pl.concat, pl.Expr.__array_ufunc__
            replaced: list[tuple[Any, str, Any]] = [
                (pl.LazyFrame, "collect", self._collect(collect)),
                (pl, "concat", self._concat(concat)),
                (pl.Expr, "__array_ufunc__", _ufunc(ufunc)),
            ]
            before = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
            try:
                for owner, name, new in replaced:
                    setattr(owner, name, new)
                yield
            finally:
                for owner, name, old in before:
                    setattr(owner, name, old)

    def _collect(self, collect: Callable[..., Any]) -> Callable[..., Any]:
        def collected(frame: pl.LazyFrame, *args: Any, **options: Any) -> Any:
            if self.owns(frame):
                return TracedFrame(self, frame)
            return collect(frame, *args, **options)

        return collected

    def _concat(self, concat: Callable[..., Any]) -> Callable[..., Any]:
        def concatenated(items: Any, *args: Any, **options: Any) -> Any:
            listed = list(items)
            if not any(type(item) is TracedFrame for item in listed):
                if any(isinstance(item, pl.Expr) for item in listed):
                    raise UnsupportedError(
                        "series one below the other have no form in a graph: make them columns of frames"
                    )
                return concat(listed, *args, **options)
            lazily = [item.lazy() if isinstance(item, pl.DataFrame) else item for item in map(plain, listed)]
            return TracedFrame(self, concat(lazily, *args, **options))

        return concatenated

    def owns(self, frame: pl.LazyFrame) -> bool:
        """Whether a frame is made of the one without data."""
        text = frame.explain(optimized=False)
        return SOURCE in text or REFERENCE in text


def _ufunc(original: Callable[..., Any]) -> Callable[..., Any]:
    def applied(self: pl.Expr, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        known = _UFUNCS.get(ufunc.__name__)
        if method == "__call__" and known is not None and len(inputs) == 1 and not options:
            return known(inputs[0])
        return original(self, ufunc, method, *inputs, **options)

    return applied


def plain(value: Any) -> Any:
    """An argument as Polars takes it: frames that record are LazyFrames."""
    if type(value) is TracedFrame:
        return value._lazy
    if type(value) in (list, tuple):
        return type(value)(plain(item) for item in value)
    return value


class TracedSeries(pl.Expr):
    """A column that was taken out of a frame: an expression that stands for it."""

    @property
    def name(self) -> Any:
        return self._known("name")[2]

    @property
    def dtype(self) -> pl.DataType:
        found: pl.DataType = self._known("dtype")[3]
        return found

    def to_frame(self, name: str | None = None) -> TracedFrame:
        trace, _, own, _ = self._known("to_frame")
        return TracedFrame(trace, trace.base.select(self.alias(name or own)))

    def rename(self, name: str) -> pl.Expr:
        return self.alias(name)

    def _known(self, what: str) -> Any:
        found = self.__dict__.get("_onward")
        if found is None:
            raise UnsupportedError(f"`{what}` of a series that was computed has no form in a graph")
        return found

    def __len__(self) -> int:
        raise UnsupportedError("`len` of a series is not known before the model runs: use `pl.len()`")

    def __iter__(self) -> Iterator[Any]:
        raise UnsupportedError("a loop over the values of a series has no form in a graph: use expressions")

    def __getitem__(self, _: Any) -> Any:
        raise UnsupportedError(
            "single values of a series are not known before the model runs: use `.first()` or `.get()`"
        )


class TracedGroups:
    """What `group_by` gives."""

    def __init__(self, trace: Trace, groups: Any) -> None:
        self._trace = trace
        self._groups = groups

    def __getattr__(self, name: str) -> Any:
        if name not in _GROUPS:
            raise UnsupportedError(f"`group_by(...).{name}` has no form in a graph: use `agg` with expressions")

        def method(*args: Any, **options: Any) -> Any:
            made = getattr(self._groups, name)(*map(plain, args), **{key: plain(each) for key, each in options.items()})
            return TracedFrame(self._trace, made) if isinstance(made, pl.LazyFrame) else TracedGroups(self._trace, made)

        return method

    def __iter__(self) -> Iterator[Any]:
        raise UnsupportedError("a loop over groups has no form in a graph: use `agg` with expressions")


class TracedFrame:
    """Looks like a DataFrame, has no data, and records what is done to it."""

    _trace: Trace
    _lazy: pl.LazyFrame

    def __init__(self, trace: Trace, frame: pl.LazyFrame) -> None:
        self.__dict__.update(_trace=trace, _lazy=frame)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return pl.DataFrame

    def __getattr__(self, name: str) -> Any:
        if name not in _FORWARDED:
            if name.startswith("__"):
                raise AttributeError(name)
            instead = _INSTEAD.get(name, "expressions")
            raise UnsupportedError(
                f"`DataFrame.{name}` needs rows of the frame, or has no form in a graph: use {instead}"
            )

        def method(*args: Any, **options: Any) -> Any:
            given = {key: _lazily(plain(each)) for key, each in options.items()}
            return self._made(getattr(self._lazy, name)(*(_lazily(plain(each)) for each in args), **given))

        return method

    def _made(self, frame: pl.LazyFrame) -> TracedFrame:
        return TracedFrame(self._trace, frame)

    @property
    def schema(self) -> pl.Schema:
        return self._lazy.collect_schema()

    def collect_schema(self) -> pl.Schema:
        return self._lazy.collect_schema()

    @property
    def columns(self) -> list[str]:
        return self.schema.names()

    @property
    def dtypes(self) -> list[pl.DataType]:
        return self.schema.dtypes()

    @property
    def width(self) -> int:
        return self.schema.len()

    def lazy(self) -> pl.LazyFrame:
        return self._lazy

    def clone(self) -> TracedFrame:
        return self._made(self._lazy)

    rechunk = clone

    def pipe(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return function(self, *args, **options)

    def group_by(self, *by: Any, **options: Any) -> TracedGroups:
        return TracedGroups(self._trace, self._lazy.group_by(*by, **options))

    def get_column(self, name: str, **_: Any) -> TracedSeries:
        if name not in self.columns:
            raise pl.exceptions.ColumnNotFoundError(name)
        return self._trace.series(self._lazy, pl.col(name), name)

    def get_columns(self) -> list[TracedSeries]:
        return [self.get_column(name) for name in self.columns]

    def to_series(self, index: int = 0) -> TracedSeries:
        return self.get_column(self.columns[index])

    def iter_columns(self) -> Iterator[TracedSeries]:
        return iter(self.get_columns())

    def hstack(self, columns: Any, **_: Any) -> TracedFrame:
        return self.with_columns(columns.get_columns() if type(columns) is TracedFrame else columns)  # type: ignore[no-any-return]

    def vstack(self, other: Any, **_: Any) -> TracedFrame:
        return self._made(pl.concat([self._lazy, _lazily(plain(other))]))

    def sum_horizontal(self, *, ignore_nulls: bool = True) -> TracedSeries:
        return self._across(pl.sum_horizontal(pl.all(), ignore_nulls=ignore_nulls), "sum")

    def mean_horizontal(self, *, ignore_nulls: bool = True) -> TracedSeries:
        return self._across(pl.mean_horizontal(pl.all(), ignore_nulls=ignore_nulls), "mean")

    def min_horizontal(self) -> TracedSeries:
        return self._across(pl.min_horizontal(pl.all()), "min")

    def max_horizontal(self) -> TracedSeries:
        return self._across(pl.max_horizontal(pl.all()), "max")

    def _across(self, expr: pl.Expr, name: str) -> TracedSeries:
        return self._trace.series(self._lazy, expr.alias(name), name)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.get_column(key)
        if isinstance(key, list) and all(isinstance(item, str) for item in key):
            return self.select(key)
        if isinstance(key, slice) and key.step in (None, 1):
            start = key.start or 0
            if key.stop is None:
                return self.slice(start)
            if start >= 0 and key.stop >= 0:
                return self.slice(start, max(key.stop - start, 0))
        raise UnsupportedError(
            "rows by their number have no form in a graph, but for `df[:n]`: use `filter` or `slice`"
        )

    def __contains__(self, key: str) -> bool:
        return key in self.columns

    def __len__(self) -> int:
        raise UnsupportedError("the number of rows is not known before the model runs: use `pl.len()`")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get_columns())

    def __bool__(self) -> bool:
        raise UnsupportedError("whether a frame has rows is not known before the model runs")

    def __repr__(self) -> str:
        return f"a frame of {', '.join(self.columns)} without data"


def _lazily(value: Any) -> Any:
    """A frame with data, as the right side of a join, as a LazyFrame."""
    return value.lazy() if isinstance(value, pl.DataFrame) else value


def plan_of(trace: Trace, result: Any) -> tuple[pl.LazyFrame, bool]:
    """The plan of what a function returned, and whether that is a series."""
    if type(result) is TracedFrame:
        return result._lazy, False
    if isinstance(result, pl.LazyFrame):
        return result, False
    if isinstance(result, pl.Expr):
        return trace.base.select(result), True
    if isinstance(result, pl.DataFrame | pl.Series):
        raise UnsupportedError("the function returns a frame that does not depend on the one it is given")
    raise UnsupportedError(
        f"the function returns {type(result).__name__}, not a DataFrame, a LazyFrame, a Series or an expression"
    )
