"""A column of a graph under construction, and the rows that columns share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.types import BOOL, NAT, ColumnType
from onward.graph.build import Builder, Tensor


class Rows:
    """The rows that some columns have in common. Columns of other rows do not stand beside them.

    Rows chosen from other rows know these, and their positions in them, one after the other. Rows that were numbered
    anew know the rows that they were; those of an array have no labels, and stand beside all that are so many, one for
    one, because they are the same.
    """

    def __init__(
        self,
        name: str,
        count: Callable[[], Tensor],
        parent: Rows | None = None,
        positions: Tensor | None = None,
        *,
        same: Rows | None = None,
        is_array: bool = False,
        repeats: bool = False,
    ) -> None:
        self.name = name
        """What the dimension is called in the shapes of tensors that are known to have an element in every row."""
        self._make_count = count
        self._count: Tensor | None = None
        self.parent = parent
        self.positions = positions
        self.sequence: Rows = self if same is None else same.sequence
        """The rows that these were before they lost their labels or were given others."""
        self.is_array = is_array
        self.repeats = repeats
        """Whether a row of the parent may stand here several times, so that none has one place to go back to."""

    def unlabelled(self) -> Rows:
        """The same rows as those of an array."""
        return Rows(self.name, lambda: self.count, same=self, is_array=True)

    def takes(self, other: Rows) -> bool:
        """Whether a column of other rows stands beside those of these as it is."""
        return other is self or other is ONE or (other.is_array and other.sequence is self.sequence)

    @property
    def count(self) -> Tensor:
        """How many there are: a tensor of one int64."""
        if self._count is None:
            self._count = self._make_count()
        return self._count


ONE = Rows("1", lambda: None)  # type: ignore[arg-type, return-value]
"""The rows of a single number, such as the mean of a column: it stands beside any column."""


@dataclass(frozen=True, eq=False)
class Column:
    """`value` is a tensor (N, 1), or one of a single element where all rows have the same; so is `null`.

    What `value` has where `null` is true is not defined. Without `null`, NaN is the null of floats that
    have no mask, and NAT that of ticks; other types have none.
    """

    value: Tensor
    type: ColumnType
    rows: Rows
    null: Tensor | None = None
    is_blank: bool = False
    """Whether its nulls have the empty value of its type: 0, the empty text."""

    @property
    def op(self) -> Builder:
        return self.value.op

    @property
    def is_scalar(self) -> bool:
        return self.rows is ONE

    def missing(self) -> Tensor | None:
        """Where it is null, whatever tells it; None if it cannot be."""
        found = self.null
        if self.type.nan_is_null:
            found = either(found, self.op.IsNaN(self.value))
        elif self.type.is_time and found is None:
            found = self.op.Equal(self.value, self.op.like(NAT, self.value))
        return found

    def masked(self) -> Column:
        """The same with its nulls in a mask, but for NaN."""
        return replace(self, null=self.missing()) if self.type.is_time else self

    def of(self, value: Tensor, type: ColumnType | None = None) -> Column:
        """Another value of the same rows and nulls."""
        return Column(value, type or self.type, self.rows, self.null)

    def without_nulls(self) -> Column:
        return replace(self, null=None)

    def with_null(self, null: Tensor | None) -> Column:
        """Null there as well, told as its type tells it."""
        if null is None:
            return self
        if self.type.nan_is_null:
            return replace(self, value=self.op.Where(null, self.op.like(float("nan"), self.value), self.value))
        return replace(self.masked(), null=either(self.masked().null, null), is_blank=False)

    def expanded(self) -> Column:
        """With an element in every row."""
        if self.is_scalar:
            return self
        return replace(
            self, value=self._full(self.value), null=self.null if self.null is None else self._full(self.null)
        )

    def _full(self, tensor: Tensor) -> Tensor:
        if is_full(tensor):
            return tensor
        return full(self.op.Expand(tensor, self.op.Concat(self.rows.count, self.op.ints([1]), axis=0)), self.rows)

    def flat(self) -> Tensor:
        """The values of all rows in one dimension."""
        return self.op.Reshape(self.expanded().value, self.op.ints([-1]))

    def cast(self, type: ColumnType) -> Column:
        """Its tensor in another dtype, nulls told as that type tells them."""
        if type.dtype == self.type.dtype:
            return self if type == self.type else replace(self, type=type)
        lost = None if self.type.nan_is_null and type.nan_is_null else self.missing()
        made = replace(self, value=self.value.cast(type.dtype), type=type, null=None)
        return made if lost is None else made.with_null(lost)


# fmt: off
ELEMENTWISE = {
    "Abs", "Add", "And", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Clip", "Cos", "Div",
    "Equal", "Exp", "Floor", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "LabelEncoder", "Less", "LessOrEqual",
    "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "RegexFullMatch", "Round", "Sign",
    "Sin", "Sqrt", "StringConcat", "Sub", "Tanh", "TreeEnsemble", "Where", "Xor",
}
# fmt: on
"""Ops whose result has an element in every row if an input has."""


def is_full(tensor: Tensor) -> bool:
    """Whether it is known to have an element in every row, not one for all."""
    return _full_rows(tensor.value, 8) is not None


def _full_rows(value: ir.Value, depth: int) -> str | None:
    """What the rows are called of which a value has each; from its shape, or from what it is computed of."""
    if value.shape is not None and value.shape.rank() == 2:
        first = value.shape[0]
        if isinstance(first, int):
            return None if first == 1 else str(first)
        if first.value is not None:
            return str(first.value)
    node = value.producer()
    if node is None or depth == 0:
        return None
    if node.op_type in ELEMENTWISE:
        given = [each for each in node.inputs if each is not None]
    elif node.op_type == "Gather" and node.inputs[0] is not None and _rank(node.inputs[0]) == 1:
        given = [each for each in node.inputs[1:] if each is not None]
    else:
        return None
    found = next((rows for each in given if (rows := _full_rows(each, depth - 1)) is not None), None)
    if found is not None:
        value.shape = ir.Shape([found, 1])
    return found


def _rank(value: ir.Value) -> int | None:
    return None if value.shape is None else value.shape.rank()


def full(tensor: Tensor, rows: Rows) -> Tensor:
    """The same, now known to have an element in every row."""
    tensor.value.shape = ir.Shape([1 if rows is ONE else rows.name, 1])
    return tensor


def either(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """True where one of two masks is; None is a mask that is false everywhere."""
    if a is None or b is None:
        return b if a is None else a
    return a if a.value is b.value else a.op.Or(a, b)


def both(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """True where both of two masks are; None is a mask that is true everywhere."""
    if a is None or b is None:
        return b if a is None else a
    return a if a.value is b.value else a.op.And(a, b)


def common_rows(*columns: Column) -> Rows:
    """The rows of columns that are to stand beside one another."""
    found = [column.rows for column in columns if not column.is_scalar]
    found.sort(key=lambda rows: rows.is_array)
    if any(not found[0].takes(rows) for rows in found):
        raise UnsupportedError(
            "columns of different rows stand side by side: one of them was filtered, sorted, grouped or joined before. "
            "Compute both before or both after that step"
        )
    return found[0] if found else ONE


def elementwise(function: Callable[..., Tensor], type: ColumnType, *columns: Column) -> Column:
    """A function of the values, null wherever one of them is; of floats without mask NaN passes through by itself."""
    null: Tensor | None = None
    given = [column.masked() for column in columns]
    for column in given:
        lost = column.null
        if column.type.nan_is_null and not type.is_float:
            lost = column.missing()
        null = either(null, lost)
    rows, values = common_rows(*columns), [column.value for column in given]
    value = function(*values)
    if any(is_full(tensor) for tensor in values) and not is_full(value):
        full(value, rows)
    return Column(value, type, rows).with_null(null)


def chosen(condition: Tensor, a: Column, b: Column, type: ColumnType, rows: Rows) -> Column:
    """`a` where the condition holds and `b` elsewhere, both of `type`."""
    op = a.op
    a, b = a.masked(), b.masked()
    value = op.Where(condition, a.value, b.value)
    if a.null is None and b.null is None:
        return Column(value, type, rows)
    no = op.constant(np.asarray(False))
    return Column(value, type, rows, op.Where(condition, a.null or no, b.null or no))


def truth(column: Column) -> Tensor:
    """A column of booleans as a mask: null is false."""
    if not column.type.is_bool:
        raise UnsupportedError(f"a condition is a column of booleans, not of {column.type}")
    return column.value if column.null is None else column.op.And(column.value, column.op.Not(column.null))


def scalar(op: Builder, value: Any, type: ColumnType) -> Column:
    """One value that stands beside any column; None is null."""
    if value is None:
        return null_of(op, type)
    if type.is_text:
        return Column(text_constant(op, [value]), type, ONE)
    array = np.asarray(value).astype(type.dtype.numpy()).reshape(1, 1)
    return Column(op.constant(array, type.dtype), type, ONE)


def null_of(op: Builder, type: ColumnType) -> Column:
    """A null of a type, that stands beside any column."""
    if type.is_text:
        return Column(text_constant(op, [""]), type, ONE, op.constant(np.asarray([[True]])))
    empty = float("nan") if type.nan_is_null else NAT if type.is_time else 0
    value = op.constant(np.asarray([[empty]]).astype(type.dtype.numpy()), type.dtype)
    return Column(value, type, ONE, None if not type.null_is_mask else op.constant(np.asarray([[True]])))


def text_constant(op: Builder, words: list[str]) -> Tensor:
    return op.strings(np.asarray(words, dtype=object).reshape(-1, 1))


def constant(op: Builder, values: list[Any], type: ColumnType, rows: Rows) -> Column:
    """A column of a constant table; None is null."""
    lost = np.asarray([[value is None] for value in values], bool).reshape(-1, 1)
    if type.is_text:
        tensor = text_constant(op, ["" if value is None else value for value in values])
    else:
        empty = float("nan") if type.nan_is_null else NAT if type.is_time else 0
        array = np.asarray([empty if value is None else value for value in values]).astype(type.dtype.numpy())
        tensor = op.constant(array.reshape(-1, 1), type.dtype)
    made = Column(tensor, type, rows)
    return replace(made, null=op.constant(lost)) if lost.any() and type.null_is_mask else made


def from_table(op: Builder, values: list[Any], type: ColumnType, positions: Tensor, rows: Rows) -> Column:
    """The value that a constant table has at each position (N, 1); None in it is null."""
    table = constant(op, values, type, rows)
    cells = table.value.value.const_value
    assert cells is not None
    if type.is_text:
        flat = op.strings(np.asarray(["" if value is None else value for value in values], object))
    else:
        flat = op.constant(cells.numpy().reshape(-1), type.dtype)
    null = None
    if table.null is not None:
        null = op.Gather(op.constant(np.asarray([value is None for value in values])), positions, axis=0)
    return Column(op.Gather(flat, positions, axis=0), type, rows, null, is_blank=True)


def taken(column: Column, positions: Tensor, rows: Rows, *, outside: Tensor | None = None) -> Column:
    """The elements at positions, one after the other; null where `outside` is true, whatever the position there is.

    `positions` is (M,) or (M, 1); the result has `rows`, of which there are M.
    """
    if column.is_scalar:
        return replace(column, rows=rows).expanded().with_null(outside)
    return _gathered(column.expanded(), positions, rows).with_null(outside)


def looked_up(column: Column, positions: Tensor, rows: Rows, outside: Tensor | None) -> Column:
    """As `taken`, of a column that may have no rows at all; where `outside` is true, the position is 0."""
    return _gathered(_with_one_more(column.expanded()), positions, rows).with_null(outside)


def _gathered(column: Column, positions: Tensor, rows: Rows) -> Column:
    op = column.op
    flat = positions if positions.rank == 1 else op.Reshape(positions, op.ints([-1]))
    null = None if column.null is None else full(op.Gather(column.null, flat, axis=0), rows)
    return Column(full(op.Gather(column.value, flat, axis=0), rows), column.type, rows, null)


def filtered(columns: list[Column], mask: Tensor, rows: Rows) -> tuple[list[Column], Rows]:
    """The rows of some columns where a mask (N, 1) holds."""
    op = mask.op
    flat = op.Reshape(Column(mask, BOOL, rows).expanded().value, op.ints([-1]))
    return ordered(columns, op.Squeeze(op.NonZero(flat), op.ints([0])), rows)


def ordered(columns: list[Column], positions: Tensor, rows: Rows) -> tuple[list[Column], Rows]:
    """Rows in another order, or some of them, by their positions (M,)."""
    kept = Rows(positions.op.names.value("rows"), lambda: positions.op.Shape(positions), rows, positions)
    return [taken(column, positions, kept) for column in columns], kept


def aligned(column: Column, rows: Rows) -> Column | None:
    """A column of rows that were chosen from `rows`, back at their places, null elsewhere; None if they were not."""
    if column.rows is rows or column.is_scalar:
        return column
    if rows.takes(column.rows):
        return replace(column, rows=rows)
    step = column.rows
    if step.parent is None or step.positions is None or step.parent.is_array or step.repeats:
        return None
    column, op = column.expanded(), column.op
    size = op.Concat(step.parent.count, op.ints([1]), axis=0)
    places = op.Reshape(step.positions, op.ints([-1, 1]))
    back = op.ScatterND(op.Expand(op.ints([-1]), size), places, _numbers(op, step.count))
    found = op.GreaterOrEqual(back, op.index(0))
    # Position 0 stands for rows that were left out; one row is added, so that there is always one to take.
    padded = _with_one_more(column)
    made = _gathered(padded, op.Max(back, op.index(0)), step.parent)
    return aligned(made.with_null(op.Not(found)), rows)


def brought_to(column: Column, rows: Rows) -> Column | None:
    """A column at the labels of `rows`: as it is, at the rows that they were chosen from, or back at their places."""
    if column.is_scalar or rows.takes(column.rows):
        return column if column.is_scalar else replace(column, rows=rows)
    if rows.parent is not None and rows.positions is not None and not rows.parent.is_array:
        above = brought_to(column, rows.parent)
        if above is not None:
            return taken(above, rows.positions, rows)
    return aligned(column, rows)


def _numbers(op: Builder, count: Tensor) -> Tensor:
    """0, 1, 2, … as (N, 1)."""
    return op.Unsqueeze(op.Range(op.index(0), op.Squeeze(count), op.index(1)), op.ints([1]))


def positions_of(op: Builder, rows: Rows) -> Tensor:
    """The number of each row, as (N, 1)."""
    return _numbers(op, rows.count)


def _with_one_more(column: Column) -> Column:
    op, extra = column.op, null_of(column.op, column.type)
    value = op.Concat(column.value, extra.value, axis=0)
    if column.null is None:
        return replace(column, value=value)
    return replace(column, value=value, null=op.Concat(column.null, op.constant(np.asarray([[True]])), axis=0))


def guarded(column: Column, bad: Tensor, problem: str) -> Column:
    """The same column; running the graph fails if `bad` holds anywhere, at a node that is named after the problem.

    A graph cannot raise an error by itself, so an element is taken that is not there.
    """
    op = column.op
    count = op.ReduceSum(op.Cast(bad, to=int(ir.DataType.INT32)), keepdims=1)
    is_int = column.type.dtype == ir.DataType.INT64
    passed = op.ints([0]) if is_int else op.constant(np.asarray([True]))
    scope, op.scope = op.scope, f"{op.scope}{problem}: "
    fine = op.Gather(passed, count)
    op.scope = scope
    if is_int:  # A sum takes a third of the time of Where.
        return replace(column, value=column.value + fine)
    return replace(column, value=op.Where(fine, column.value, null_of(op, column.type).value))
