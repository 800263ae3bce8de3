"""Values that are looked up: isin, map, replace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.formats.dataframe.pandas import type_of
from onward.formats.dataframe.types import BOOL, FLOAT64, ColumnType
from onward.frontends.dataframe.columns.column import Column, chosen, elementwise, from_table
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Scalar, Series
from onward.frontends.dataframe.pandas.rules.missing import missing_mask
from onward.frontends.dataframe.pandas.values import is_missing, literal, widened
from onward.frontends.dataframe.tensors import lookup
from onward.graph.build import Tensor


def plain_list(call: Call, values: Any) -> list[Any]:
    if isinstance(values, Series | Frame | Scalar):
        raise call.refuse("the values to look for are data: they must be known beforehand")
    if isinstance(values, Mapping):
        return list(values)
    return list(values.tolist() if hasattr(values, "tolist") else values)


@rule("Series.isin", "numpy.isin")
def isin(call: Call, x: Series, values: Any) -> Column:
    column = x.column
    items = plain_list(call, values)
    present = [item for item in items if not is_missing(item)]
    found = positions(call, column, present)[1] if present else _nowhere(column)
    missing = column.missing()
    if missing is not None:
        op = column.op
        counts = any(_stands_for_missing(item, column.type) for item in items if is_missing(item))
        found = op.Or(found, missing) if counts else op.And(found, op.Not(missing))
    return Column(found, replace(BOOL, masked=column.type.masked and call.type.masked), column.rows)


def _stands_for_missing(item: Any, type: ColumnType) -> bool:
    """Whether a missing value in a list is found where such a column has none."""
    import pandas

    if type.categories is not None or type.is_text:
        return True
    if type.masked:
        return item is pandas.NA
    return isinstance(item, float) if type.is_float else item is pandas.NaT


def _nowhere(column: Column) -> Tensor:
    return column.op.constant(np.asarray([[False]]))


def positions(call: Call, column: Column, keys: list[Any]) -> tuple[Tensor, Tensor]:
    """Where each value of a column stands among some keys, and whether it does; elsewhere the position is 0."""
    type = column.type
    if type.is_text:
        keys_of_type = [key if isinstance(key, str) else None for key in keys]
        return lookup.text_positions(column.value, keys_of_type)
    if type.is_time:
        ticks = [_ticks(call, key, type) for key in keys]
        return lookup.number_positions(column.value, ticks)
    if type.is_bool:
        value, numbers = column.value.cast(ir.DataType.INT64), [_whole(key) for key in keys]
        return lookup.number_positions(value, numbers)
    if type.is_int:
        if type.dtype == ir.DataType.UINT64:
            raise call.refuse("uint64 cannot be looked up: convert to int64")
        return lookup.number_positions(column.value.cast(ir.DataType.INT64), [_whole(key) for key in keys])
    if type.is_float:
        floats = [float(key) if _is_number(key) else None for key in keys]
        return lookup.float_positions(column.value.cast(ir.DataType.DOUBLE), floats)
    raise call.refuse(f"{type} cannot be looked up")


def _ticks(call: Call, key: Any, type: ColumnType) -> int | None:
    try:
        column = literal(call, _as_time(key, type), type)
    except (TypeError, ValueError):
        return None
    if column.type.unit != type.unit:
        return None
    tensor = column.value.value.const_value
    return None if tensor is None else int(tensor.numpy().reshape(-1)[0])


def _as_time(key: Any, type: ColumnType) -> Any:
    import pandas

    return pandas.Timestamp(key) if type.meaning == "datetime" else pandas.Timedelta(key)


def _is_number(key: Any) -> bool:
    return isinstance(key, int | float | np.number | bool | np.bool_)


def _whole(key: Any) -> int | None:
    return int(key) if _is_number(key) and float(key).is_integer() and -(2**63) <= key < 2**63 else None


@rule("Series.map")
def map_values(call: Call, x: Series, arg: Any, na_action: Any = None) -> Any:
    if isinstance(arg, Series):
        return call.part("part: map by group", x, arg)
    if hasattr(arg, "iloc"):
        if not arg.index.is_unique:
            raise call.refuse("the Series that it is mapped by has a label twice")
        table = dict(zip(arg.index.tolist(), arg.tolist(), strict=True))
        return mapped(call, x.column, table, type_of(arg), known=getattr(arg, "dtype", None))
    if isinstance(arg, Mapping):
        if isinstance(arg, defaultdict) and arg.default_factory is not None:
            return mapped_or(call, x.column, dict(arg), arg.default_factory(), na_action)
        if hasattr(arg, "__missing__") and not isinstance(arg, defaultdict):
            return mapped_or(call, x.column, dict(arg), _one_default(call, arg), na_action)
        table = dict(arg)
        if na_action == "ignore":
            table = {key: value for key, value in table.items() if not is_missing(key)}
        return mapped(call, x.column, table, None)
    if na_action == "ignore":
        return call.part("part: function of elements that are there", x, arg)
    return call.part("part: function of elements", x, arg)


def _one_default(call: Call, table: Any) -> Any:
    """What a table gives for keys that it does not have, if that is one value."""
    first, second = (table.__missing__(object()) for _ in range(2))
    if not isinstance(first, str | int | float) or first != second:
        raise call.refuse("what the table gives for other keys depends on them: use a function, or .fillna")
    return first


def mapped(call: Call, column: Column, table: dict[Any, Any], type: ColumnType | None, known: Any = None) -> Any:
    """The value of each key; what is none of them is missing. A key that is missing stands for what is."""
    for_missing = next((value for key, value in table.items() if is_missing(key)), None)
    table = {key: value for key, value in table.items() if not is_missing(key)}
    if not table:
        raise call.refuse("the table that it is mapped by is empty")
    values = list(table.values())
    type = type or _type_of_values(call, [*values, *([] if for_missing is None else [for_missing])])
    return _looked_up(call, column, list(table), values, type, None, for_missing)


def mapped_or(call: Call, column: Column, table: dict[Any, Any], default: Any, na_action: Any) -> Column:
    for_missing = next((value for key, value in table.items() if is_missing(key)), default)
    table = {key: value for key, value in table.items() if not is_missing(key)}
    values = list(table.values())
    type = _type_of_values(call, [*values, default, for_missing])
    ignored = na_action == "ignore"
    made = _looked_up(call, column, list(table), values, type, default, None if ignored else for_missing)
    return widened(made.with_null(column.missing())) if ignored else made


def _type_of_values(call: Call, values: list[Any]) -> ColumnType:
    import pandas

    present = [value for value in values if not is_missing(value)]
    found = type_of(pandas.Series(present if present else [np.nan]))
    return FLOAT64 if found.is_int and len(present) < len(values) else found


def _looked_up(
    call: Call, column: Column, keys: list[Any], values: list[Any], type: ColumnType, default: Any, for_missing: Any
) -> Column:
    op = column.op
    if is_missing(default) and (column.type.is_text or column.type.is_int) and type.is_number and not type.masked:
        return _numbers(call, column, keys, values, for_missing)
    place, found = positions(call, column, keys)
    wide = FLOAT64 if type.is_int and not type.masked and is_missing(default) else type
    cells = [None if is_missing(value) else _cell(value, type) for value in values]
    if wide != type:
        _all_exact(call, cells)
    missing = column.missing()
    if missing is not None:
        found = op.And(found, op.Not(missing))
    made = from_table(op, cells, wide, place, column.rows)
    if is_missing(default):
        made = made.with_null(op.Not(found))
    else:
        made = chosen(found, made, literal(call, default, wide).cast(wide), wide, column.rows)
    if missing is not None and not is_missing(for_missing):
        made = chosen(missing, literal(call, for_missing, wide).cast(wide), made, wide, column.rows)
    return made


def _numbers(call: Call, column: Column, keys: list[Any], values: list[Any], for_missing: Any) -> Column:
    """Floats of texts or integers: one node finds and gives them."""
    kept = [(k, v) for k, v in zip(keys, values, strict=True) if _suits(k, column.type) and not is_missing(v)]
    table = {(k if column.type.is_text else _whole(k)): float(v) for k, v in kept}
    _all_exact(call, [v for _, v in kept])
    table.pop(None, None)
    value = column.value if column.type.is_text else column.value.cast(ir.DataType.INT64)
    made = Column(lookup.numbers(value, table), FLOAT64, column.rows)
    missing = column.missing()
    if missing is None:
        return made
    if is_missing(for_missing):
        return made.with_null(missing)
    return chosen(missing, literal(call, float(for_missing)), made, FLOAT64, column.rows)


def _all_exact(call: Call, values: list[Any]) -> None:
    if any(abs(int(value)) > 2**53 for value in values if isinstance(value, int | np.integer)):
        raise call.refuse("integers beyond 2**53 are not exact as floats, which they are where one may be missing")


def _cell(value: Any, type: ColumnType) -> Any:
    if type.is_time:
        return _as_time(value, type).as_unit(type.unit)._value
    return value


@rule("Series.replace")
def replace_values(call: Call, x: Series, to_replace: Any = None, value: Any = None, *, regex: Any = False) -> Any:
    if regex is not False:
        return call.part("part: replace patterns", x, to_replace, value, regex)
    table = _replacements(call, to_replace, value)
    return replaced(call, x.column, table)


def _replacements(call: Call, to_replace: Any, value: Any) -> dict[Any, Any]:
    if isinstance(to_replace, Mapping):
        return dict(to_replace)
    keys = list(to_replace) if isinstance(to_replace, list | tuple) else [to_replace]
    values = list(value) if isinstance(value, list | tuple) else [value] * len(keys)
    if len(keys) != len(values):
        raise call.refuse("there are as many values as what is replaced")
    return dict(zip(keys, values, strict=True))


def replaced(call: Call, column: Column, table: dict[Any, Any]) -> Any:
    """Some values by others; the rest stays."""
    from onward.frontends.dataframe.pandas.rules.choose import choice

    result: Any = column
    for_missing = [value for key, value in table.items() if is_missing(key)]
    plain = {key: value for key, value in table.items() if not is_missing(key)}
    if column.type.categories is not None:
        raise call.refuse("categories are not replaced: convert with astype(str) first, or use cat.rename_categories")
    plain = {key: value for key, value in plain.items() if _suits(key, column.type)}
    gone = [key for key, value in plain.items() if is_missing(value)]
    kept = {key: value for key, value in plain.items() if not is_missing(value)}
    if kept:
        type = _type_of_values(call, list(kept.values()))
        made = _looked_up(call, column, list(kept), list(kept.values()), type, next(iter(kept.values())), None)
        found = positions(call, column, list(kept))[1]
        missing = column.missing()
        if missing is not None:
            found = column.op.And(found, column.op.Not(missing))
        made = Column(made.value, made.type, made.rows)
        result = choice(call, Column(found, BOOL, column.rows), _proxy(call, made), _proxy(call, column))
    if gone:
        found = positions(call, column, gone)[1]
        result = choice(call, Column(found, BOOL, column.rows), None, _proxy(call, result))
    if for_missing:
        missing = column.missing()
        if missing is not None:
            value = _proxy(call, result)
            result = choice(call, Column(missing, BOOL, column.rows), for_missing[0], value)
    return widened(result)


def _proxy(call: Call, column: Column) -> Any:
    return Series(call.trace, None, column)


def _suits(key: Any, type: ColumnType) -> bool:
    """Whether a value can be in a column at all."""
    if type.is_text:
        return isinstance(key, str)
    return _is_number(key) if type.is_number or type.is_bool else True


@rule("DataFrame.replace")
def frame_replace(call: Call, frame: Frame, to_replace: Any = None, value: Any = None, *, regex: Any = False) -> Any:
    made = frame.copied()
    nested = isinstance(to_replace, Mapping) and any(isinstance(part, Mapping) for part in to_replace.values())
    by_column = isinstance(to_replace, Mapping) and value is not None
    for name in list(frame):
        part, other = to_replace, value
        if nested or by_column:
            if name not in to_replace:
                continue
            part = to_replace[name]
            other = value.get(name) if isinstance(value, Mapping) else value
        series = frame.series(name)
        if other is None and isinstance(part, Mapping):
            made.put(name, series.replace(part, regex=regex))
        else:
            made.put(name, series.replace(part, other, regex=regex))
    return made


@rule("DataFrame.isin")
def frame_isin(call: Call, frame: Frame, values: Any) -> Any:
    by_column = isinstance(values, Mapping)
    return {name: frame.series(name).isin(values.get(name, []) if by_column else values).column for name in frame}


__all__ = ["elementwise", "mapped", "missing_mask", "positions"]
