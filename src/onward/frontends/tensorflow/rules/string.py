"""Strings, and tables to look things up in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose.loops import loop
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Table
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("StringJoin")
def string_join(op: Writer, *strings: Tensor, separator: str = "") -> Tensor:
    result = strings[0]
    for other in strings[1:]:
        if separator:
            result = op.StringConcat(result, op.text(separator))
        result = op.StringConcat(result, other)
    return result


@rule("ReduceJoin")
def reduce_join(op: Writer, x: Tensor, axes: Tensor, *, keep_dims: bool = False, separator: str = "") -> Tensor:
    """Axis after axis in the order given, each by a loop over its strings."""
    rank = op.rank(x, "the strings")
    along = [op.axis(a, rank) for a in op.numbers(axes, "the axes")]
    for axis in along:
        x = _joined(op, x, axis, separator)
    return x if keep_dims else op.squeeze(x, along)


def _joined(op: Writer, x: Tensor, axis: int, separator: str) -> Tensor:
    """Along one axis, which stays, with a size of one."""
    where = op.ints([axis])
    shape = op.ScatterElements(op.Shape(x), where, op.ints([1]), axis=0)
    start = op.Expand(op.text(""), shape)

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        item = op.Slice(x, op.flat(number), op.flat(number) + op.ints([1]), where)
        between = op.Where(op.Equal(number, op.index(0)), op.text(""), op.text(separator))
        return [op.StringConcat(op.StringConcat(states[0], between), item)]

    return loop(op, step, [start], rounds=op.Gather(op.Shape(x), op.index(axis)))[0]


@rule("StaticRegexFullMatch")
def regex_full_match(op: Writer, x: Tensor, *, pattern: str) -> Tensor:
    return op.RegexFullMatch(x, pattern=pattern)


@rule("StaticRegexReplace")
def static_regex_replace(op: Writer, x: Tensor, *, pattern: str, rewrite: str, replace_global: bool = True) -> Tensor:
    return replaced(op, x, pattern, rewrite, replace_global)


@rule("RegexReplace")
def regex_replace(op: Writer, x: Tensor, pattern: Tensor, rewrite: Tensor, *, replace_global: bool = True) -> Tensor:
    texts = [str(_plain(op.fixed(text, "the regular expression"))[0]) for text in (pattern, rewrite)]
    return replaced(op, x, texts[0], texts[1], replace_global)


def replaced(op: Writer, x: Tensor, pattern: str, rewrite: str, everywhere: bool) -> Tensor:
    """Where the pattern is a text, or one of some characters: strings are split there, and joined again."""
    texts = _texts(pattern)
    rank = op.rank(x, "the strings")
    if texts is None or not everywhere or "\\" in rewrite or any(text in rewrite for text in texts):
        raise UnsupportedError(f"what the regular expression {pattern!r} finds cannot be replaced by {rewrite!r}")
    for text in texts:
        pieces, counts = op.many("StringSplit", 2, x, delimiter=text)
        if rewrite:
            places = op.Range(op.index(0), op.Gather(op.Shape(pieces), op.index(rank)), op.index(1))
            later = op.And(places > op.index(0), places < op.unsqueeze(counts, [rank]))
            pieces = op.StringConcat(op.Where(later, op.text(rewrite), op.text("")), pieces)
        x = op.squeeze(_joined(op, pieces, rank, ""), [rank])
    return x


def _texts(pattern: str) -> list[str] | None:
    """What a regular expression finds, if that is one text, or any of some characters of ASCII."""
    plain = r"[^\\.^$*+?()\[\]{}|]|\\[^a-zA-Z0-9]"
    if re.fullmatch(f"({plain})+", pattern):
        return [re.sub(r"\\(.)", r"\1", pattern)]
    if not pattern.isascii() or not re.fullmatch(r"\[(?!\^)(?:[^\[\]\\]|\\[^a-zA-Z0-9])+\]", pattern):
        return None
    return [character for character in map(chr, range(128)) if re.fullmatch(pattern, character)]


@rule("AsString")
def as_string(
    op: Writer,
    x: Tensor,
    *,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
) -> Tensor:
    if x.dtype == ir.DataType.BOOL and width < 0 and not fill:
        return op.Where(x, op.text("true"), op.text("false"))
    if x.dtype.numpy().kind not in "iu" or width >= 0 or fill or scientific or shortest or precision >= 0:
        raise UnsupportedError("only whole numbers are written as strings in the same way")
    return x.cast(ir.DataType.STRING)


@rule("StringToNumber")
def to_number(op: Writer, x: Tensor, *, out_type: ir.DataType = ir.DataType.FLOAT) -> Tensor:
    return x.cast(out_type)


@rule("StringLower", "StringUpper")
def change_case(op: Writer, x: Tensor, *, encoding: str = "") -> Tensor:
    """Without an encoding, of the letters of ASCII only: those are what the plain locale changes."""
    action = op.operation.type.removeprefix("String").upper()
    locale = "C.UTF-8" if encoding == "utf-8" else "C"
    changed = op.StringNormalizer(op.flat(x), case_change_action=action, is_case_sensitive=1, locale=locale)
    return op.Reshape(changed, op.Shape(x)) if x.rank != 1 else changed


@rule("StringSplitV2")
def string_split(op: Writer, x: Tensor, separator: Tensor, *, maxsplit: int = -1) -> list[Tensor]:
    """As a sparse tensor: where each piece stands, the pieces, and the size of the whole."""
    between = _plain(op.fixed(separator, "the separator"))[0]
    if maxsplit >= 0:
        raise UnsupportedError("a split into a number of pieces is not supported")
    pieces, counts = op.many("StringSplit", 2, x, delimiter=between or None)
    if between:  # an empty string is one empty piece, but for a split at white space
        column = op.Expand(op.text(""), op.Concat(op.Shape(x), op.ints([1]), axis=0))
        pieces, counts = op.Concat(pieces, column, axis=1), op.Max(counts, op.index(1))
    width = op.reduced("ReduceMax", op.Concat(counts, op.ints([0]), axis=0), [0], keepdims=True)
    columns = op.Range(op.index(0), op.squeeze(width, [0]), op.index(1))
    there = op.unsqueeze(columns, [0]) < op.unsqueeze(counts, [1])
    places = op.Transpose(op.NonZero(there), perm=[1, 0])
    return [places, op.GatherND(pieces, places), op.Concat(op.Shape(x), width, axis=0)]


ENCODED = {
    (a, b)
    for a in (ir.DataType.STRING, ir.DataType.INT64, ir.DataType.FLOAT)
    for b in (ir.DataType.STRING, ir.DataType.INT64, ir.DataType.FLOAT)
} - {(ir.DataType.FLOAT, ir.DataType.FLOAT)}
"""Dtypes of keys and values that ONNX's LabelEncoder takes."""


