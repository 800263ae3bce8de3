"""Where the rows of a table find their keys in another one: a constant, or one computed in the same graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.rows.keys import group_rows
from onward.frontends.dataframe.tensors.rows.rows import (
    FLOATS,
    INT64,
    STRING,
    column,
    cut,
    either,
    flat,
    length,
    numbered,
    positions,
    rows_of,
    scattered,
    shown,
)
from onward.frontends.dataframe.tensors.rows.sorting import SortKey
from onward.graph.build import Tensor


@dataclass(frozen=True)
class TableKey:
    """A key column of a constant table: its values, and which of them are null."""

    values: npt.NDArray[Any]
    null: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class JoinKey:
    """A key column of the rows. NaN is a null if `nan_is_null`; nulls find nulls if `nulls_match`, as in pandas."""

    value: Tensor
    null: Tensor | None = None
    nan_is_null: bool = False
    nulls_match: bool = True


def constant_codes(key: JoinKey, table: TableKey) -> tuple[Tensor, npt.NDArray[np.int64], int]:
    """The number of each row's key among the different ones of the table, or -1; those of the table; how many."""
    x = key.value
    op = x.op
    nulls = np.zeros(len(table.values), bool) if table.null is None else np.asarray(table.null, bool)
    if key.nan_is_null and table.values.dtype.kind == "f":
        nulls = nulls | np.isnan(table.values)
    numbers = np.full(len(table.values), -1, np.int64)
    kept = table.values[~nulls]
    distinct, numbers[~nulls] = _distinct(kept, x.dtype)
    code = _encoded(flat(x), distinct)
    null = None if key.null is None else shown(key.null, x)
    if key.nan_is_null and x.dtype in FLOATS:
        null = either(null, op.IsNaN(flat(x)))
    of_null = len(distinct) if key.nulls_match and nulls.any() else -1
    numbers[nulls] = of_null
    if null is not None:
        code = op.Where(null, op.index(of_null), code)
    return code, numbers, len(distinct) + 1


def _distinct(values: npt.NDArray[Any], dtype: ir.DataType) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """The different values as Python's own, in order of appearance, and the number of each."""
    python = [str(v) if dtype == STRING else float(v) if dtype in FLOATS else int(v) for v in values]
    known: dict[Any, int] = {}
    numbers = [known.setdefault("nan" if v != v else v, len(known)) for v in python]
    return [float("nan") if v == "nan" and dtype in FLOATS else v for v in known], np.asarray(numbers, np.int64)


def _encoded(x: Tensor, distinct: Sequence[Any]) -> Tensor:
    """The place of each value of (N,) among `distinct`, -1 for others: (N,) int64."""
    op = x.op
    if not distinct:
        return op.Expand(op.index(-1), length(x))
    places = list(range(len(distinct)))
    if x.dtype == STRING:
        return _label_encoder(x, keys_strings=list(distinct), values_int64s=places)
    if x.dtype not in FLOATS:
        signed = [v - 2**64 if v >= 2**63 else v for v in distinct]
        return _label_encoder(x.cast(INT64), keys_int64s=signed, values_int64s=places)
    return _label_encoder(
        x.cast(ir.DataType.DOUBLE),
        keys_tensor=np.asarray(distinct, np.float64),
        values_tensor=np.asarray(places, np.float64),
    ).cast(INT64)


def _label_encoder(x: Tensor, **attributes: Any) -> Tensor:
    tensors = {
        name: ir.tensor(value, name=name) if isinstance(value, np.ndarray) else value
        for name, value in attributes.items()
    }
    if "keys_tensor" in tensors:
        tensors["default_tensor"] = ir.tensor(np.asarray([-1.0]), name="default_tensor")
    else:
        tensors["default_int64"] = -1
    return x.op.many("LabelEncoder", 1, x, domain="ai.onnx.ml", **tensors)[0]


