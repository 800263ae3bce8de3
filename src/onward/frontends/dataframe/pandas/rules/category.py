"""Categories: their codes and labels, dummies, and bins made by cut and qcut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.pandas import type_of
from onward.formats.dataframe.types import BOOL, INT64, ColumnType
from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Deferred, Frame, Series, framed
from onward.frontends.dataframe.pandas.rules.lookup import mapped, positions
from onward.hub.wording import quote


@rule("part: codes")
def codes_of_part(call: Call, column: Column) -> Column:
    return codes_of(column)


def codes_of(column: Column) -> Column:
    """The number of each category, -1 where it is missing, as int64."""
    from onward.frontends.dataframe.tensors.lookup import number_positions, text_positions

    type, op = column.type, column.op
    assert type.categories is not None
    if type.is_text:
        place, found = text_positions(column.value, [str(label) for label in type.categories])
    else:
        place, found = number_positions(column.value.cast(ir.DataType.INT64), [int(v) for v in type.categories])
    missing = column.missing()
    if missing is not None:
        found = op.And(found, op.Not(missing))
    return Column(op.Where(found, place, op.index(-1)), INT64, column.rows)


@rule("part: to category")
def to_category(call: Call, column: Column, type: ColumnType) -> Column:
    """As one of the categories; what is none of them is missing."""
    inner = type.uncategorized()
    if column.type.dtype != inner.dtype:
        raise call.refuse(f"a column of {column.type} does not hold these categories: convert it with astype first")
    assert type.categories is not None
    if not type.categories:
        raise call.refuse("there are no categories")
    _, found = positions(call, replace(column, type=inner), list(type.categories))
    made = Column(column.value, type, column.rows, column.missing() if inner.null_is_mask else None)
    return made.with_null(column.op.Not(found))


@rule("part: to labels")
def to_labels_part(call: Call, column: Column) -> Column:
    return to_labels(column)


def to_labels(column: Column) -> Column:
    return replace(column, type=column.type.uncategorized())


@rule("pandas.Categorical")
def categorical(call: Call, values: Series, categories: Any = None, ordered: Any = None, dtype: Any = None) -> Any:
    import pandas

    if dtype is None and categories is None:
        raise call.refuse("the categories would be those of the sample: name them")
    wanted = dtype if dtype is not None else pandas.CategoricalDtype(list(categories), bool(ordered))
    return values.astype(wanted)


def _codes_type(type: ColumnType) -> ColumnType:
    count = len(type.categories or ())
    dtype = np.int8 if count < 128 else np.int16 if count < 2**15 else np.int32
    return ColumnType(ir.DataType.from_numpy(np.dtype(dtype)))


@rule("Series.cat.codes")
def codes(call: Call, x: Series) -> Column:
    return codes_of(x.column).cast(_codes_type(x.column.type))


@rule("Series.cat.categories")
def categories(call: Call, x: Series) -> Any:
    return x.real.cat.categories


@rule("Series.cat.ordered")
def ordered(call: Call, x: Series) -> bool:
    return bool(x.real.cat.ordered)


@rule("Series.cat.as_ordered", "Series.cat.as_unordered")
def as_ordered(call: Call, x: Series) -> Column:
    return replace(x.column, type=replace(x.column.type, ordered=call.name.endswith("as_ordered")))


@rule("Series.cat.add_categories", "Series.cat.reorder_categories")
def with_categories(call: Call, x: Series, new_categories: Any, ordered: Any = None) -> Column:
    found = type_of(call.real)
    return replace(x.column, type=found)


@rule("Series.cat.set_categories", "Series.cat.remove_categories")
def set_categories(call: Call, x: Series, new_categories: Any, ordered: Any = None, rename: bool = False) -> Any:
    if rename:
        raise call.refuse("use cat.rename_categories")
    return to_category(call, to_labels(x.column), type_of(call.real))


@rule("Series.cat.rename_categories")
def rename_categories(call: Call, x: Series, new_categories: Any) -> Any:
    old, new = x.column.type.categories or (), tuple(call.real.cat.categories.tolist())
    made = mapped(call, to_labels(x.column), dict(zip(old, new, strict=True)), type_of(call.real).uncategorized())
    return replace(made, type=type_of(call.real))


@rule("Series.cat.remove_unused_categories")
def remove_unused(call: Call, x: Series) -> Any:
    raise call.refuse("which categories are used depends on the data: use cat.set_categories")


@rule("pandas.get_dummies")
def get_dummies(
    call: Call,
    data: Any,
    prefix: Any = None,
    prefix_sep: str = "_",
    dummy_na: bool = False,
    columns: Any = None,
    drop_first: bool = False,
    dtype: Any = None,
) -> Frame:
    """A column for each category: of columns whose categories are known."""
    if isinstance(data, Series):
        made = _dummies(call, data, prefix, prefix_sep, dummy_na, drop_first, dtype)
        return framed(call.trace, made, call.real)
    chosen = _to_encode(data, columns)
    result: dict[Any, Deferred] = {name: data.columns_by_name[name] for name in data if name not in chosen}
    for number, name in enumerate(chosen):
        label = prefix.get(name, name) if isinstance(prefix, dict) else prefix[number] if _is_list(prefix) else prefix
        made = _dummies(
            call, data.series(name), name if label is None else label, prefix_sep, dummy_na, drop_first, dtype
        )
        result |= {key: Deferred(column) for key, column in made.items()}
    real = call.real
    return Frame(call.trace, real, {name: result[name] for name in real.columns}, data.rows)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _to_encode(frame: Frame, columns: Any) -> list[Any]:
    if columns is not None:
        return list(columns)
    return [name for name in frame if str(frame.real[name].dtype) in ("object", "str", "string", "category")]


def _dummies(
    call: Call, x: Series, prefix: Any, separator: str, with_missing: bool, drop_first: bool, dtype: Any
) -> dict[Any, Column]:
    type = x.column.type
    if type.categories is None:
        raise call.refuse(
            f"which columns there are would depend on the data: give {quote(str(x.name))} its categories first, with "
            f".astype(pd.CategoricalDtype([…]))"
        )
    op = call.op
    code = codes_of(x.column).value
    labels = [*type.categories][1 if drop_first else 0 :]
    kind = np.dtype(bool if dtype is None else dtype)
    target = ColumnType(ir.DataType.from_numpy(kind))
    made: dict[Any, Column] = {}
    for number, label in enumerate(labels, start=1 if drop_first else 0):
        name = label if prefix is None else f"{prefix}{separator}{label}"
        made[name] = Column(op.Equal(code, op.index(number)), BOOL, x.column.rows).cast(target)
    if with_missing:
        name = np.nan if prefix is None else f"{prefix}{separator}nan"
        made[name] = Column(op.Equal(code, op.index(-1)), BOOL, x.column.rows).cast(target)
    return made


@rule("Series.factorize", "pandas.factorize")
def factorize(call: Call, x: Series, **options: Any) -> Any:
    raise call.refuse("the numbers would depend on the data: use map, or categories that are named")
