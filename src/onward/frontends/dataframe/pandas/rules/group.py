"""Groups: groupby with its aggregates, transforms and functions of groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import FLOAT64, INT64, ColumnType
from onward.frontends.dataframe.columns.column import Column, Rows, constant, taken
from onward.frontends.dataframe.pandas.dispatch import Call, Trace, rule
from onward.frontends.dataframe.pandas.proxies import Deferred, Frame, Series, Traced, framed, joined
from onward.frontends.dataframe.pandas.rules import running
from onward.frontends.dataframe.pandas.rules.category import codes_of
from onward.frontends.dataframe.pandas.rules.order import ranked, sort_key
from onward.frontends.dataframe.pandas.values import beside, widened
from onward.frontends.dataframe.tensors.rows import groups as grouped
from onward.frontends.dataframe.tensors.rows import order
from onward.frontends.dataframe.tensors.rows.keys import Groups, group_numbers, group_rows, known_groups, spread
from onward.frontends.dataframe.tensors.rows.running import running_count
from onward.graph.build import Tensor
from onward.hub.wording import quote

AGGREGATES = ("sum", "mean", "min", "max", "count", "std", "var", "median", "nunique", "first", "last", "any", "all",
              "prod")  # fmt: skip


class Grouped(Traced):
    """What groupby gives: columns whose rows belong to groups."""

    __slots__ = ("as_index", "frame", "groups", "has_more", "keys", "rows", "selection")
    kind = "GroupBy"

    def __init__(
        self, trace: Trace, real: Any, frame: Frame, keys: list[tuple[Any, Column]], groups: Groups, as_index: bool
    ) -> None:
        super().__init__(trace, real)
        self.frame, self.keys, self.groups, self.as_index = frame, keys, groups, as_index
        self.selection: Any = None
        self.has_more = False
        """Whether pandas has groups of categories that no row has, and that are not here."""
        op = trace.op
        self.rows = Rows(op.names.value("groups"), lambda: groups.count)
        trace.labels[self.rows] = [(name, self._label(column)) for name, column in keys]

    def _label(self, column: Column) -> Column:
        """What a key is in each group: of all categories, these."""
        if not self.groups.may_be_empty:
            return self.at_first(column)
        return constant(column.op, list(column.type.categories or ()), column.type, self.rows)

    def at_first(self, column: Column) -> Column:
        """The value in the first row of each group."""
        if self.groups.may_be_empty:
            raise UnsupportedError("a group of a category that no row has gives nothing: use observed=True")
        return taken(column, self.groups.first, self.rows)

    def __getitem__(self, key: Any) -> Grouped:
        return self._with(self.real[key], list(key) if isinstance(key, list | tuple) else key)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.frame and f"GroupBy.{name}" not in _own_names():
            return self[name]
        return super().__getattr__(name)

    def _with(self, real: Any, selection: Any) -> Grouped:
        made = Grouped.__new__(Grouped)
        Traced.__init__(made, self.trace, real)
        made.frame, made.keys, made.groups, made.as_index = self.frame, self.keys, self.groups, self.as_index
        made.rows, made.selection, made.has_more = self.rows, selection, self.has_more
        return made

    @property
    def is_series(self) -> bool:
        return self.selection is not None and not isinstance(self.selection, list)

    def names(self) -> list[Any]:
        if self.selection is not None:
            return self.selection if isinstance(self.selection, list) else [self.selection]
        keys = {name for name, _ in self.keys}
        return [name for name in self.frame if name not in keys]

    def columns(self) -> dict[Any, Column]:
        return {name: self.frame.column(name).expanded() for name in self.names()}


def _own_names() -> Any:
    from onward.frontends.dataframe.pandas.dispatch import RULES

    return RULES


@rule("DataFrame.groupby")
def groupby(
    call: Call,
    frame: Frame,
    by: Any = None,
    *,
    level: Any = None,
    as_index: bool = True,
    sort: bool = True,
    group_keys: bool = True,
    observed: bool = True,
    dropna: bool = True,
) -> Grouped:
    if level is not None or by is None:
        raise call.refuse("groups are made by columns")
    parts = list(by) if isinstance(by, list | tuple) else [by]
    keys = [_key(call, frame, part) for part in parts]
    of_categories = [column for _, column in keys if column.type.categories is not None]
    if of_categories and not observed and len(keys) == 1 and sort and dropna:
        codes = codes_of(of_categories[0].expanded()).value
        groups = known_groups(call.op.Reshape(codes, call.op.ints([-1])), len(of_categories[0].type.categories or ()))
    else:
        groups = group_rows([sort_key(column) for _, column in keys], "key" if sort else "appearance", dropna)
    real = frame.real.groupby(
        [part.real if isinstance(part, Series) else part for part in parts] if len(parts) > 1 or isinstance(by, list)
        else parts[0].real if isinstance(parts[0], Series) else parts[0],
        as_index=as_index, sort=sort, observed=observed, dropna=dropna, group_keys=group_keys,
    )  # fmt: skip
    made = Grouped(call.trace, real, frame, keys, groups, as_index)
    made.has_more = bool(of_categories) and not observed and not groups.may_be_empty
    return made


def _key(call: Call, frame: Frame, part: Any) -> tuple[Any, Column]:
    if isinstance(part, Series):
        anchor = frame.column(next(iter(frame)))
        _, column = beside(call, anchor, part.column)
        return ("index" if part.name is None else part.name), column
    if isinstance(part, str) and part not in frame:
        raise call.refuse(f"the frame has no column {quote(part)}")
    if callable(part) or not isinstance(part, str | int):
        raise call.refuse("groups are made by columns, not by functions")
    return part, frame.column(part)


@rule("Series.groupby")
def series_groupby(call: Call, x: Series, by: Any = None, **options: Any) -> Grouped:
    name = "value" if x.name is None else x.name
    frame = Frame(x.trace, x.real.to_frame(name), {name: Deferred(x.column)}, x.column.rows)
    return frame.groupby(by, **options)[name]  # type: ignore[no-any-return]


_OF_MASKED = ("sum", "prod", "mean", "std", "var", "median", "min", "max")
_OF_NUMBERS = ("sum", "mean", "std", "var", "median", "any", "all", "prod", "quantile")


def aggregated(
    call: Call, name: str, column: Column, groups: Groups, **options: Any
) -> tuple[Tensor, ColumnType, Tensor | None]:
    """A value for each group, its type, and where a group has none."""
    op = column.op
    type, missing = column.type, column.missing()
    if type.categories is not None and name not in ("count", "nunique", "first", "last"):
        raise call.refuse(f"{name} is not converted for categories")
    if type.masked and name not in ("count", "nunique", "size") and not (type.is_number and name in _OF_MASKED):
        raise call.refuse(f"{name} within groups is not converted for {type}: convert with astype first")
    if (type.is_text or type.meaning) and name in _OF_NUMBERS:
        raise call.refuse(f"{name} within groups is not converted for {type}")
    if groups.may_be_empty and type.is_text and name in ("min", "max"):
        raise call.refuse(f"{name} of text in a category that no row has: use observed=True")
    valid = None if missing is None else op.Not(missing)
    if name == "size":
        return grouped.sizes(groups), INT64, None
    given = column.value
    if name == "mean" and type.is_float and not type.masked and call.name.startswith("GroupBy."):
        given, type = given.cast(FLOAT64.dtype), FLOAT64  # Also of float32; on columns by themselves it is not so.
    if name == "quantile":
        return grouped.quantiles(groups, given, options["q"], options["interpolation"], valid), FLOAT64, None
    value = grouped.aggregate_named(name)(groups, given, valid, **options)
    found = _result_type(name, type, value)
    value = value.cast(found.dtype)
    empty = None
    least = options.get("ddof", 1) if name in ("std", "var") else 0
    may_be_empty = valid is not None or groups.may_be_empty
    if name not in ("sum", "prod", "count", "nunique", "any", "all") and may_be_empty and not found.nan_is_null:
        empty = op.LessOrEqual(grouped.counts(groups, column.value, valid), op.index(least))
    return value, found, empty


def _result_type(name: str, type: ColumnType, value: Tensor) -> ColumnType:
    if name in ("count", "nunique"):
        return replace(INT64, masked=name == "count" and type.masked and not type.is_text)
    if name in ("mean", "std", "var", "median"):
        return type if type.is_float else replace(FLOAT64, masked=type.masked)
    if name in ("min", "max", "first", "last"):
        return type
    return type if type.is_float and name in ("sum", "prod") else ColumnType(value.dtype, masked=type.masked)


def of_groups(call: Call, x: Grouped, name: str, column: Column, **options: Any) -> Column:
    value, type, empty = aggregated(call, name, column, x.groups, **options)
    return Column(value, type, x.rows).with_null(empty)


def of_rows(call: Call, name: str, column: Column, groups: Groups, **options: Any) -> Column:
    """The value of its group for each row."""
    value, type, empty = aggregated(call, name, column.expanded(), groups, **options)
    made = Column(spread(groups, value), type, column.rows)
    if empty is not None:
        made = made.with_null(spread(groups, empty))
    return made if groups.dropped is None else widened(made.with_null(column.op.unsqueeze(groups.dropped, [1])))


def _declare() -> None:
    for name in (*AGGREGATES, "size"):

        def statistic(call: Call, x: Grouped, *, name: str = name, **options: Any) -> Any:
            options = _options(call, name, options)
            if name == "size":
                return _sizes(call, x)
            made = {label: of_groups(call, x, name, column, **options) for label, column in x.columns().items()}
            return result(call, x, made)

        rule(f"GroupBy.{name}")(statistic)


def _options(call: Call, name: str, options: dict[str, Any]) -> dict[str, Any]:
    plain = {"numeric_only": (False, None), "min_count": (0, -1), "engine": (None,), "skipna": (True,)}
    left = {key: value for key, value in options.items() if value not in plain.get(key, ())}
    if set(left) - {"ddof", "min_count"} or ("ddof" in left and name not in ("std", "var")):
        raise call.refuse(f"{sorted(left)[0]} cannot be converted")
    return left


_declare()


def _sizes(call: Call, x: Grouped) -> Any:
    column = Column(grouped.sizes(x.groups), INT64, x.rows)
    if (x.as_index or x.is_series) and not x.has_more:
        return column
    return result(call, x, {"size": column})


def result(call: Call, x: Grouped, made: dict[Any, Column], real: Any = None) -> Any:
    """Columns of groups as pandas gives them: by their keys, or with the keys as columns."""
    if x.has_more:
        raise call.refuse(
            "groups of categories that no row has are converted for a single key, sorted: use observed=True"
        )
    real = call.real if real is None else real
    if x.is_series and x.as_index and len(made) == 1 and not hasattr(real, "columns"):
        return joined(call.trace, next(iter(made.values())), real)
    if x.as_index:
        return framed(call.trace, made, real)
    rows = Rows(x.rows.name, lambda: x.rows.count)
    call.trace.unique[rows] = [name for name, _ in x.keys]
    columns = dict(call.trace.labels[x.rows]) | made
    moved = {name: Column(c.value, c.type, rows, c.null) for name, c in columns.items()}
    return framed(call.trace, {name: moved[name] for name in real.columns}, real)


@rule("GroupBy.quantile")
def quantile(call: Call, x: Grouped, q: float = 0.5, interpolation: Any = "linear") -> Any:
    options = {"q": float(q), "interpolation": interpolation}
    made = {name: of_groups(call, x, "quantile", column, **options) for name, column in x.columns().items()}
    return result(call, x, made)


@rule("GroupBy.agg", "GroupBy.aggregate")
def agg(call: Call, x: Grouped, func: Any = None, **named: Any) -> Any:
    real = call.real
    if isinstance(func, str):
        return getattr(x, func)()
    made: dict[Any, Column] = {}
    if func is None:
        for name, wanted in named.items():
            label, how = (wanted[0], wanted[1]) if isinstance(wanted, tuple) else (x.selection, wanted)
            made[name] = _asked(call, x, label, how)
    elif isinstance(func, dict):
        for label, how in func.items():
            if any(isinstance(other, list) for other in func.values()):
                for one in how if isinstance(how, list) else [how]:
                    made[label, one if isinstance(one, str) else one.__name__] = _asked(call, x, label, one)
            else:
                made[label] = _asked(call, x, label, how)
    elif isinstance(func, list):
        if not x.is_series:
            raise call.refuse("several aggregates of several columns: name them, agg(name=('column', 'mean'))")
        for how in func:
            made[how if isinstance(how, str) else how.__name__] = _asked(call, x, x.selection, how)
    else:
        made = {label: _asked(call, x, label, func) for label in x.names()}
    if x.is_series and len(made) == 1 and not hasattr(real, "columns"):
        return joined(call.trace, next(iter(made.values())), real)
    return result(call, x, made, real)


def _asked(call: Call, x: Grouped, label: Any, how: Any) -> Column:
    column = x.frame.column(label).expanded()
    if isinstance(how, str):
        return of_groups(call, x, how, column)
    name = _NUMPY.get(getattr(how, "__name__", ""))
    if name is not None and getattr(how, "__module__", "").startswith("numpy"):
        return of_groups(call, x, name, column, **({"ddof": 1} if name in ("std", "var") else {}))
    if how in (len, sum, min, max):
        return of_groups(call, x, {len: "size"}.get(how, how.__name__), column)
    with within(call.trace, x):
        found = how(x.frame.series(label))
    return x.at_first(_column(call, found, x.frame.rows))


_NUMPY = {"mean": "mean", "sum": "sum", "min": "min", "max": "max"}


def _column(call: Call, found: Any, rows: Rows) -> Column:
    from onward.frontends.dataframe.pandas.values import column_of

    column = column_of(call, found)
    if not rows.takes(column.rows):
        raise call.refuse("a function of groups gives a number for each group, computed from its columns")
    return column


@contextmanager
def within(trace: Trace, x: Grouped) -> Iterator[None]:
    """While it lasts, what is computed of the rows of a frame is computed within its groups."""
    if trace.within is not None:
        raise UnsupportedError("groups within groups cannot be converted")
    trace.within = (x.groups, x.frame.rows)
    try:
        yield
    finally:
        trace.within = None


@rule("GroupBy.transform")
def transform(call: Call, x: Grouped, func: Any, *args: Any, **options: Any) -> Any:
    if func == "quantile":
        return x.transform(lambda column: column.quantile(*args, **options))
    if args or options:
        raise call.refuse("arguments of the function cannot be converted: use a lambda")
    made: dict[Any, Column] = {}
    for label, column in x.columns().items():
        if isinstance(func, str) and func in (*AGGREGATES, "size"):
            made[label] = of_rows(call, func, column, x.groups)
        elif isinstance(func, str):
            return getattr(x, func)()
        else:
            name = _NUMPY.get(getattr(func, "__name__", ""))
            if name is not None and getattr(func, "__module__", "").startswith("numpy"):
                made[label] = of_rows(call, name, column, x.groups)
                continue
            with within(call.trace, x):
                found = func(x.frame.series(label))
            part = _column(call, found, x.frame.rows)
            dropped = x.groups.dropped
            made[label] = part if dropped is None else widened(part.with_null(call.op.unsqueeze(dropped, [1])))
    return next(iter(made.values())) if x.is_series else framed(call.trace, made, call.real)


@rule("GroupBy.apply")
def apply(call: Call, x: Grouped, func: Any, *, include_groups: bool = False) -> Any:
    with within(call.trace, x):
        given = x.frame.series(x.selection) if x.is_series else x.frame[x.names()]
        found = func(given)
    if isinstance(found, Frame) or not hasattr(call.real, "index") or hasattr(call.real, "columns"):
        raise call.refuse("it is converted where the function gives one number for each group: use transform or agg")
    if len(call.real) != x.real.ngroups or list(call.real.index.names) != [name for name, _ in x.keys]:
        raise call.refuse("it is converted where the function gives one number for each group: use transform or agg")
    return result(call, x, {"value": x.at_first(_column(call, found, x.frame.rows))})


@rule("GroupBy.filter")
def filter_groups(call: Call, x: Grouped, func: Any, dropna: bool = True) -> Any:
    with within(call.trace, x):
        found = func(x.frame)
    column = _column(call, found, x.frame.rows)
    if x.groups.dropped is not None:
        column = Column(
            call.op.And(column.value, call.op.Not(call.op.unsqueeze(x.groups.dropped, [1]))), column.type, column.rows
        )
    from onward.frontends.dataframe.pandas.rules.selection import at_rows, chosen_rows

    positions, rows = chosen_rows(column)
    return at_rows(x.frame, positions, rows, call.real)


def _declare_running() -> None:
    for name in ("cumsum", "cummax", "cummin", "cumprod"):

        def so_far(call: Call, x: Grouped, name: str = name) -> Any:
            return per_row(call, x, lambda c: running.accumulated(call, name, c, x.groups))

        rule(f"GroupBy.{name}")(so_far)


def per_row(call: Call, x: Grouped, function: Any) -> Any:
    made = {label: function(column) for label, column in x.columns().items()}
    return next(iter(made.values())) if x.is_series else framed(call.trace, made, call.real)


_declare_running()


@rule("GroupBy.shift")
def shift(call: Call, x: Grouped, periods: int = 1, fill_value: Any = None) -> Any:
    return per_row(call, x, lambda c: running.shifted(call, c, periods, fill_value, x.groups))


@rule("GroupBy.diff")
def diff(call: Call, x: Grouped, periods: int = 1) -> Any:
    if any(column.type.is_time for column in x.columns().values()):
        return x.frame.series(x.selection) - x.shift(periods)
    return per_row(call, x, lambda c: running.difference(call, c, periods, x.groups))


@rule("GroupBy.pct_change")
def pct_change(call: Call, x: Grouped, periods: int = 1, fill_method: Any = None) -> Any:
    return per_row(call, x, lambda c: running.change(call, c, periods, x.groups))


@rule("GroupBy.ffill", "GroupBy.bfill")
def fill(call: Call, x: Grouped, limit: int | None = None) -> Any:
    return per_row(call, x, lambda c: running.filled(call, c, call.name.endswith("bfill"), limit, x.groups))


@rule("GroupBy.rank")
def rank(
    call: Call, x: Grouped, method: Any = "average", ascending: bool = True, na_option: str = "keep", pct: bool = False
) -> Any:
    def ranks(column: Column) -> Column:
        key = sort_key(column, ascending=ascending, nulls_last=na_option != "top")
        made = order.rank(key, method, pct, na_option != "keep", x.groups)
        return ranked(column, made, keeps_null=na_option == "keep")

    return per_row(call, x, ranks)


@rule("GroupBy.cumcount")
def cumcount(call: Call, x: Grouped, ascending: bool = True) -> Column:
    number = running_count(x.groups)
    if not ascending:
        number = spread(x.groups, grouped.sizes(x.groups)) - 1 - number
    return _counted(call, x, number)


@rule("GroupBy.ngroup")
def ngroup(call: Call, x: Grouped, ascending: bool = True) -> Column:
    if not ascending:
        raise call.refuse("ascending=False cannot be converted")
    if x.has_more or x.groups.may_be_empty:
        raise call.refuse("numbers of groups are converted for those that a row has: use observed=True")
    return _counted(call, x, group_numbers(x.groups))


def _counted(call: Call, x: Grouped, number: Tensor) -> Column:
    if x.groups.dropped is not None:
        return Column(number, INT64, x.frame.rows).cast(FLOAT64).with_null(call.op.unsqueeze(x.groups.dropped, [1]))
    return Column(number, INT64, x.frame.rows)


@rule("GroupBy.head", "GroupBy.tail")
def head(call: Call, x: Grouped, n: int = 5) -> Any:
    place = x.cumcount(ascending=call.name.endswith("head"))
    if x.groups.dropped is not None:
        place = joined(call.trace, place.column.with_null(call.op.unsqueeze(x.groups.dropped, [1])), place.real)
    part = x.frame[x.names()] if x.is_series is False and x.selection is not None else x.frame
    made = part[place < n]
    return made[x.selection] if x.is_series else made


@rule("GroupBy.nth")
def nth(call: Call, x: Grouped, n: int) -> Any:
    made = x.frame[x.cumcount(ascending=n >= 0) == (n if n >= 0 else -n - 1)]
    return made[x.selection] if x.is_series else made


@rule("GroupBy.rolling")
def group_rolling(call: Call, x: Grouped, window: Any, min_periods: Any = None, center: bool = False) -> Any:
    raise call.refuse("its rows stand by groups: use transform(lambda s: s.rolling(…).mean()), which keeps their order")


@rule("GroupBy.expanding")
def group_expanding(call: Call, x: Grouped, min_periods: int = 1) -> Any:
    raise call.refuse(
        "its rows stand by groups: use transform(lambda s: s.expanding().mean()), which keeps their order"
    )


@rule("GroupBy.idxmax", "GroupBy.idxmin")
def idxmax(call: Call, x: Grouped) -> Any:
    raise call.refuse("labels of rows are not followed: use transform('max') and compare")


@rule("part: aggregate of groups")
def aggregate_of_groups(call: Call, name: str, column: Column, groups: Groups, options: dict[str, Any]) -> Column:
    """Of a column of a function of groups: the value of its group for each row."""
    return of_rows(call, name, column, groups, **options)
