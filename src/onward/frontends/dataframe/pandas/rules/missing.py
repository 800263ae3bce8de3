"""What is missing: isna, fillna, dropna and their kin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from onward.formats.dataframe.types import BOOL
from onward.frontends.dataframe.columns.column import Column, chosen
from onward.frontends.dataframe.pandas.dispatch import Call, Proxy, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Series
from onward.frontends.dataframe.pandas.rules.choose import one_type
from onward.frontends.dataframe.pandas.values import as_names, at_labels, beside, column_of
from onward.graph.build import Tensor


def missing_mask(column: Column) -> Tensor:
    """Where it is missing, as a tensor even where nothing can be."""
    found = column.missing()
    return found if found is not None else column.op.constant(np.asarray([[False]]))


@rule("Series.isna", "Series.isnull", "pandas.isna", "pandas.isnull")
def isna(call: Call, x: Any) -> Any:
    if isinstance(x, Frame):
        return x.isna()
    column = column_of(call, x)
    return Column(missing_mask(column), BOOL, column.rows)


@rule("Series.notna", "Series.notnull", "pandas.notna", "pandas.notnull")
def notna(call: Call, x: Any) -> Any:
    if isinstance(x, Frame):
        return x.notna()
    column = column_of(call, x)
    return Column(column.op.Not(missing_mask(column)), BOOL, column.rows)


@rule("Series.hasnans")
def hasnans(call: Call, x: Series) -> Any:
    return x.isna().any()


@rule("Series.fillna")
def fillna(call: Call, x: Series, value: Any = None, *, limit: Any = None) -> Any:
    if limit is not None:
        raise call.refuse("limit cannot be converted")
    if value is None or (not isinstance(value, Proxy) and (hasattr(value, "iloc") or isinstance(value, dict))):
        raise call.refuse("it needs a value, or a column")
    return filled(call, x.column, value)


def filled(call: Call, column: Column, value: Any) -> Column:
    """With another value where it is missing."""
    missing = column.missing()
    if missing is None:
        return column
    x, y = column, column_of(call, value, column.type)
    x, y = beside(call, x, y) if x.is_scalar else (x, at_labels(call, y, x.rows))
    if x.type.categories is not None:
        known = value if isinstance(value, str) else None
        if known is not None and known not in x.type.categories:
            raise call.refuse(f"{known!r} is none of the categories: add it with cat.add_categories first")
        y = replace(y, type=x.type)
    x, y, type = one_type(call, x, y)
    if column.rows is not x.rows:
        missing = x.missing()
        assert missing is not None
    if y.missing() is None:
        x = replace(x, null=None)
        if type.is_time:
            return Column(x.op.Where(missing, y.value, x.value), type, x.rows)
    return chosen(missing, y, x, type, x.rows)


@rule("Series.combine_first")
def combine_first(call: Call, x: Series, other: Any) -> Column:
    if isinstance(other, Series):
        beside(call, x.column, other.column)
        if not x.column.rows.takes(other.column.rows):
            raise call.refuse("the columns have different rows: use fillna, which keeps those of the first")
    return filled(call, x.column, other)


@rule("Series.dropna")
def dropna(call: Call, x: Series, *, ignore_index: bool = False) -> Any:
    made = x[x.notna()]
    return made.reset_index(drop=True) if ignore_index else made


@rule("DataFrame.isna", "DataFrame.isnull")
def frame_isna(call: Call, frame: Frame) -> Any:
    return {name: frame.series(name).isna().column for name in frame}


@rule("DataFrame.notna", "DataFrame.notnull")
def frame_notna(call: Call, frame: Frame) -> Any:
    return {name: frame.series(name).notna().column for name in frame}


@rule("DataFrame.fillna")
def frame_fillna(call: Call, frame: Frame, value: Any = None, *, limit: Any = None) -> Any:
    if value is None or limit is not None:
        raise call.refuse("it needs a value, or a value for each column, and no limit")
    result = frame.copied()
    for name in list(frame):
        wanted = value
        if isinstance(value, Mapping) or hasattr(value, "by_name") or (hasattr(value, "iloc") and not _is_frame(value)):
            table = dict(value) if isinstance(value, Mapping) else value.to_dict()
            wanted = table.get(name)
        elif isinstance(value, Frame):
            wanted = value.series(name) if name in value else None
        if hasattr(wanted, "iloc") and not isinstance(wanted, Series):
            raise call.refuse("it needs a value, or a value for each column by name")
        if wanted is None:
            continue
        if wanted is value and not _suits(frame.real[name], wanted):
            continue
        result.put(name, frame.series(name).fillna(wanted))
    return result


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns")


def _suits(real: Any, value: Any) -> bool:
    """Whether a value for the whole frame can stand in a column: where it cannot, nothing may be missing."""
    return not (isinstance(real.dtype, np.dtype) and real.dtype.kind in "biu")


@rule("DataFrame.dropna")
def frame_dropna(
    call: Call,
    frame: Frame,
    *,
    axis: Any = 0,
    how: str = "any",
    thresh: Any = None,
    subset: Any = None,
    ignore_index: bool = False,
) -> Any:
    if axis not in (0, "index"):
        raise call.refuse("which columns are dropped would depend on the data: drop them by name")
    names = list(frame) if subset is None else as_names(subset)
    kept: Any = None
    if thresh is not None:
        kept, names = frame[names].count(axis=1) >= thresh, []
    for name in names:
        present = frame.series(name).notna()
        kept = present if kept is None else (kept & present if how == "any" else kept | present)
    result = frame if kept is None else frame[kept]
    return result.reset_index(drop=True) if ignore_index else result
