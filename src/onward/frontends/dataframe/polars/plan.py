"""The plan of a LazyFrame as nodes and expressions of our own. All that is private in Polars is used here alone.

Polars gives out its plan, typed and with all casts written down, through `LazyFrame._ldf.visit()`. It is meant for
engines that run plans, and has a version of its own: `VERSIONS` are those that are tested. No optimization is on, so
that nothing of a frame is worked out before its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from onward.errors import UnsupportedError
from onward.hub.wording import quote

VERSIONS = ((16, 0),)
"""Of the plans of Polars 2.1."""
_FAMILIES = {
    "StringFunction": "str",
    "TemporalFunction": "dt",
    "BooleanFunction": "bool",
    "RollingFunction": "rolling",
    "RollingFunctionBy": "rolling_by",
    "EwmFunction": "ewm",
    "ListFunction": "list",
    "ArrayFunction": "arr",
    "StructFunction": "struct",
}
SOURCE = "onward frame"
"""What the frame without data is called in a plan that is shown."""
REFERENCE = "onward column "
"""What the name of a literal begins with that stands for a column of another frame."""


@dataclass(frozen=True, eq=False)
class Expr:
    """`kind` is `column`, `literal`, `cast`, `agg.sum`, `binary.Plus`, `fill_null`, `str.Uppercase` and so on."""

    kind: str
    dtype: pl.DataType
    args: tuple[Expr, ...] = ()
    options: tuple[Any, ...] = ()
    node: Node | None = None
    """Of a `reference`, the plan of one column that it stands for."""


@dataclass(frozen=True, eq=False)
class Node:
    """A step on tables. `exprs` are what it computes, by the names that the results have."""

    kind: str
    inputs: tuple[Node, ...]
    schema: Mapping[str, pl.DataType]
    exprs: tuple[tuple[str, Expr], ...] = ()
    options: tuple[Any, ...] = ()
    table: pl.DataFrame | None = None
    """Of a `constant`, the frame."""


NEEDS_ROWS = "needs rows of the frame while it runs"


def needs_rows(name: str) -> str:
    """What someone is told who collects a frame without data."""
    return (
        f"the function {quote(name)} {NEEDS_ROWS}, as `collect()` gives them: return the LazyFrame, and write what "
        "depends on values as expressions, such as `pl.when`"
    )


def source(schema: Mapping[str, pl.DataType], name: str) -> tuple[pl.LazyFrame, Callable[..., Any]]:
    """A frame of a schema without any data, and what tells it from others in a plan. Whoever collects it is refused."""

    def needs_data(*_: Any) -> Iterator[pl.DataFrame]:
        raise UnsupportedError(needs_rows(name))

    frame = register_io_source(needs_data, schema=dict(schema), validate_schema=False, explain_name=SOURCE)
    return frame, needs_data


@dataclass
class Reader:
    """Reads plans. Equal parts of them become the same objects, so that their rows are the same too."""

    source: Callable[..., Any]
    references: Mapping[str, tuple[pl.LazyFrame, pl.Expr]] = field(default_factory=dict)
    _known: dict[Any, Any] = field(default_factory=dict)
    _tables: list[pl.DataFrame] = field(default_factory=list)

    def read(self, frame: pl.LazyFrame) -> Node:
        flags = pl.QueryOptFlags.none()
        try:
            plan = frame._ldf.with_optimizations(flags._pyoptflags).visit()
            version = plan.version()
        except AttributeError as error:
            raise _other_version() from error
        except NotImplementedError as error:
            raise _not_shown(error) from error
        if tuple(version) not in VERSIONS:
            raise _other_version()
        return _Walk(self, plan).node(plan.get_node())

    def same(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made before for an equal key."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def table(self, frame: pl.DataFrame) -> int:
        for number, known in enumerate(self._tables):
            if known.schema == frame.schema and known.equals(frame, null_equal=True):
                return number
        self._tables.append(frame)
        return len(self._tables) - 1

    def constant(self, number: int) -> pl.DataFrame:
        return self._tables[number]


def _other_version() -> UnsupportedError:
    return UnsupportedError(
        f"the plans of Polars {pl.__version__} are of a version that is not known: install polars 2.1 (`polars~=2.1.0`)"
    )


def _from_elsewhere() -> UnsupportedError:
    return UnsupportedError(
        "a frame that is read from elsewhere has no form in a graph: collect it before the function"
    )


def _not_shown(error: BaseException) -> UnsupportedError:
    text = str(error)
    if "anonymous" in text or "opaque python" in text:
        return UnsupportedError(
            "`map_elements` and `map_batches` run Python code on values, which a graph cannot: use expressions"
        )
    return UnsupportedError(f"Polars does not show this part of its plan ({text}): write it with other expressions")


class _Walk:
    """Through one plan."""

    def __init__(self, reader: Reader, plan: Any) -> None:
        self.reader = reader
        self.plan = plan

    def node(self, number: int) -> Node:
        plan = self.plan
        plan.set_node(number)
        try:
            shown = plan.view_current_node()
            inputs = list(plan.get_inputs())
            found = list(plan.get_exprs())
            schema = dict(plan.get_schema())
        except NotImplementedError as error:
            raise _not_shown(error) from error
        kind = type(shown).__name__
        if kind == "Scan":
            raise _from_elsewhere()
        options = _NODES.get(kind, lambda _: None)(shown)
        if options is None:
            raise UnsupportedError(f"the step {kind} of a plan of Polars has no form in a graph")
        if kind == "PythonScan":
            return self._scan(shown, schema)
        if kind == "DataFrameScan":
            return self._table(pl.DataFrame._from_pydf(shown.df), schema)
        sides = self._sides(kind, shown, inputs, found)
        exprs = []
        for side, each in zip(sides, found, strict=True):
            plan.set_node(side)
            exprs.append((each.output_name, self.expr(each.node, plan.get_dtype)))
        below = tuple(self.node(each) for each in inputs)
        key = (
            kind,
            tuple(map(id, below)),
            tuple((name, id(expr)) for name, expr in exprs),
            repr(options),
            repr(schema),
        )
        made: Node = self.reader.same(key, lambda: Node(kind, below, schema, tuple(exprs), options))
        return made

    @staticmethod
    def _sides(kind: str, shown: Any, inputs: list[int], found: list[Any]) -> list[int]:
        """The input that each expression reads: of a join, first those of the left."""
        if kind != "Join":
            return [inputs[0]] * len(found) if inputs else []
        left, right = len(shown.left_on), len(shown.right_on)
        if left + right != len(found):
            raise UnsupportedError("a join of Polars on a condition has no form in a graph: join on columns")
        return [inputs[0]] * left + [inputs[1]] * right

    def _scan(self, shown: Any, schema: Mapping[str, pl.DataType]) -> Node:
        function = getattr(shown.options[0], "io_source", None)
        if function is not self.reader.source:
            raise _from_elsewhere()
        made: Node = self.reader.same(("scan", repr(schema)), lambda: Node("scan", (), schema))
        return made

    def _table(self, frame: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> Node:
        number = self.reader.table(frame.select(list(schema)))
        made: Node = self.reader.same(
            ("constant", number), lambda: Node("constant", (), schema, table=self.reader.constant(number))
        )
        return made

    def expr(self, number: int, dtype_of: Callable[[int], pl.DataType]) -> Expr:
        try:
            shown = self.plan.view_expression(number)
        except NotImplementedError as error:
            raise _not_shown(error) from error
        dtype = dtype_of(number)
        kind = type(shown).__name__
        if kind == "Literal":
            return self._literal(shown, dtype)
        reading = _EXPRS.get(kind)
        if reading is None:
            raise UnsupportedError(f"the expression {kind} of Polars has no form in a graph")
        name, numbers, options = reading(shown)
        args = tuple(self.expr(each, dtype_of) for each in numbers)
        if name == "gather" and args[0].kind == "token":
            return self._reference(args[0])
        key = (name, tuple(map(id, args)), repr(options), repr(dtype))
        made: Expr = self.reader.same(key, lambda: Expr(name, dtype, args, options))
        return made

    def _literal(self, shown: Any, dtype: pl.DataType) -> Expr:
        value = shown.value
        if isinstance(value, int | float | str | bool | None.__class__):
            key = ("literal", type(value), repr(value), repr(dtype))
            made: Expr = self.reader.same(key, lambda: Expr("literal", dtype, (), (value,)))
            return made
        if type(value).__name__ == "PySeries":
            series = pl.Series._from_pyseries(value)
            if series.name in self.reader.references:
                return self._kept(Expr("token", dtype, (), (series.name,)))
            value = series
        return self._kept(Expr("literal", dtype, (), (value,)))

    def _kept(self, expr: Expr) -> Expr:
        """An expression that is equal to no other, kept so that its number is not given to another one."""
        made: Expr = self.reader.same(("kept", id(expr)), lambda: expr)
        return made

    def _reference(self, token: Expr) -> Expr:
        frame, expr = self.reader.references[token.options[0]]
        node = self.reader.read(frame.select(expr))
        made: Expr = self.reader.same(("reference", id(node)), lambda: Expr("reference", token.dtype, (), (), node))
        return made


def _function(shown: Any) -> tuple[str, list[int], tuple[Any, ...]]:
    data = shown.function_data
    name, *options = data if isinstance(data, tuple) else (data,)
    if not isinstance(name, str):
        family, _, member = str(name).partition(".")
        name = f"{_FAMILIES.get(family, family)}.{member}"
    return name, list(shown.input), tuple(options)


def _window(shown: Any) -> tuple[str, list[int], tuple[Any, ...]]:
    keys = list(shown.partition_by or [])
    order = [] if shown.order_by is None else [shown.order_by]
    options = (len(keys), bool(order), shown.order_by_descending, shown.order_by_nulls_last)
    kind = str(getattr(shown.options, "kind", "group_to_rows"))
    return "over", [shown.function, *keys, *order], (*options, kind)


_EXPRS: dict[str, Callable[[Any], tuple[str, list[int], tuple[Any, ...]]]] = {
    "Column": lambda e: ("column", [], (e.name,)),
    "Alias": lambda e: ("alias", [e.expr], ()),
    "BinaryExpr": lambda e: (f"binary.{str(e.op).partition('.')[2]}", [e.left, e.right], ()),
    "Cast": lambda e: ("cast", [e.expr], (int(e.options),)),
    "Ternary": lambda e: ("ternary", [e.predicate, e.truthy, e.falsy], ()),
    "Function": _function,
    "Agg": lambda e: (f"agg.{e.name}", list(e.arguments), (e.options,)),
    "Len": lambda e: ("len", [], ()),
    "Window": _window,
    "Filter": lambda e: ("filter", [e.input, e.by], ()),
    "Sort": lambda e: ("sort", [e.expr], tuple(e.options)),
    "SortBy": lambda e: ("sort_by", [e.expr, *e.by], tuple(e.sort_options)),
    "Slice": lambda e: ("slice", [e.input, e.offset, e.length], ()),
    "Gather": lambda e: ("gather", [e.expr, e.idx], (bool(e.scalar),)),
    "Explode": lambda e: ("explode", [e.expr], ()),
}


def _grouping(shown: Any) -> tuple[Any, ...]:
    options = shown.options
    if options.dynamic is not None or options.rolling is not None or shown.apply:
        raise UnsupportedError(
            "groups by windows of time, or by functions of Python, have no form in a graph: group by columns, such as "
            "`dt.truncate`"
        )
    if options.slice is not None:
        raise UnsupportedError("a slice of groups has no form in a graph: aggregate them first")
    return len(shown.keys), bool(shown.maintain_order)


def _sorting(shown: Any) -> tuple[Any, ...]:
    if shown.slice is not None:
        raise UnsupportedError("a sort with a slice in one step has no form in a graph")
    return tuple(shown.sort_options)


_NODES: dict[str, Callable[[Any], tuple[Any, ...] | None]] = {
    "PythonScan": lambda _: (),
    "DataFrameScan": lambda n: () if n.selection is None else None,
    "Select": lambda _: (),
    "HStack": lambda _: (),
    "SimpleProjection": lambda _: (),
    "Reduce": lambda _: (),
    "Filter": lambda _: (),
    "Cache": lambda _: (),
    "Slice": lambda n: (n.offset, n.len),
    "Sort": _sorting,
    "Distinct": lambda n: tuple(n.options),
    "GroupBy": _grouping,
    "Join": lambda n: tuple(n.options),
    "Union": lambda n: () if n.slice is None else None,
    "HConcat": lambda n: tuple(n.options),
    "MapFunction": lambda n: tuple(n.function) if isinstance(n.function, tuple) else (n.function,),
}
