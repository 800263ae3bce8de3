"""Texts put together, and their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onward.frontends.dataframe.columns.column import Column, elementwise
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Series
from onward.frontends.dataframe.pandas.rules.text.common import plain_text, texts
from onward.frontends.dataframe.pandas.values import beside
from onward.frontends.dataframe.tensors.text import text_compare, text_pad
from onward.graph.build import Tensor


@rule("part: arithmetic of text")
def arithmetic(call: Call, name: str, x: Column, y: Column, a: Any, b: Any) -> Column:
    """`+` puts texts together, `*` repeats them."""
    type = call.type
    _must_be_there(call, x, y)
    if name == "add" and x.type.is_text and y.type.is_text:
        return elementwise(lambda p, q: text_pad.concat([p, q]), type, x, y)
    if name == "mul":
        column, times = (x, b) if x.type.is_text else (y, a)
        if isinstance(times, int | np.integer) and not isinstance(times, bool):
            return elementwise(lambda p: text_pad.repeat(p, int(times)), type, column)
        raise call.refuse("texts are repeated a number of times that is known")
    raise call.refuse(f"texts have no {name}")


def _must_be_there(call: Call, *columns: Column) -> None:
    """A single value that is missing is no text in Python."""
    if call.trace.paths is not None:
        for column in columns:
            call.trace.paths.fail_where(column.missing())


@rule("part: order of text")
def order(call: Call, name: str, p: Tensor, q: Tensor) -> Tensor:
    """By code points."""
    if known := _known(q):
        return text_compare.beside_text(p, known[0], name)
    if known := _known(p):
        return text_compare.beside_text(q, known[0], {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}[name])
    if name in ("gt", "ge"):
        p, q = q, p
    return text_compare.less(p, q) if name in ("lt", "gt") else text_compare.less_or_equal(p, q)


def _known(tensor: Tensor) -> list[str]:
    """The text of a constant."""
    constant = tensor.value.const_value
    if constant is None or constant.size != 1:
        return []
    found = np.asarray(constant.numpy()).reshape(-1)[0]
    return [found.decode() if isinstance(found, bytes) else str(found)]


@rule("Series.str.cat")
def cat(call: Call, x: Any, others: Any = None, sep: Any = None, na_rep: Any = None, join: str = "left") -> Column:
    if others is None:
        raise call.refuse("all texts as one have no rows: name the columns to put beside")
    if isinstance(others, Frame):
        others = [others.series(name) for name in others]
    given = [x, *(others if isinstance(others, list | tuple) else [others])]
    if not all(isinstance(series, Series) for series in given):
        raise call.refuse("only columns of the frame are put together: add a text with +")
    type = replace(texts(call, x).type)
    columns = beside(call, *(texts(call, series) for series in given))
    if na_rep is not None:
        columns = [_filled(column, plain_text(call, na_rep, "na_rep")) for column in columns]
    between = "" if sep is None else plain_text(call, sep, "sep")
    return elementwise(lambda *values: text_pad.concat(values, between), type, *columns)


def _filled(column: Column, value: str) -> Column:
    if column.null is None:
        return column
    word = column.op.strings(np.array([[value]], dtype=object))
    return replace(column, value=column.op.Where(column.null, word, column.value), null=None)


@rule("Series.str.join")
def join_parts(call: Call, x: Any, sep: Any) -> Column:
    raise call.refuse("a text between all characters cannot be said in ONNX: use str.cat for columns")