@rule("LookupTableFindV2", "LookupTableFind")
def lookup(op: Writer, table: Table, keys: Tensor, default: Tensor) -> Tensor:
    inputs = op.operation.node_def.attr
    return looked_up(op, *table.items(inputs["Tin"].type, inputs["Tout"].type), keys, default)


def looked_up(
    op: Writer, known_keys: npt.NDArray[Any], known_values: npt.NDArray[Any], keys: Tensor, default: Tensor
) -> Tensor:
    """The value of each key, or else the default."""
    other = op.known(default)
    if (keys.dtype, default.dtype) in ENCODED and other is not None and other.size == 1 and known_keys.size:
        op.model.opset_imports["ai.onnx.ml"] = 3
        options = {
            f"keys_{_suffix(keys.dtype)}": _plain(known_keys),
            f"values_{_suffix(default.dtype)}": _plain(known_values),
            f"default_{_single(default.dtype)}": _plain(np.asarray(other))[0],
        }
        found = op.many("LabelEncoder", 1, keys, domain="ai.onnx.ml", **options)[0]
        found.value.type, found.value.shape = ir.TensorType(default.dtype), keys.value.shape
        return found
    if not known_keys.size:
        return op.Expand(default, op.Shape(keys))
    rows = op.unsqueeze(op.flat(keys), [1])
    same = op.Equal(rows, op.array(known_keys.reshape(1, -1))).cast(ir.DataType.INT32)
    value = op.Gather(op.array(known_values), op.ArgMax(same, axis=1, keepdims=0))
    there = op.reduced("ReduceMax", same, [1], keepdims=False).cast(ir.DataType.BOOL)
    return op.Reshape(op.Where(there, value, default), op.Shape(keys))


def _suffix(dtype: ir.DataType) -> str:
    return {ir.DataType.STRING: "strings", ir.DataType.INT64: "int64s", ir.DataType.FLOAT: "floats"}[dtype]


def _single(dtype: ir.DataType) -> str:
    return {ir.DataType.STRING: "string", ir.DataType.INT64: "int64", ir.DataType.FLOAT: "float"}[dtype]


def _plain(array: object) -> list[object]:
    return [item.decode() if isinstance(item, bytes) else item for item in np.asarray(array).reshape(-1).tolist()]


@rule("LookupTableSizeV2")
def table_size(op: Writer, table: Table) -> Tensor:
    return op.index(table.size())


@rule("StringFormat")
def string_format(op: Writer, *values: Tensor, template: str = "%s", placeholder: str = "%s") -> Tensor:
    """Scalars of whole numbers and strings, which are written in the same way."""
    pieces = template.split(placeholder)
    result = op.text(pieces[0])
    for value, piece in zip(values, pieces[1:], strict=True):
        if value.rank != 0 or value.dtype.numpy().kind not in "iu":
            raise UnsupportedError("only whole numbers are written as strings in the same way")
        result = op.StringConcat(op.StringConcat(result, value.cast(ir.DataType.STRING)), op.text(piece))
    return result