def combined_codes(keys: Sequence[JoinKey], table: Sequence[TableKey]) -> tuple[Tensor, npt.NDArray[np.int64]]:
    """The number of each row's keys among the different ones of the table, -1 for others; and those of the table."""
    code, numbers, _ = constant_codes(keys[0], table[0])
    op = code.op
    for key, values in zip(keys[1:], table[1:], strict=True):
        other, others, several = constant_codes(key, values)
        known = (numbers >= 0) & (others >= 0)
        pairs, numbered_pairs = np.unique(numbers[known] * several + others[known], return_inverse=True)
        numbers = np.full(len(numbers), -1, np.int64)
        numbers[known] = numbered_pairs
        pair = op.Where(other >= 0, code * several + other, op.index(-1))
        pair = op.Where(code >= 0, pair, op.index(-1))
        code = _encoded(pair, pairs.tolist())
    return code, numbers


def find_rows(keys: Sequence[JoinKey], table: Sequence[TableKey]) -> tuple[Tensor, Tensor]:
    """The row of the constant table with the same keys: (N,) int64, 0 for none; and whether there is one, (N, 1).

    Refused if the table has two rows with the same keys.
    """
    code, numbers = combined_codes(keys, table)
    op = code.op
    known = numbers[numbers >= 0]
    if len(known) != len(np.unique(known)):
        raise UnsupportedError(
            "a merge with a table in which keys come twice cannot be converted here: drop_duplicates of the table first"
        )
    found = code >= 0
    rows = np.zeros(max(len(known), 1), np.int64)
    rows[known] = np.flatnonzero(numbers >= 0)
    place = op.Where(found, code, op.index(0))
    return op.Gather(op.ints(rows.tolist()), place), column(found)


def find_all_rows(
    keys: Sequence[JoinKey], table: Sequence[TableKey], keep_unmatched: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """All pairs of a row and a row of the constant table with the same keys, in the order of the rows, then the table.

    Gives the rows (M,), the rows of the table (M,), and whether there is one, (M, 1): rows that find none
    stay, with row 0, if `keep_unmatched` (a left join), and go otherwise (an inner one).
    """
    code, numbers = combined_codes(keys, table)
    op = code.op
    order = np.argsort(numbers, kind="stable")
    order = order[numbers[order] >= 0]
    many = int(numbers.max(initial=-1)) + 1
    amounts = np.bincount(numbers[order], minlength=many) if many else np.zeros(0, np.int64)
    begins = np.concatenate([np.cumsum(amounts) - amounts, [0]]).astype(np.int64)
    found = code >= 0
    place = op.Where(found, code, op.index(many))
    amount = op.Gather(op.ints([*amounts.tolist(), int(keep_unmatched)]), place)
    here = rows_of(amount > 0)
    lengths = op.Gather(amount, here)
    ends = op.CumSum(lengths, op.index(0))
    starts = ends - lengths
    size = op.ReduceSum(lengths, keepdims=1)
    ones = op.Expand(op.index(1), length(here))
    number = op.CumSum(scattered(ones, starts, op.Expand(op.index(0), size)), op.index(0)) - 1
    rows = op.Gather(here, number)
    offset = numbered(size) - op.Gather(starts, number)
    matched = op.Gather(found, rows)
    at = op.Where(matched, op.Gather(op.Gather(op.ints(begins.tolist()), place), rows) + offset, op.index(len(order)))
    return rows, op.Gather(op.ints([*order.tolist(), 0]), at), column(matched)


def find_computed_rows(keys: Sequence[SortKey], table: Sequence[SortKey]) -> tuple[Tensor, Tensor]:
    """The first row of a computed table with the same keys: (N,) int64, 0 for none; and whether there is one, (N, 1).

    Nulls find nulls. Key columns have the same dtypes in both.
    """
    op = keys[0].value.op
    joined = [_stacked(own, other) for own, other in zip(table, keys, strict=True)]
    groups = group_rows(joined)
    many = length(table[0].value)
    first = op.Gather(groups.first, cut(groups.codes, many, length(groups.codes)))
    found = op.Less(first, many)
    return op.Where(found, first, op.index(0)), column(found)


def _stacked(first: SortKey, second: SortKey) -> SortKey:
    op = first.value.op
    null = None
    if first.null is not None or second.null is not None:
        parts = [column(_nulls(key)) for key in (first, second)]
        null = op.Concat(*parts, axis=0)
    return SortKey(op.Concat(first.value, second.value, axis=0), null, nan_is_null=first.nan_is_null)


def _nulls(key: SortKey) -> Tensor:
    op = key.value.op
    return shown(key.null, key.value) if key.null is not None else op.Less(positions(key.value), op.index(0))
