"""Texts compared: equal, in order, in a list, looked up in a table; the first and last of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from onward.frontends.dataframe.tensors.text.pattern_sets import EVERY, written
from onward.frontends.dataframe.tensors.text.text import STRING, full_match, label, of_type, text
from onward.frontends.dataframe.tensors.text.text_search import quoted
from onward.graph.build import Tensor


def equal(a: Tensor, b: Tensor | str) -> Tensor:
    """Whether texts are the same. One node."""
    return a.op.Equal(a, text(a.op, b) if isinstance(b, str) else b)


def is_in(x: Tensor, values: Sequence[str]) -> Tensor:
    """Whether each is one of a list. Two nodes; one for one value."""
    if not values:
        return _place(x, [])[1]
    if len(values) == 1:
        return equal(x, values[0])
    return label(x, list(dict.fromkeys(values)), [1] * len(set(values)), 0).cast(ir.DataType.BOOL)


def look_up(x: Tensor, table: Mapping[str, str]) -> tuple[Tensor, Tensor]:
    """The text that a table has for each, and where it has one. Four nodes."""
    op = x.op
    places, found = _place(x, list(table))
    return op.Gather(op.strings(np.array([*table.values(), ""], dtype=object)), places, axis=0), found


def look_up_numbers(
    x: Tensor, table: Mapping[str, int | float | bool], dtype: ir.DataType = ir.DataType.DOUBLE
) -> tuple[Tensor, Tensor]:
    """The number that a table has for each, 0 where it has none, and where it has one. Three nodes."""
    op = x.op
    places, found = _place(x, list(table))
    return op.Gather(op.constant(np.array([*table.values(), 0], dtype=dtype.numpy())), places, axis=0), found


def _place(x: Tensor, keys: list[str]) -> tuple[Tensor, Tensor]:
    """The number of each in a list, or the length of the list, and whether it is there."""
    if not keys:
        places = x.op.Expand(x.op.constant(np.zeros((1, 1), np.int64)), x.shape)
        return places, places < 0
    places = label(x, keys, list(range(len(keys))), len(keys))
    return places, places < len(keys)


def codes(*columns: Tensor) -> list[Tensor]:
    """Numbers int64 in the order of the texts, the same for the same text in all columns, by bytes of UTF-8.

    This is the order of code points, which Python, PyArrow and Polars have too. Unique sorts so.
    """
    op = columns[0].op
    together = columns[0] if len(columns) == 1 else op.Concat(*columns, axis=0)
    _, _, inverse, _ = op.many("Unique", 4, together, sorted=1)
    numbers = op.Reshape(of_type(inverse, ir.DataType.INT64, [None]), op.ints([-1, 1]))
    if len(columns) == 1:
        return [numbers]
    sizes = op.Concat(*(op.Shape(column, start=0, end=1) for column in columns), axis=0)
    return op.many("Split", len(columns), numbers, sizes, axis=0)


def less(a: Tensor, b: Tensor | str) -> Tensor:
    """Whether a text comes before another; `less(b, a)` says after. Eight nodes: texts are sorted, so it is slow."""
    first, second = codes(a, a.op.Expand(text(a.op, b), a.op.ints([1, 1])) if isinstance(b, str) else b)
    return first < second


def less_or_equal(a: Tensor, b: Tensor | str) -> Tensor:
    """Whether a text comes before another, or is the same. Eight nodes."""
    first, second = codes(a, a.op.Expand(text(a.op, b), a.op.ints([1, 1])) if isinstance(b, str) else b)
    return first <= second


def beside_text(x: Tensor, value: str, how: str) -> Tensor:
    """Whether texts are before ("lt", "le") or after ("gt", "ge") one that is known, by code points.

    One or two nodes: nothing is sorted.
    """
    before = [quoted(value[:size]) for size in range(len(value))]
    for place, letter in enumerate(value):
        smaller = tuple((low, min(high, ord(letter) - 1)) for low, high in EVERY if low < ord(letter))
        before += [f"{quoted(value[:place])}{written(smaller)}(?s:.*)"] if smaller else []
    if how in ("le", "gt"):
        before.append(quoted(value))
    if not before:
        found = full_match(x, "")
        return x.op.And(found, x.op.Not(found)) if how == "lt" else x.op.Or(found, x.op.Not(found))
    found = full_match(x, "|".join(before))
    return found if how in ("lt", "le") else x.op.Not(found)


def smallest(x: Tensor) -> tuple[Tensor, Tensor]:
    """The first of all texts in order (1, 1), and whether there are any (1, 1). Five nodes."""
    return _end(x, last=False)


def largest(x: Tensor) -> tuple[Tensor, Tensor]:
    """The last of all texts in order (1, 1), and whether there are any (1, 1). Five nodes."""
    return _end(x, last=True)


def _end(x: Tensor, last: bool) -> tuple[Tensor, Tensor]:
    op = x.op
    [values] = op.many("Unique", 1, x, sorted=1)
    values = of_type(values, STRING, [None])
    spare = op.strings(np.array([""], dtype=object))
    ordered = op.Concat(spare, values, axis=0) if last else op.Concat(values, spare, axis=0)
    found = op.Reshape(op.Gather(ordered, op.ints([-1 if last else 0]), axis=0), op.ints([1, 1]))
    return found, op.Reshape(op.Size(x), op.ints([1, 1])) > 0
