"""One number for a column, for a frame one for each; or for each row, across columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce as fold
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.types import FLOAT64, INT64, ColumnType
from onward.frontends.dataframe.columns.column import ONE, Column, Rows, guarded, positions_of
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Scalar, Series
from onward.frontends.dataframe.pandas.values import is_missing
from onward.frontends.dataframe.tensors import across_columns, numbers
from onward.frontends.dataframe.tensors.rows import stats
from onward.graph.build import Builder, Tensor

AGGREGATES = [
    "sum",
    "mean",
    "min",
    "max",
    "std",
    "var",
    "median",
    "count",
    "nunique",
    "any",
    "all",
    "prod",
    "size",
    "skew",
    "kurt",
    "kurtosis",
    "sem",
    "first",
    "last",
    "quantile",
    "product",
]


def aggregate(call: Call, name: str, x: Series, **options: Any) -> Any:
    """A number of a column; a constant where the user froze it."""
    key = f"{x.name}.{name}"
    if key in call.trace.freeze:
        call.trace.frozen.add(key)
        real = call.real
        if is_missing(real):
            raise call.refuse(f"{key} is missing in the sample: there is nothing to freeze")
        return call.real
    groups = call.trace.groups_of(x.column)
    if groups is not None:
        return call.part("part: aggregate of groups", name, x.column, groups, options)
    return reduced(call, name, x.column, options)


_MASKED = ("sum", "prod", "product", "mean", "std", "var", "median", "min", "max")
"""What is computed of columns that have NA; it is NA where there are too few rows."""
_STATISTICS: dict[str, Callable[..., Tensor]] = {
    "sum": stats.total,
    "prod": stats.product,
    "product": stats.product,
    "mean": stats.mean,
    "min": stats.smallest,
    "max": stats.largest,
    "std": stats.deviation,
    "var": stats.variance,
    "median": stats.median,
    "nunique": stats.distinct_count,
    "any": stats.any_true,
    "all": stats.all_true,
    "skew": stats.skewness,
    "kurt": stats.kurtosis,
    "kurtosis": stats.kurtosis,
}


def reduced(call: Call, name: str, column: Column, options: dict[str, Any]) -> Column:
    """Of all rows that are there."""
    missing = column.missing()
    valid = None if missing is None else column.op.Not(missing)
    column = column.expanded()
    value = column.value
    if name in ("count", "size"):
        return Column(stats.count(value, valid if name == "count" else None), INT64, ONE)
    if column.type.is_time and name in ("sum", "mean", "median", "std"):
        return _of_times(call, name, column, valid, options)
    type = result_type(call, name, column)
    if column.type.is_text and name not in ("nunique", "min", "max"):
        raise call.refuse("it is not converted for text")
    if name == "quantile":
        made = stats.quantile(value.cast(ir.DataType.DOUBLE), options["q"], options["interpolation"], valid)
    else:
        made = _STATISTICS[name](value, valid, **options)
    if column.type.is_int and type.is_float and name in ("min", "max"):
        return _whole_or_nothing(made, stats.count(value, valid))
    result = Column(made.cast(type.dtype), type, ONE)
    if type.masked:
        least = column.op.index(options.get("ddof", 1) if name in ("std", "var") else 0)
        return result.with_null(column.op.LessOrEqual(stats.count(value, valid), least))
    if name in ("min", "max") and (type.is_time or type.is_text):
        nothing = column.op.Equal(stats.count(value, valid), column.op.index(0))
        result = result.with_null(nothing)
    return result


def _whole_or_nothing(value: Tensor, count: Tensor) -> Column:
    """An integer that is there only if there are rows, and so a float in pandas; what that would round fails."""
    op = value.op
    made = Column(value.cast(ir.DataType.DOUBLE), FLOAT64, ONE).with_null(op.Equal(count, op.index(0)))
    if value.dtype not in (ir.DataType.INT64, ir.DataType.UINT64):
        return made
    large = op.Greater(value, op.like(2**53, value))
    if value.dtype == ir.DataType.INT64:
        large = op.Or(large, op.Less(value, op.like(-(2**53), value)))
    return guarded(made, large, "the largest or smallest of some rows is an integer beyond 2**53")


def _of_times(call: Call, name: str, column: Column, valid: Tensor | None, options: dict[str, Any]) -> Column:
    """Computed in floats, without the fraction of a tick; of sums pandas knows those of durations only."""
    op, type = column.op, column.type
    if name == "sum":
        if type.meaning != "duration" or options:
            raise call.refuse(f"it is not converted for {type}")
        made = Column(stats.total(column.value, valid), type, ONE)
        size = op.Abs(stats.total(column.value.cast(ir.DataType.DOUBLE), valid))
        return guarded(made, size >= 2.0**63, "a sum of durations is out of range")
    value = _STATISTICS[name](column.value, valid, **options)
    lost = op.IsNaN(value)
    ticks = op.Where(lost, op.like(0.0, value), value).cast(ir.DataType.INT64)
    return Column(ticks, replace(type, meaning="duration") if name == "std" else type, ONE, lost)


def result_type(call: Call, name: str, column: Column) -> ColumnType:
    """Of the numbers that pandas gives for such a column."""
    type = column.type
    if name in ("count", "size", "nunique"):
        return INT64
    if name in ("any", "all"):
        return ColumnType(ir.DataType.BOOL)
    if type.masked and (type.is_text or name not in _MASKED):
        raise call.refuse(f"it is not converted for {type}: convert with astype first")
    if type.masked and name in ("mean", "std", "var", "median"):
        return replace(type if type.is_float else FLOAT64, masked=True)
    if type.masked and name in ("min", "max"):
        return type
    type = replace(type, masked=False)
    if name in ("sum", "prod", "product"):
        if type.is_bool or type.is_int:
            unsigned = not type.is_bool and not type.dtype.is_signed()
            return ColumnType(ir.DataType.UINT64) if unsigned else INT64
        return type
    if name in ("min", "max", "first", "last"):
        # Of no rows there is none: NaN, which only floats have. Beside all rows there is nothing then to see it.
        is_all = column.rows.sequence is call.trace.table.rows
        return FLOAT64 if type.is_int and not is_all else type
    if type.is_time:
        raise call.refuse(f"it is not converted for {type}")
    return type if type.is_float and name != "quantile" else FLOAT64


def is_array(x: Series) -> bool:
    """Whether it is an array of numpy, to which NaN is a number as others are."""
    return x.column.rows.is_array and not x.column.type.masked


def of_array(call: Call, name: str, x: Series, options: dict[str, Any]) -> Any:
    """As numpy has it: deviations of all rows; of arrays, and for what columns have no method, NaN if one is NaN."""
    if name in ("std", "var"):
        options = {"ddof": 0} | options
    is_method = name not in ("median", "quantile") and not is_array(x)
    if not is_method and x.column.type.is_float and call.trace.groups_of(x.column) is not None:
        raise call.refuse("within a group numpy gives NaN if one is NaN: use the method of the column")
    made = aggregate(call, name, x, **options)
    if is_method or not x.column.type.is_float or name in ("any", "all") or not isinstance(made, Column):
        return made
    missing = x.column.missing()
    assert missing is not None
    return made.with_null(stats.any_true(missing))


def _numpy_of_frame(call: Call, name: str, frame: Frame, axis: Any, options: dict[str, Any]) -> Any:
    if axis != 1 or name == "median":
        raise call.refuse("it is converted for columns, and for frames with axis=1: use the method of the frame")
    options = {key: value for key, value in options.items() if not _is_default(key, value)}
    return across(call, name, frame, **({"ddof": 0} | options if name in ("std", "var") else options))


def _declare() -> None:
    for name in AGGREGATES:
        if name in ("quantile", "first", "last", "sem"):
            continue

        def of_column(
            call: Call,
            x: Series,
            *,
            axis: Any = 0,
            skipna: bool = True,
            dropna: bool = True,
            name: str = name,
            **options: Any,
        ) -> Any:
            if isinstance(x, Frame):
                return _numpy_of_frame(call, name, x, axis, options)
            if not skipna:
                raise call.refuse("skipna=False cannot be converted: check with isna().any()")
            options = {key: value for key, value in options.items() if not _is_default(key, value)}
            if set(options) - {"ddof", "min_count"}:
                raise call.refuse(f"{sorted(options)[0]} cannot be converted")
            if name == "nunique" and not dropna:
                return x.nunique() + x.isna().any().astype("int64")
            if is_array(x) or call.name.startswith("numpy."):
                return of_array(call, name, x, options)
            return aggregate(call, name, x, **options)

        rule(f"Series.{name}", *([f"numpy.{name}"] if name in _NUMPY else []))(of_column)


_NUMPY = ("sum", "mean", "min", "max", "std", "var", "median", "any", "all", "prod")
_DEFAULTS = {"numeric_only": (False, None), "min_count": (0, -1), "bool_only": (False, None)}


def _is_default(key: str, value: Any) -> bool:
    return value in _DEFAULTS.get(key, ()) or (value is None and key in ("out", "dtype"))


_declare()


@rule("numpy.amax", "numpy.nanmax")
def amax(call: Call, x: Series) -> Any:
    return aggregate(call, "max", x) if call.name.endswith("nanmax") else of_array(call, "max", x, {})


@rule("numpy.amin", "numpy.nanmin")
def amin(call: Call, x: Series) -> Any:
    return aggregate(call, "min", x) if call.name.endswith("nanmin") else of_array(call, "min", x, {})


@rule("numpy.nanmean")
def nanmean(call: Call, x: Series) -> Any:
    return aggregate(call, "mean", x)


@rule("numpy.nanmedian")
def nanmedian(call: Call, x: Series) -> Any:
    return aggregate(call, "median", x)


@rule("numpy.nansum")
def nansum(call: Call, x: Series) -> Any:
    return aggregate(call, "sum", x)


@rule("numpy.nanstd")
def nanstd(call: Call, x: Series, ddof: int = 0) -> Any:
    return aggregate(call, "std", x, ddof=ddof)


@rule("Series.quantile", "numpy.percentile", "numpy.quantile", "numpy.nanpercentile", "numpy.nanquantile")
def quantile(call: Call, x: Series, q: Any = 0.5, interpolation: str = "linear") -> Any:
    if hasattr(q, "__iter__"):
        shares = list(q)
        if call.name.startswith("numpy."):
            function = getattr(np, call.name.removeprefix("numpy."))
            return [function(x, share) for share in shares]
        made = {share: x.quantile(share, interpolation) for share in shares}
        return call.part("part: numbers", made)
    if call.name.endswith("percentile"):
        q = q / 100
    options = {"q": float(q), "interpolation": interpolation}
    if call.name in ("numpy.percentile", "numpy.quantile"):
        return of_array(call, "quantile", x, options)
    return aggregate(call, "quantile", x, **options)


@rule("Series.agg", "Series.aggregate")
def agg(call: Call, x: Series, func: Any) -> Any:
    if isinstance(func, str):
        return getattr(x, func)()
    if callable(func):
        return func(x)
    raise call.refuse("several numbers at once: ask for one after the other")


@rule("Series.sem")
def sem(call: Call, x: Series, ddof: int = 1) -> Any:
    return x.std(ddof=ddof) / np.sqrt(x.count().astype("float64"))


@rule("Scalar.astype")
def scalar_astype(call: Call, x: Scalar, dtype: Any) -> Any:
    column = x.column.cast(ColumnType(ir.DataType.from_numpy(np.dtype(dtype))))
    return Scalar(x.trace, np.dtype(dtype).type(x.real), column)


@rule("Scalar.item")
def item(call: Call, x: Scalar) -> Any:
    return x


@rule("len")
def length(call: Call, x: Any) -> Any:
    rows = x.rows if isinstance(x, Frame) else x.column.rows
    groups = call.trace.within
    if groups is not None and rows is groups[1]:
        return call.part(
            "part: aggregate of groups", "size", x.column if isinstance(x, Series) else _any(x), groups[0], {}
        )
    return count_of_rows(call, rows, len(x.real))


def _any(frame: Frame) -> Column:
    return frame.column(next(iter(frame)))


@rule("numpy.arange")
def arange(call: Call, *numbers: Any) -> Column:
    """The numbers of rows, where there are so many: np.arange(len(df)), np.arange(1, len(df) + 1)."""
    start, stop = (0, *numbers) if len(numbers) == 1 else numbers[:2]
    if len(numbers) > 2 or not isinstance(start, int) or not isinstance(stop, Scalar):
        raise call.refuse("it is converted for the numbers of all rows: np.arange(len(df))")
    for count, rows in call.trace.counts:
        total = stop.column.value.value
        made = total.producer()
        added = made.inputs if made is not None and made.op_type == "Add" else ()
        steps = [value.const_value for value in added if value is not None and value.const_value is not None]
        more = 0 if total is count else int(steps[0].numpy().reshape(-1)[0]) if count in added and steps else None
        if more == start:
            column = Column(positions_of(call.op, rows), INT64, rows.unlabelled())
            return column.of(column.value + start) if start else column
    raise call.refuse("it has not as many numbers as a frame has rows: use np.arange(len(df))")


def count_of_rows(call: Call, rows: Rows, real: int) -> Scalar:
    value = call.op.Reshape(rows.count, call.op.ints([1, 1]))
    call.trace.counts.append((value.value, rows))
    return Scalar(call.trace, np.int64(real), Column(value, INT64, ONE))


def _declare_frames() -> None:
    for name in AGGREGATES:
        if name in ("first", "last"):
            continue

        def of_frame(call: Call, frame: Frame, *args: Any, axis: Any = 0, name: str = name, **options: Any) -> Any:
            if args and name != "quantile":
                axis, args = args[0], args[1:]
            if axis not in (0, "index", 1, "columns"):
                raise call.refuse(f"axis={axis!r} is not known")
            if axis in (1, "columns"):
                return across(call, name, frame, **options)
            return call.part("part: numbers by column", name, frame, args, options)

        rule(f"DataFrame.{name}")(of_frame)


_declare_frames()


def across(call: Call, name: str, frame: Frame, **options: Any) -> Any:
    """Over the columns of each row; what is missing does not count."""
    skipna = options.pop("skipna", True)
    options = {key: value for key, value in options.items() if not _is_default(key, value)}
    names = list(frame)
    if not names:
        raise call.refuse("the frame has no columns")
    columns = [frame.column(column) for column in names]
    op = call.op
    if name == "count":
        return Column(_counted(op, columns), INT64, columns[0].rows)
    if name in ("min", "max") and all(column.type.is_time and column.type == columns[0].type for column in columns):
        return fold(lambda a, b: _later(a, b, name == "max"), columns)
    if any(column.type.masked or column.type.is_text or column.type.meaning for column in columns):
        raise call.refuse("it is converted for numbers, booleans and times of one kind only")
    if name in ("any", "all"):
        return _row_logic(call, name, columns)
    kind = np.result_type(*(column.type.dtype.numpy() for column in columns))
    if name not in ("sum", "prod", "product", "min", "max", "count") and kind.kind != "f":
        kind = np.dtype(np.float64)
    elif kind.kind == "b" or (kind.kind in "iu" and name in ("sum", "prod", "product")):
        kind = np.dtype(np.uint64 if kind.kind == "u" else np.int64)
    rows, type = columns[0].rows, ColumnType(ir.DataType.from_numpy(kind))
    if type.is_int and name in _WHOLE:
        values = [column.cast(type).value for column in columns]
        return Column(fold(_WHOLE[name], values), type, rows)
    wide = op.Concat(*(column.expanded().cast(type).value for column in columns), axis=1)
    valid = op.Not(op.IsNaN(wide)) if type.is_float and skipna else None
    result = across_columns.statistic(name, wide, valid, **options)
    return Column(result, ColumnType(result.dtype), rows)


_WHOLE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": lambda p, q: p + q,
    "prod": lambda p, q: p * q,
    "product": lambda p, q: p * q,
    "min": numbers.smaller,
    "max": numbers.larger,
}
"""Of integers, one column after the other: ONNX Runtime's reductions of int64 are not exact."""


def _later(a: Column, b: Column, largest: bool) -> Column:
    """The later or earlier of two times; of one that is missing, the other."""
    a, b = a.masked(), b.masked()
    op = a.op
    assert a.null is not None and b.null is not None
    is_first = a.value > b.value if largest else a.value < b.value
    value = op.Where(op.Or(b.null, op.And(op.Not(a.null), is_first)), a.value, b.value)
    return Column(value, a.type, a.rows, op.And(a.null, b.null))


def _counted(op: Builder, columns: list[Column]) -> Tensor:
    parts = []
    for column in columns:
        missing = column.missing()
        parts.append(op.index(1) if missing is None else op.Not(missing).cast(ir.DataType.INT64))
    return fold(lambda a, b: a + b, parts)


def _row_logic(call: Call, name: str, columns: list[Column]) -> Column:
    if not all(column.type.is_bool and column.null is None for column in columns):
        raise call.refuse("it is converted for booleans that are all there")
    op_type = "Or" if name == "any" else "And"
    value = fold(lambda a, b: getattr(a.op, op_type)(a, b), [column.value for column in columns])
    return Column(value, columns[0].type, columns[0].rows)
