"""Where expressions are worked out: the columns of a table, whole or in groups, and the rules for expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from onward.errors import UnsupportedError
from onward.formats.dataframe.polars import column_type
from onward.formats.dataframe.types import ColumnType
from onward.frontends.dataframe.columns.column import Column, Rows, common_rows, null_of, taken
from onward.frontends.dataframe.polars.plan import Expr, Node
from onward.frontends.dataframe.tensors.text.pattern_sets import Dialect
from onward.graph.build import Builder, Tensor

Rule = Callable[["Scope", Expr], Column]
RULES: dict[str, Rule] = {}
"""By kind of expression."""


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register what a kind of expression is in a graph."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


class Grouping:
    """Groups of the rows of a table: of these rows, and of others that were chosen from them."""

    def __init__(self, groups: Any, rows: Rows, of: Rows) -> None:
        self.groups = groups
        """As `tensors.keys` has them."""
        self.rows = rows
        """One for each group."""
        self._groups = {of: groups}
        self._chosen: Callable[[Any, Tensor], Any] | None = None

    def within(self, rows: Rows) -> Any:
        """The groups of some rows."""
        found = self._groups.get(rows)
        if found is None:
            raise UnsupportedError("rows of another table stand in a group: compute both in one table")
        return found

    def knows(self, rows: Rows) -> bool:
        return rows in self._groups

    def add(self, rows: Rows, groups: Any) -> None:
        self._groups[rows] = groups


class Scope:
    """Works out expressions on the columns of a table. With `grouping`, aggregates are one value for each group."""

    def __init__(
        self,
        op: Builder,
        columns: Mapping[str, Column],
        rows: Rows,
        reference: Callable[[Node], Column],
        grouping: Grouping | None = None,
        nan_is_null: bool = False,
    ) -> None:
        self.op = op
        self.columns = columns
        self.rows = rows
        self.reference = reference
        self.grouping = grouping
        self.nan_is_null = nan_is_null
        """Whether it is as in pandas: NaN is the null of floats, and comparisons with null are false."""
        self._known: dict[int, Column] = {}
        self._shared: dict[Any, Any] = {}

    def __call__(self, expr: Expr) -> Column:
        """The column that an expression gives."""
        if id(expr) not in self._known:
            found = RULES.get(expr.kind)
            if found is None:
                raise UnsupportedError(f"`{spoken(expr.kind)}` of Polars has no form in a graph")
            self._known[id(expr)] = found(self, expr)
        return self._known[id(expr)]

    def all(self, expr: Expr) -> list[Column]:
        """What it is computed from, side by side."""
        return self.beside(*(self(each) for each in expr.args))

    def beside(self, *columns: Column) -> list[Column]:
        """Columns of the same rows: the value of a group stands at each of its rows."""
        grouping = self.grouping
        if grouping is None:
            common_rows(*columns)
            return list(columns)
        wide = [column.rows for column in columns if not column.is_scalar and column.rows is not grouping.rows]
        if not wide or all(column.rows is not grouping.rows for column in columns):
            common_rows(*columns)
            return list(columns)
        return [self.spread(column, wide[0]) if column.rows is grouping.rows else column for column in columns]

    def spread(self, column: Column, rows: Rows) -> Column:
        """The value of its group at each row; null for rows in none."""
        assert self.grouping is not None
        groups = self.grouping.within(rows)
        return taken(column, groups.codes, rows)

    @property
    def dialect(self) -> Dialect:
        """Whose regular expressions and letters they are: those of PyArrow, in which pandas has texts, or of Rust."""
        return "arrow" if self.nan_is_null else "rust"

    def shared(self, key: Any, make: Callable[[], Any]) -> Any:
        """Made once in this scope."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def in_groups(self, grouping: Grouping) -> Scope:
        """The same columns, in groups."""
        return Scope(self.op, self.columns, self.rows, self.reference, grouping, self.nan_is_null)

    def rearranged(self, positions: Tensor) -> Scope:
        """The same columns, their rows at other positions."""
        rows = Rows(self.op.names.value("rows"), lambda: self.rows.count)
        columns = _Taken(self.columns, positions, rows)
        return Scope(self.op, columns, rows, self.reference, None, self.nan_is_null)

    def type(self, expr: Expr) -> ColumnType:
        found = column_type(expr.dtype, f"the result of `{spoken(expr.kind)}`")
        return replace(found, masked=self._masked(expr)) if self.nan_is_null else found

    def _masked(self, expr: Expr) -> bool:
        """Whether a dtype of pandas with `pd.NA` goes into an expression, whose result has such a one then."""
        known = [each for each in expr.args if each.kind != "literal" and not each.dtype.is_nested()]
        return any(self(each).type.masked for each in known if each.dtype.base_type() not in (pl.Boolean, pl.Null))

    def decided(self, column: Column, *operands: Column, otherwise: bool = False) -> Column:
        """Truth values of comparisons: null in Polars, and decided in pandas, where a value is null without `pd.NA`."""
        if not self.nan_is_null or column.null is None or any(operand.type.masked for operand in operands):
            return column
        op = self.op
        value = op.Or(column.value, column.null) if otherwise else op.And(column.value, op.Not(column.null))
        return replace(column, value=value, null=None)

    def typed(self, expr: Expr, type: ColumnType) -> Column:
        """An argument of a type; a null without a type is a null of it."""
        if expr.dtype.base_type() == pl.Null:
            return null_of(self.op, type)
        return self(expr)


class _Taken(Mapping[str, Column]):
    """Columns at other positions, taken when they are read."""

    def __init__(self, columns: Mapping[str, Column], positions: Tensor, rows: Rows) -> None:
        self._columns, self._positions, self._rows = columns, positions, rows
        self._made: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self._made:
            self._made[name] = taken(self._columns[name], self._positions, self._rows)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


_SPOKEN = {
    "binary.Plus": "+",
    "binary.Minus": "-",
    "binary.Multiply": "*",
    "binary.TrueDivide": "/",
    "binary.Divide": "/",
    "binary.FloorDivide": "//",
    "binary.Modulus": "%",
}


def spoken(kind: str) -> str:
    """What a kind of expression is called by people."""
    if kind in _SPOKEN:
        return _SPOKEN[kind]
    family, _, name = kind.rpartition(".")
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
    return (
        f"{family}.{words}"
        if family in ("str", "dt", "list", "struct", "arr")
        else f"{family}_{words}"
        if family
        in (
            "rolling",
            "ewm",
        )
        else words
    )


def literal_value(expr: Expr, what: str) -> Any:
    """The value of an argument that has to be a constant."""
    inner = expr
    while inner.kind in ("cast", "alias"):
        inner = inner.args[0]
    if inner.kind != "literal" or isinstance(inner.options[0], pl.Series):
        raise UnsupportedError(f"{what} has to be a constant")
    return inner.options[0]


def is_constant(column: Column) -> bool:
    """Whether it is a single value that is known now."""
    return column.is_scalar and column.value.value.const_value is not None


def constant_of(column: Column) -> Any:
    """The value that `is_constant` found."""
    tensor = column.value.value.const_value
    assert tensor is not None
    return tensor.numpy().reshape(-1)[0]


def explicit(column: Column) -> Column:
    """The same with all its nulls in a mask, those that NaN and NAT tell too."""
    return replace(column, null=column.missing())


def of_rows(column: Column, rows: Rows) -> Column:
    """The same values, as a column of other rows that are as many."""
    return replace(column, rows=rows)
