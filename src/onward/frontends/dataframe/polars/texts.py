"""Functions of Polars on text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from onward.errors import UnsupportedError
from onward.frontends.dataframe.columns.column import Column, elementwise
from onward.frontends.dataframe.polars.arithmetic import limited
from onward.frontends.dataframe.polars.compare import BOOLEAN
from onward.frontends.dataframe.polars.leaves import listed
from onward.frontends.dataframe.polars.plan import Expr
from onward.frontends.dataframe.polars.scope import Scope, literal_value, rule, spoken
from onward.frontends.dataframe.tensors.text import (
    text_case,
    text_numbers,
    text_pad,
    text_parts,
    text_search,
    text_split,
    text_tokens,
)
from onward.frontends.dataframe.tensors.text.pattern_sets import UNICODE_SPACE, Dialect
from onward.frontends.dataframe.tensors.text.patterns import Pattern, parse
from onward.graph.build import Tensor


def _text(scope: Scope, expr: Expr) -> Column:
    return scope(expr.args[0])


def _word(expr: Expr, number: int, what: str) -> str:
    value = literal_value(expr.args[number], f"{what} of `{spoken(expr.kind)}`")
    if not isinstance(value, str):
        raise UnsupportedError(f"{what} of `{spoken(expr.kind)}` has to be a constant text")
    return value


def _number(expr: Expr, number: int, what: str) -> int:
    value = literal_value(expr.args[number], f"{what} of `{spoken(expr.kind)}`")
    if not isinstance(value, int):
        raise UnsupportedError(f"{what} of `{spoken(expr.kind)}` has to be a constant number")
    return value


_PLAIN: dict[str, Callable[[Tensor, Dialect], Tensor]] = {
    "str.Uppercase": text_case.upper,
    "str.Lowercase": text_case.lower,
    "str.Titlecase": text_case.title,
    "str.LenChars": lambda x, _: text_parts.length(x),
    "str.LenBytes": lambda x, _: text_parts.byte_length(x),
    "str.Reverse": lambda x, _: text_parts.reverse(x),
}


@rule(*_PLAIN)
def plain(scope: Scope, expr: Expr) -> Column:
    type = scope.type(expr)
    return elementwise(lambda x: _PLAIN[expr.kind](x, scope.dialect).cast(type.dtype), type, _full(_text(scope, expr)))


def _full(column: Column) -> Column:
    """Functions on text take (N, 1)."""
    return column if column.is_scalar else column.expanded()


@rule("str.StartsWith", "str.EndsWith")
def ends(scope: Scope, expr: Expr) -> Column:
    word = _word(expr, 1, "the text")
    function = text_search.starts_with if expr.kind == "str.StartsWith" else text_search.ends_with
    column = _full(_text(scope, expr))
    return scope.decided(elementwise(lambda x: function(x, word), BOOLEAN, column), column)


@rule("str.Contains")
def contains(scope: Scope, expr: Expr) -> Column:
    literal, _ = expr.options
    word = _word(expr, 1, "the pattern")

    def found(x: Tensor) -> Tensor:
        return text_search.contains_text(x, word) if literal else text_search.contains(x, word, dialect=scope.dialect)

    column = _full(_text(scope, expr))
    return scope.decided(elementwise(found, BOOLEAN, column), column)


@rule("str.ContainsAny")
def contains_any(scope: Scope, expr: Expr) -> Column:
    if expr.options[0]:
        raise UnsupportedError("`contains_any` without regard to case has no form in a graph: use `contains('(?i)…')`")
    words = [str(word) for word in listed(expr.args[1], "the words of `contains_any`").drop_nulls()]
    column = _full(_text(scope, expr))
    if not words:
        raise UnsupportedError("`contains_any` of no words is always false: leave it out")
    pattern = "|".join(text_search.quoted(word) for word in words)
    return elementwise(lambda x: x.op.RegexFullMatch(x, pattern=f"(?s).*(?:{pattern}).*"), BOOLEAN, column)


@rule("str.CountMatches")
def count_matches(scope: Scope, expr: Expr) -> Column:
    (literal,) = expr.options
    word, type = _word(expr, 1, "the pattern"), scope.type(expr)

    def count(x: Tensor) -> Tensor:
        found = text_split.count_text(x, word) if literal else text_tokens.count_pattern(x, word, dialect=scope.dialect)
        return found.cast(type.dtype)

    return elementwise(count, type, _full(_text(scope, expr)))


@rule("str.Find")
def find(scope: Scope, expr: Expr) -> Column:
    raise UnsupportedError("`str.find` counts bytes, which has no form in a graph: use `str.contains`")


@rule("str.Replace")
def replace_text(scope: Scope, expr: Expr) -> Column:
    most, literal = int(expr.options[0]), bool(expr.options[1])
    old, new, type = _word(expr, 1, "the pattern"), _word(expr, 2, "the replacement"), scope.type(expr)
    template = [new] if literal else _template(old, new)
    literal = literal or not set(old) & set(_SPECIAL)
    if not old:
        raise UnsupportedError("an empty pattern is found everywhere: name what is to be replaced")

    def made(x: Tensor) -> Tensor:
        if any(isinstance(piece, int) for piece in template):
            return text_tokens.replace_by_groups(x, old, template, dialect=scope.dialect, most=most)
        word = "".join(map(str, template))
        if literal:
            return text_split.replace_text(x, old, word, most)
        return text_tokens.replace_pattern(x, old, word, dialect=scope.dialect, most=most)

    return elementwise(made, type, _full(_text(scope, expr)))


def _template(pattern: str, new: str) -> list[str | int]:
    """Texts and numbers of groups: what `$1`, `${1}`, `$name` and `$$` stand for in Rust."""
    groups: Pattern | None = None
    pieces: list[str | int] = []
    for piece in re.split(r"(\$\$|\$\{[^}]*\}|\$[0-9A-Za-z_]+)", new):
        name = piece[1:].strip("{}")
        if piece == "$$":
            pieces.append("$")
        elif piece.startswith("$") and name:
            groups = groups or parse(pattern, dialect="rust")
            number = int(name) if name.isdecimal() else groups.names.get(name, -1)
            if not 0 <= number <= groups.groups:
                raise UnsupportedError(
                    f"the pattern {pattern!r} has no group {name!r}, which Polars leaves out: use ${{1}}"
                )
            pieces.append(number)
        elif piece:
            pieces.append(piece)
    return pieces


_SPECIAL = "\\.+*?()|[]{}^$"
"""What means more than itself in a pattern."""


@rule("str.ReplaceMany")
def replace_many(scope: Scope, expr: Expr) -> Column:
    raise UnsupportedError("`replace_many` has no form in a graph: use `str.replace_all` several times")


@rule("str.StripChars", "str.StripCharsStart", "str.StripCharsEnd")
def strip(scope: Scope, expr: Expr) -> Column:
    chars = literal_value(expr.args[1], "the characters to strip")
    sides: dict[str, text_parts.Sides] = {
        "str.StripChars": "both",
        "str.StripCharsStart": "left",
        "str.StripCharsEnd": "right",
    }
    given = UNICODE_SPACE if chars is None else str(chars)
    column = _full(_text(scope, expr))
    if not given:
        return column
    return elementwise(lambda x: text_parts.strip(x, given, sides[expr.kind]), scope.type(expr), column)


@rule("str.StripPrefix", "str.StripSuffix")
def strip_word(scope: Scope, expr: Expr) -> Column:
    word = _word(expr, 1, "the text")
    function = text_parts.remove_prefix if expr.kind == "str.StripPrefix" else text_parts.remove_suffix
    column = _full(_text(scope, expr))
    return column if not word else elementwise(lambda x: function(x, word), scope.type(expr), column)


@rule("str.Slice", "str.Head", "str.Tail")
def slice_text(scope: Scope, expr: Expr) -> Column:
    column, type = _full(_text(scope, expr)), scope.type(expr)
    start: int | None
    stop: int | None
    if expr.kind == "str.Slice":
        start = _number(expr, 1, "the offset")
        length = literal_value(expr.args[2], "the length of a slice")
        stop = None if length is None else start + int(length)
        if start < 0 and stop is not None:
            stop = None if stop >= 0 else stop
    elif expr.kind == "str.Head":
        start, stop = None, _number(expr, 1, "the length")
    else:
        length = _number(expr, 1, "the length")
        if length == 0:
            return elementwise(lambda x: text_parts.slice_text(x, None, 0), type, column)
        start, stop = -length, None
    return elementwise(lambda x: text_parts.slice_text(x, start, stop), type, column)


@rule("str.PadStart", "str.PadEnd")
def pad(scope: Scope, expr: Expr) -> Column:
    (fill,) = expr.options
    width = _number(expr, 1, "the width")
    side: Any = "left" if expr.kind == "str.PadStart" else "right"
    return elementwise(lambda x: text_pad.pad(x, width, side, str(fill)), scope.type(expr), _full(_text(scope, expr)))


@rule("str.ZFill")
def zfill(scope: Scope, expr: Expr) -> Column:
    width = _number(expr, 1, "the width")
    return elementwise(lambda x: text_pad.zfill(x, width), scope.type(expr), _full(_text(scope, expr)))


@rule("str.ToInteger")
def to_integer(scope: Scope, expr: Expr) -> Column:
    (strict,) = expr.options
    if _number(expr, 1, "the base") != 10:
        raise UnsupportedError("numbers of another base than 10 have no form in a graph")
    column, type = _full(_text(scope, expr)), scope.type(expr)
    return read_integer(column, type, strict=bool(strict))


def read_integer(column: Column, type: Any, *, strict: bool) -> Column:
    number, found = text_numbers.to_int(column.value, type.dtype, "polars")
    made = Column(number, type, column.rows, column.null)
    return limited(made, column, column.op.Not(found), strict, "a text that is no integer")


@rule("str.Extract")
def extract(scope: Scope, expr: Expr) -> Column:
    (group,) = expr.options
    pattern, type = _word(expr, 1, "the pattern"), scope.type(expr)
    column = _full(_text(scope, expr))
    number = int(group)
    if number == 0:
        pattern, number = f"({pattern})", 1
    found = text_tokens.extract(column.value, pattern, dialect=scope.dialect)
    if number > len(found):
        raise UnsupportedError(f"the pattern {pattern!r} has no group {number}")
    value, there = found[number - 1]
    made = Column(value, type, column.rows, column.null)
    return made.with_null(scope.op.Not(there))


def _split(scope: Scope, expr: Expr) -> tuple[Column, str]:
    """The text of a split, and what it is split at."""
    if expr.options and expr.options[0] is True:
        raise UnsupportedError("a split that keeps what it splits at has no form in a graph")
    word = _word(expr, 1, "the separator")
    if not word:
        raise UnsupportedError("a split into characters has no form in a graph: use `str.slice`")
    return _full(_text(scope, expr)), word


@rule("str.Split", "str.SplitRegex", "str.ExtractAll", "implode", "agg.implode")
def lists(scope: Scope, expr: Expr) -> Column:
    raise UnsupportedError(
        f"`{spoken(expr.kind)}` gives lists, which have no form in a graph: take one part, as "
        "`str.split(…).list.get(n)`, or an aggregate, as `.sum()`"
    )


@rule("list.Get", "list.Length")
def of_split(scope: Scope, expr: Expr) -> Column:
    """Lists have no form in a graph, but one part of a text that is split has."""
    inner = expr.args[0]
    if inner.kind != "str.Split":
        raise UnsupportedError("lists have no form in a graph, but for `str.split(…).list.get(n)` and `.list.len()`")
    column, word = _split(scope, inner)
    op, type = scope.op, scope.type(expr)
    if expr.kind == "list.Length":
        return elementwise(lambda x: text_split.part_count(x, word).cast(type.dtype), type, column)
    (null_outside,) = expr.options
    value, there = text_split.split_part(column.value, word, _number(expr, 1, "the place"))
    made = Column(value, type, column.rows, column.null)
    return limited(made, column, op.Not(there), not null_outside, "a part that a text does not have")


@dataclass(frozen=True, eq=False)
class StructColumn(Column):
    """Columns under one name, as structs have them; only its fields are ever read."""

    fields: Mapping[str, Column] = field(default_factory=dict)


def _struct(fields: Mapping[str, Column]) -> StructColumn:
    first = next(iter(fields.values()))
    return StructColumn(first.value, first.type, first.rows, first.null, fields=fields)


def _names(expr: Expr) -> list[str]:
    dtype = expr.dtype
    assert isinstance(dtype, pl.Struct)
    return [each.name for each in dtype.fields]


@rule("as_struct")
def as_struct(scope: Scope, expr: Expr) -> Column:
    return _struct(dict(zip(_names(expr), scope.all(expr), strict=True)))


@rule("str.ExtractGroups")
def extract_groups(scope: Scope, expr: Expr) -> Column:
    column = _full(_text(scope, expr))
    found = text_tokens.extract(column.value, str(expr.options[1]), dialect=scope.dialect)
    return _struct(
        {
            name: Column(value, column.type, column.rows, column.null).with_null(scope.op.Not(there))
            for name, (value, there) in zip(_names(expr), found, strict=True)
        }
    )


@rule("str.SplitExact", "str.SplitN")
def split_parts(scope: Scope, expr: Expr) -> Column:
    count, *rest = expr.options
    word = _word(expr, 1, "the separator")
    if not word or (rest and rest[0]):
        raise UnsupportedError("a split that keeps what it splits at, or at nothing, has no form in a graph")
    column = _full(_text(scope, expr))
    columns = int(count) + 1 if expr.kind == "str.SplitExact" else int(count)
    most = None if expr.kind == "str.SplitExact" else columns - 1
    parts = text_split.split(column.value, word, columns, most)
    return _struct(
        {
            name: Column(value, column.type, column.rows, column.null).with_null(scope.op.Not(there))
            for name, (value, there) in zip(_names(expr), parts, strict=True)
        }
    )


@rule("struct.FieldByName")
def field_by_name(scope: Scope, expr: Expr) -> Column:
    column, (name,) = scope(expr.args[0]), expr.options
    if not isinstance(column, StructColumn):
        raise UnsupportedError("structs have no form in a graph: name the columns one by one")
    return column.fields[name]
