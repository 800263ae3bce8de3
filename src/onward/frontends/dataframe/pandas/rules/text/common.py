"""What the rules of texts share: a column of texts, who computes it in pandas, and results of other types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onward.formats.dataframe.types import BOOL, INT64
from onward.frontends.dataframe.columns.column import Column, elementwise
from onward.frontends.dataframe.pandas.dispatch import Call
from onward.frontends.dataframe.pandas.values import is_missing
from onward.frontends.dataframe.tensors.text.pattern_sets import Dialect
from onward.graph.build import Tensor

NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda self: "not given"})()
"""Stands for an argument that pandas tells from None."""


def texts(call: Call, x: Any) -> Column:
    """The column of a Series of texts; of categories, their labels."""
    column: Column = x.column
    if not column.type.is_text:
        raise call.refuse(f"it is for texts, not for {column.type}: convert with astype(str) first")
    return replace(column, type=column.type.uncategorized())


def is_arrow(call: Call, x: Any) -> bool:
    """Whether PyArrow computes it: of the dtype that pandas has here. Functions of single values have Python's str."""
    return call.trace.paths is None and getattr(x.real.dtype, "storage", "") == "pyarrow"


def dialect_of(call: Call, x: Any) -> Dialect:
    return "arrow" if is_arrow(call, x) else "python"


def changed(call: Call, x: Any, function: Callable[[Tensor], Tensor]) -> Column:
    """Texts made of texts, missing where they are."""
    column = texts(call, x)
    return elementwise(function, column.type, column)


def numbered(call: Call, x: Any, function: Callable[[Tensor], Tensor]) -> Column:
    """Integers made of texts."""
    column = texts(call, x)
    return elementwise(function, replace(INT64, masked=column.type.masked), column)


def told(call: Call, x: Any, function: Callable[[Tensor], Tensor], na: Any = NOT_GIVEN) -> Column:
    """Truth values made of texts. What is missing is `na`; without it false, or missing in columns of objects."""
    column = texts(call, x)
    made = elementwise(function, replace(BOOL, masked=column.type.masked), column)
    if made.null is None:
        return made
    op = made.op
    if na is not NOT_GIVEN and not is_missing(na):
        if not isinstance(na, bool | np.bool_):
            raise call.refuse(f"na={na!r} is no truth value: give True or False")
        value = op.Or(made.value, made.null) if na else op.And(made.value, op.Not(made.null))
        return replace(made, value=value, null=None)
    if column.type.masked or _of_objects(x):
        return made
    return replace(made, value=op.And(made.value, op.Not(made.null)), null=None)


def _of_objects(x: Any) -> bool:
    """Whether missing values stay what they are among truth values."""
    dtype = x.real.dtype
    labels = getattr(dtype, "categories", None)
    return str(dtype if labels is None else labels.dtype) == "object"


def parted(call: Call, x: Any, function: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Column:
    """A piece of each text, missing where there is none."""
    column = texts(call, x)
    found: list[Tensor] = []

    def piece(p: Tensor) -> Tensor:
        value, is_there = function(p)
        found.append(is_there)
        return value

    made = elementwise(piece, column.type, column)
    return made.with_null(made.op.Not(found[0]))


def whole_number(call: Call, value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise call.refuse(f"{what} must be a whole number that is known, not {type(value).__name__}")
    return int(value)


def plain_text(call: Call, value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise call.refuse(f"{what} must be a text that is known, not {type(value).__name__}")
    return value
