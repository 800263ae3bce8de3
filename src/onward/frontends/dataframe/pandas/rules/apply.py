"""Functions that are applied to each value, row or column."""

from __future__ import annotations

from collections.abc import Mapping
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any

import numpy as np

from onward.errors import OnwardError
from onward.frontends.dataframe.columns.column import Column, guarded
from onward.frontends.dataframe.pandas.dispatch import Call, rule
from onward.frontends.dataframe.pandas.elements import Row, element, known_keys, python_functions
from onward.frontends.dataframe.pandas.fstrings import written
from onward.frontends.dataframe.pandas.paths import Fork, Paths, Raised, explored, following
from onward.frontends.dataframe.pandas.proxies import Frame, Series, framed, joined
from onward.frontends.dataframe.pandas.rules.choose import choice
from onward.frontends.dataframe.pandas.values import column_of, is_missing
from onward.graph.build import Tensor

_TYPES: dict[Any, str] = {int: "int64", float: "float64", str: "str", bool: "bool"}


@rule("Series.apply")
def apply(call: Call, x: Series, func: Any, *, args: Any = (), by_row: Any = "compat", **kwargs: Any) -> Any:
    if isinstance(func, str):
        return getattr(x, func)(*args, **kwargs)
    return of_elements(call, x, func, *args, **kwargs)


@rule("part: function of elements")
def of_elements(call: Call, x: Series, func: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of each value of a column."""
    if isinstance(func, np.ufunc):
        return func(x, *args, **kwargs)
    if func in _TYPES:
        return x.astype(_TYPES[func])
    if func is len:
        return x.str.len()
    if func is hash:
        raise call.refuse("a hash is another number in each process: use map with a dictionary")
    if isinstance(func, MethodDescriptorType):
        name = func.__name__
        return getattr(x.str, name)(*args)
    if isinstance(func, BuiltinFunctionType) and getattr(func, "__module__", "") == "math":
        raise call.refuse(f"math.{func.__name__} takes single numbers: use np.{func.__name__} on the column")
    if not callable(func):
        raise call.refuse("it takes a function")

    def run(paths: Paths) -> Any:
        return followed(call, func, paths, lambda: func(element(x), *args, **kwargs))

    return result(call, x.column, run)


@rule("part: function of elements that are there")
def of_present(call: Call, x: Series, func: Any) -> Any:
    """The same where what is missing is left out, and stays missing."""
    import pandas

    if x.column.missing() is None or func in _TYPES or not hasattr(func, "__code__"):
        return of_elements(call, x, func)

    def run(paths: Paths) -> Any:
        return followed(call, func, paths, lambda: None if pandas.isna(element(x)) else func(element(x)))

    return result(call, x.column, run)


def followed(call: Call, func: Any, paths: Paths, run: Any) -> Any:
    """What a function gives on one way; where it raises an error, so does the model."""
    inner = getattr(func, "func", func)
    paths.keys, paths.code = known_keys(inner), getattr(inner, "__code__", None)
    with following(call.trace, paths), python_functions(getattr(inner, "__func__", inner)):
        try:
            return written(run(), paths.written)
        except OnwardError:
            raise
        except (ValueError, KeyError, IndexError, ZeroDivisionError, ArithmeticError):
            paths.fail_where(call.op.constant(np.asarray([[True]])))
            return Raised()
        except (AttributeError, TypeError) as error:
            raise call.refuse(f"the function is opaque, it cannot be followed: {error}") from error


def result(call: Call, like: Column, run: Any) -> Any:
    tree, failing = explored(run)
    real = call.real
    names = _names(tree)
    if names is not None:
        if not hasattr(real, "columns"):
            raise call.refuse("the function gives several values for a row: use result_type='expand', or pd.Series")
        columns = {name: _joined(call, _named(tree, name), like, failing) for name in names}
        return framed(call.trace, columns, real)
    return joined(call.trace, _joined(call, tree, like, failing), real)


def _joined(call: Call, tree: Any, like: Column, failing: Tensor | None) -> Column:
    made = combined(call, tree)
    if isinstance(made, Raised) or is_missing(made):
        raise call.refuse("the function gives nothing")
    column = column_of(call, made)
    if column.is_scalar:
        column = Column(column.value, column.type, like.rows, column.null).expanded()
    if not like.rows.takes(column.rows):
        raise call.refuse("the function gives a value for each value it is given")
    return column if failing is None else guarded(column, failing, "the function fails for a row")


def combined(call: Call, tree: Any) -> Any:
    """The results of all ways as one column, by their conditions."""
    if not isinstance(tree, Fork):
        return tree
    yes, no = combined(call, tree.yes), combined(call, tree.no)
    if isinstance(yes, Raised) or isinstance(no, Raised):
        return no if isinstance(yes, Raised) else yes
    if is_missing(yes) and is_missing(no):
        return yes
    made = choice(call, tree.condition, yes, no)
    return Series(call.trace, None, made)


def _names(tree: Any) -> list[Any] | None:
    """The names of the values that a function gives for a row, if it gives several."""
    if isinstance(tree, Fork):
        found = [names for names in (_names(tree.yes), _names(tree.no)) if names is not None]
        return found[0] if found else None
    return list(tree) if isinstance(tree, Mapping) else None


def _named(tree: Any, name: Any) -> Any:
    if isinstance(tree, Fork):
        return Fork(tree.condition, _named(tree.yes, name), _named(tree.no, name))
    return tree[name] if isinstance(tree, Mapping) else tree


@rule("DataFrame.apply")
def frame_apply(
    call: Call,
    frame: Frame,
    func: Any,
    axis: Any = 0,
    raw: bool = False,
    result_type: Any = None,
    args: Any = (),
    **kwargs: Any,
) -> Any:
    if raw or result_type not in (None, "expand"):
        raise call.refuse("raw and result_type cannot be converted")
    if axis in (1, "columns"):
        if isinstance(func, str):
            return getattr(frame, func)(axis=1)
        anchor = frame.column(next(iter(frame)))

        def run(paths: Paths) -> Any:
            found = followed(call, func, paths, lambda: func(Row(frame), *args, **kwargs))
            is_several = isinstance(found, list | tuple) and result_type == "expand"
            return dict(enumerate(found)) if is_several else found

        return result(call, anchor, run)
    if isinstance(func, str):
        return getattr(frame, func)(*args, **kwargs)
    parts = {name: func(frame.series(name), *args, **kwargs) for name in frame}
    if any(not isinstance(part, Series) for part in parts.values()):
        raise call.refuse("it gives a number for each column: ask each column by itself")
    return framed(call.trace, {name: part.column for name, part in parts.items()}, call.real)


@rule("DataFrame.map", "DataFrame.applymap")
def frame_map(call: Call, frame: Frame, func: Any, na_action: Any = None) -> Any:
    made = frame.copied()
    for name in list(frame):
        made.put(name, frame.series(name).map(func, na_action=na_action))
    return made


@rule("Series.transform")
def transform(call: Call, x: Series, func: Any) -> Any:
    return getattr(x, func)() if isinstance(func, str) else func(x)


@rule("DataFrame.transform")
def frame_transform(call: Call, frame: Frame, func: Any, axis: Any = 0) -> Any:
    return frame.apply(func)
