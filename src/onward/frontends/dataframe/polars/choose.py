"""One value or another: when/then, filling nulls, limits, membership, maps and intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import polars as pl

from onward.errors import UnsupportedError
from onward.formats.dataframe.polars import column_type
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import ONE, Column, common_rows, elementwise, from_table, guarded
from onward.frontends.dataframe.polars.casts import cast_column
from onward.frontends.dataframe.polars.compare import BOOLEAN, compared
from onward.frontends.dataframe.polars.leaves import listed, physical
from onward.frontends.dataframe.polars.masks import known_truth, marked, picked, truth, which
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, is_constant, rule
from onward.frontends.dataframe.tensors.text import text_compare
from onward.graph.build import Tensor


@rule("ternary")
def ternary(scope: Scope, expr: Expr) -> Column:
    type = scope.type(expr)
    chain = _constant_chain(scope, expr, type) if type.is_text else None
    if chain is not None:
        return chain
    when = scope(expr.args[0])
    if when.is_scalar and known_truth(when.value) is not None and known_truth(when.null) is not None:
        kept = expr.args[1] if known_truth(when.value) and not known_truth(when.null) else expr.args[2]
        return as_type(scope.typed(kept, type), type)
    then, otherwise = (scope.typed(each, type) for each in expr.args[1:])
    when, then, otherwise = scope.beside(when, then, otherwise)
    return picked(truth(when), as_type(then, type), as_type(otherwise, type), type, common_rows(when, then, otherwise))


def _constant_chain(scope: Scope, expr: Expr, type: ColumnType) -> Column | None:
    """Conditions that choose among constant texts: the number of the first that holds, and a table.

    Where of texts takes ten times as long as Where of numbers.
    """
    conditions: list[Column] = []
    values: list[Any] = []
    rest = expr
    while rest.kind == "ternary":
        value = _constant_value(rest.args[1], type)
        if value is _UNKNOWN:
            return None
        conditions.append(scope(rest.args[0]))
        values.append(value)
        rest = rest.args[2]
    values.append(_constant_value(rest, type))
    if values[-1] is _UNKNOWN:
        return None
    conditions = scope.beside(*conditions)
    rows = common_rows(*conditions)
    if rows is ONE:
        return None
    op = scope.op
    place = op.constant(np.asarray([[len(values) - 1]], np.int32))
    for number, condition in reversed(list(enumerate(conditions))):
        place = op.Where(truth(condition), op.constant(np.asarray([[number]], np.int32)), place)
    return from_table(op, values, type, replace(conditions[0], value=place, null=None).expanded().value, rows)


_UNKNOWN = object()


def _constant_value(expr: Expr, type: ColumnType) -> Any:
    """What stands in a tensor for a constant of a plan, if it is one and needs no cast."""
    if expr.kind == "cast" and expr.args[0].kind == "literal" and expr.args[0].options[0] is None:
        return None
    if expr.kind != "literal" or isinstance(expr.options[0], pl.Series):
        return _UNKNOWN
    if expr.options[0] is None:
        return None
    own = column_type(expr.dtype)
    if own.meaning != type.meaning or own.unit != type.unit:
        return _UNKNOWN
    value = physical(expr.options[0], expr.dtype)
    return value if isinstance(value, str) == type.is_text and not isinstance(value, bool) else _UNKNOWN


def as_type(column: Column, type: ColumnType) -> Column:
    """Of this type; texts that are to be categories are so."""
    if column.type.dtype != type.dtype:
        return cast_column(column, type, strict=False)
    return replace(column, type=type)


@rule("fill_null")
def fill_null(scope: Scope, expr: Expr) -> Column:
    type = scope.type(expr)
    a, other = scope.beside(scope.typed(expr.args[0], type), scope.typed(expr.args[1], type))
    return first_known(as_type(a, type), as_type(other, type))


def first_known(a: Column, other: Column) -> Column:
    """`a`, or the other where it is null."""
    null = a.missing()
    if null is None:
        return a
    op, other, rows = a.op, other.masked(), common_rows(a, other)
    lost = None if other.null is None else op.And(null, other.null)
    if a.type.is_bool:
        value = which(null, other.value, a.value)
        assert value is not None
    else:
        value = op.Where(null, other.value, a.value)
    return Column(marked(value, rows, a.value), a.type, rows, lost)


@rule("coalesce")
def coalesce(scope: Scope, expr: Expr) -> Column:
    type = scope.type(expr)
    columns = [as_type(column, type) for column in scope.beside(*(scope.typed(each, type) for each in expr.args))]
    made = columns[-1]
    for column in reversed(columns[:-1]):
        made = first_known(column, made)
    return made


@rule("clip")
def clip(scope: Scope, expr: Expr) -> Column:
    """A limit that is null is none. NaN stays NaN."""
    has_low, has_high = expr.options
    type = scope.type(expr)
    a, *limits = scope.beside(*(scope.typed(each, type) for each in expr.args))
    names = [name for name, there in (("Lt", has_low), ("Gt", has_high)) if there]
    if type.is_float and all(is_constant(limit) and limit.null is None for limit in limits):
        given = dict(zip(names, limits, strict=True))
        # Without a limit, Clip takes the largest finite number for it.
        low, high = (
            scope.op.constant(np.asarray(end, type.dtype.numpy()), type.dtype)
            if name not in given
            else scope.op.squeeze(as_type(given[name], type).value, [0, 1])
            for name, end in (("Lt", -np.inf), ("Gt", np.inf))
        )
        return elementwise(lambda x: x.op.Clip(x, low, high), type, a)
    for name, limit in zip(names, limits, strict=True):
        limit = as_type(limit, type)
        null, none = a.missing(), limit.missing()
        # NaN is not beyond a limit, and a limit that is NaN or null is none.
        beyond = (
            compared_plainly(name, a, limit)
            if type.is_float
            else compared(name, a.without_nulls(), limit.without_nulls()).value
        )
        beyond = beyond if none is None else scope.op.And(beyond, scope.op.Not(none))
        rows = common_rows(a, limit)
        value = marked(scope.op.Where(beyond, limit.value, a.value), rows, a.value)
        a = Column(value, type, rows).with_null(null)
    return a


def compared_plainly(name: str, a: Column, b: Column) -> Tensor:
    """As IEEE says: NaN is neither above nor below."""
    made: Tensor = getattr(a.op, "Less" if name == "Lt" else "Greater")(a.value, b.value)
    return made


@rule("bool.IsIn")
def is_in(scope: Scope, expr: Expr) -> Column:
    a = scope(expr.args[0])
    values = listed(expr.args[1], "the values of `is_in`")
    (nulls_equal,) = expr.options
    known = values.drop_nulls()
    found = scope.decided(elementwise(lambda x: _member(x, known, a.type), BOOLEAN, a), a)
    if not nulls_equal or found.null is None:
        return found
    op = scope.op
    value = op.And(found.value, op.Not(found.null))
    return Column(op.Or(value, found.null) if values.null_count() else value, BOOLEAN, found.rows)


def _member(x: Tensor, values: pl.Series, type: ColumnType) -> Tensor:
    op = x.op
    if type.is_text:
        words = values.cast(pl.String).unique(maintain_order=True).to_list()
        return text_compare.is_in(x, words) if words else op.Not(op.Equal(x, x))
    numbers = [physical(value, values.dtype) for value in values.unique(maintain_order=True)]
    has_nan = any(isinstance(value, float) and value != value for value in numbers)
    numbers = [value for value in numbers if value == value]
    found: Tensor | None = op.IsNaN(x) if has_nan else None
    if numbers:
        constants = np.asarray(numbers).astype(type.dtype.numpy())
        if len(numbers) == 1:
            hit = op.Equal(x, op.constant(constants.reshape(1, 1), type.dtype))
        elif type.dtype == ir.DataType.INT64 or (type.dtype.is_integer() and type.dtype != ir.DataType.UINT64):
            hit = _encoded_member(x, constants.astype(np.int64))
        else:
            same = op.Equal(x, op.constant(constants.reshape(1, -1), type.dtype))
            hit = op.Cast(
                op.ReduceMax(op.Cast(same, to=int(ir.DataType.UINT8)), op.ints([1]), keepdims=1),
                to=int(ir.DataType.BOOL),
            )
        found = hit if found is None else op.Or(found, hit)
    return op.Xor(op.Equal(x, x), op.Equal(x, x)) if found is None else found


def _encoded_member(x: Tensor, numbers: Any) -> Tensor:
    """By a table of int64: 1 for those that are in it."""
    op = x.op
    made = op.many(
        "LabelEncoder",
        1,
        x.cast(ir.DataType.INT64),
        domain="ai.onnx.ml",
        keys_int64s=[int(number) for number in numbers],
        values_int64s=[1] * len(numbers),
        default_int64=0,
    )[0]
    made.value.dtype = ir.DataType.INT64
    made.value.shape = x.value.shape
    return op.Cast(made, to=int(ir.DataType.BOOL))


@rule("replace", "replace_strict")
def replaced(scope: Scope, expr: Expr) -> Column:
    """Look values up in a table: what is not in it stays, or is the default, or is an error."""
    a, old = scope(expr.args[0]), listed(expr.args[1], "what `replace` replaces")
    new = listed(expr.args[2], "what `replace` puts there")
    op, type = scope.op, scope.type(expr)
    if len(new) == 1 and len(old) != 1:
        new = pl.Series([new[0]] * len(old), dtype=new.dtype)
    new = new.cast(expr.dtype) if new.dtype != expr.dtype else new
    pairs = dict(zip(old.to_list(), new.to_list(), strict=True))
    for_null = [pairs.pop(None)] if None in pairs else []
    keys = [physical(key, old.dtype) if not a.type.is_text else str(key) for key in pairs]
    if a.is_scalar:
        raise UnsupportedError("`replace` of a single value has no form in a graph: replace before the aggregate")
    a, end = a.masked(), len(keys)
    place, found = places(a.value, keys, a.type)
    if a.null is not None:
        place = op.Where(a.null, op.like(end + 1 if for_null else end, place), place)
        found = op.And(found, op.Not(a.null))
    has_default = len(expr.args) > 3
    default = _constant_value(expr.args[3], type) if has_default else None
    values = [physical(value, expr.dtype) for value in pairs.values()]
    fixed = None if default is _UNKNOWN else default
    if type.is_float and isinstance(fixed, int):
        fixed = float(fixed)
    values += [fixed, *(physical(value, expr.dtype) for value in for_null)]
    there = from_table(op, values, type, marked(place, a.rows, a.value), a.rows)
    if has_default and default is not _UNKNOWN:
        return there
    known = found if not for_null or a.null is None else op.Or(found, a.null)
    if expr.kind == "replace":
        return picked(known, there, as_type(a, type), type, a.rows)
    if has_default:
        _, rest = scope.beside(a, scope.typed(expr.args[3], type))
        return picked(known, there, as_type(rest, type), type, a.rows)
    # Nulls that are not in the table stay null; other values are an error.
    bad = op.Not(known) if a.null is None else op.And(op.Not(known), op.Not(a.null))
    return guarded(there, bad, "a value that replace_strict has nothing for")


def places(x: Tensor, keys: list[Any], type: ColumnType) -> tuple[Tensor, Tensor]:
    """The place of each value in a list of keys, int64, one past the end if it is in none; and where it is in one."""
    op, end = x.op, len(keys)
    if type.is_float or type.dtype == ir.DataType.UINT64:
        return _places_of_floats(x, keys)
    if type.is_text:
        given: dict[str, Any] = {"keys_strings": [str(key) for key in keys]}
    else:
        x = x.cast(ir.DataType.INT64)
        given = {"keys_int64s": [int(key) for key in keys]}
    if not keys:
        made = op.filled(x.cast(ir.DataType.INT64) if not type.is_text else op.Cast(op.Equal(x, x), to=7), 0)
    else:
        made = op.many(
            "LabelEncoder", 1, x, domain="ai.onnx.ml", values_int64s=list(range(end)), default_int64=end, **given
        )[0]
        made.value.dtype, made.value.shape = ir.DataType.INT64, x.value.shape
    return made, op.Less(made, op.like(end, made))


def _places_of_floats(x: Tensor, keys: list[Any]) -> tuple[Tensor, Tensor]:
    op, end = x.op, len(keys)
    if end > 1000:
        raise UnsupportedError("a table of more than 1000 floats is not looked up: use integers or text as keys")
    made = op.Expand(op.index(end), op.Shape(x))
    for place, key in reversed(list(enumerate(keys))):
        hit = op.IsNaN(x) if isinstance(key, float) and key != key else op.Equal(x, op.like(key, x))
        made = op.Where(hit, op.like(place, made), made)
    return made, op.Less(made, op.like(end, made))


@rule("cut")
def cut(scope: Scope, expr: Expr) -> Column:
    breaks, labels, left_closed, include = expr.options
    if include:
        raise UnsupportedError("`cut` with `include_breaks` gives structs, which have no form in a graph")
    return _in_intervals(scope, expr, [float(each) for each in breaks], bool(left_closed), labels)


@rule("bin_intervals")
def bin_intervals(scope: Scope, expr: Expr) -> Column:
    raise UnsupportedError("`bin_intervals` has no form in a graph: use `cut`")


def _in_intervals(scope: Scope, expr: Expr, breaks: list[float], left_closed: bool, labels: Any) -> Column:
    a = scope(expr.args[0])
    type = scope.type(expr)
    if not isinstance(expr.dtype, pl.Enum):
        raise UnsupportedError("`cut` into categories that are not fixed has no form in a graph")
    names = list(labels) if labels is not None else list(expr.dtype.categories)
    op = scope.op
    if sorted(breaks) != breaks:
        raise UnsupportedError("the breaks of `cut` have to be in order")
    table = op.strings(np.asarray(names, object).reshape(-1, 1))

    def label(x: Tensor) -> Tensor:
        x = x.cast(ir.DataType.DOUBLE)
        edges = op.constant(np.asarray(breaks, np.float64).reshape(1, -1))
        above = op.GreaterOrEqual(x, edges) if left_closed else op.Greater(x, edges)
        place = op.ReduceSum(
            op.Cast(above, to=int(ir.DataType.INT32)).cast(ir.DataType.INT64), op.ints([1]), keepdims=0
        )
        return op.Gather(table, place, axis=0)

    made = elementwise(label, type, a)
    return made.with_null(op.IsNaN(a.value)) if a.type.is_float else made
