"""What stands for frames, columns and numbers of pandas while a function is followed.

They are no subclasses of pandas' own: what they have no rule for is refused, and never computed on the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from onward.errors import UnsupportedError
from onward.frontends.dataframe.columns.column import Column, Rows
from onward.frontends.dataframe.pandas.dispatch import (
    RULES,
    Call,
    NoLengthError,
    Proxy,
    Trace,
    TracedError,
    ask,
    first_proxy,
    is_asked_by_user,
    placed,
    unwrapped,
    user_line,
)
from onward.frontends.dataframe.pandas.settle import settled
from onward.hub.wording import quote


class Traced(Proxy):
    """Looks up the rule of whatever it is asked for."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        full = f"{self.kind}.{name}"
        attribute = getattr(type(self.real), name, None)
        if attribute is None and full not in RULES:
            raise AttributeError(f"{self.kind} has no attribute {name!r}")
        if callable(attribute) or (attribute is None and not isinstance(attribute, property)):
            return partial(self._call, full, name)
        return self._ask(full, lambda: getattr(self.real, name))

    def _call(self, full: str, name: str, /, *args: Any, **kwargs: Any) -> Any:
        return self._ask(full, lambda: run_method(self.real, name, args, kwargs), *args, **kwargs)

    def _ask(self, full: str, run: Callable[[], Any], /, *args: Any, **kwargs: Any) -> Any:
        call, result = asked(self.trace, full, run, self, *args, **kwargs)
        return wrapped(call, result)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if isinstance(inputs[0], Frame) and len(inputs) == 1:
            return called(self.trace, f"DataFrame function {name}", getattr(ufunc, method), *inputs)
        run = getattr(ufunc, method)
        return called(self.trace, f"numpy.{name}", run, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return called(self.trace, f"numpy.{function.__name__}", function, *args, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("its values are asked for as an array: use functions that numpy calls on the column itself")

    def __iter__(self) -> Iterator[Any]:
        self._refuse("a loop iterates over its values: say it for the whole column, without a loop")

    def __bool__(self) -> bool:
        self._refuse("a branch depends on data: use where, mask, numpy.where or numpy.select")

    def __len__(self) -> int:
        try:
            self._refuse("its length is asked for as a number of Python: it is not known before the model runs")
        except TracedError as error:
            TracedError.seen.remove(error)
            raise NoLengthError(str(error)) from None

    def _number(self, *args: Any) -> NoReturn:
        self._refuse("its value is asked for as a number of Python: it is not known before the model runs")

    __float__ = __int__ = __index__ = __round__ = _number

    def _refuse(self, why: str) -> NoReturn:
        with placed(self.kind):
            raise UnsupportedError(f"{self.kind}: {why}")
        raise AssertionError

    __hash__ = None  # type: ignore[assignment]


def run_method(real: Any, name: str, args: Any, kwargs: Any) -> Any:
    return getattr(real, name)(*unwrapped(list(args)), **unwrapped(kwargs))


def asked(trace: Trace, full: str, run: Callable[[], Any], /, *args: Any, **kwargs: Any) -> tuple[Call, Any]:
    call = Call(trace, full, run)
    first = first_proxy(args)
    call.index = getattr(first.real, "index", None) if isinstance(first, Frame | Series) else None
    return call, ask(call, *args, **kwargs)


def called(trace: Trace, full: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The result of a function of numpy or pandas that is given proxies."""
    call, result = asked(trace, full, lambda: function(*unwrapped(list(args)), **unwrapped(kwargs)), *args, **kwargs)
    return wrapped(call, result)


def wrapped(call: Call, result: Any) -> Any:
    """What a rule made, together with what pandas made."""
    with placed(call.name):
        if isinstance(result, Column):
            real = call.real
            return joined(call.trace, unlabelled(result) if call.is_array else result, real)
        if isinstance(result, dict) and all(isinstance(part, Column) for part in result.values()):
            return framed(call.trace, result, call.real)
    return result


def unlabelled(column: Column) -> Column:
    """The same values as those of an array: it stands beside the rows that it was made of, and no others."""
    is_labelled = not (column.is_scalar or column.rows.is_array)
    return replace(column, rows=column.rows.unlabelled()) if is_labelled else column


def joined(trace: Trace, column: Column, real: Any) -> Series | Scalar:
    column, real = settled(column, real)
    if trace.within is None:
        trace.steps.append((user_line(), column, real))
    if column.is_scalar and not hasattr(real, "iloc"):
        return Scalar(trace, real, column)
    made = Series(trace, real, column)
    return made if trace.paths is None else ELEMENT[0](made)


def framed(trace: Trace, columns: dict[Any, Column], real: Any) -> Frame:
    rows = next((column.rows for column in columns.values() if not column.is_scalar), None)
    if rows is None:
        raise UnsupportedError("a frame without columns of its own rows cannot be followed")
    made = {}
    real = real.copy(deep=False)
    for name, column in columns.items():
        settled_column, changed = settled(column, real[name])
        if changed is not real[name]:
            real[name] = changed
        made[name] = settled_column
    return Frame(trace, real, {name: Deferred(column) for name, column in made.items()}, rows)


ELEMENT: list[Callable[[Any], Any]] = [lambda series: series]
"""What makes a single value of a column, while functions of single values are followed."""


RETURNING = frozenset(["bfill", "clip", "ffill", "fillna", "interpolate", "mask", "replace", "where"])
"""Methods that give the object itself when they change it in place; others give nothing."""


class Valued(Traced):
    """What has values: a column, or a single number."""

    __slots__ = ("column",)

    def __init__(self, trace: Trace, real: Any, column: Column) -> None:
        super().__init__(trace, real)
        self.column = column


class Series(Valued):
    """A column."""

    __slots__ = ()
    kind = "Series"

    def _call(self, full: str, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.pop("inplace", False):
            return super()._call(full, name, *args, **kwargs)
        made = super()._call(full, name, *args, **kwargs)
        if not isinstance(made, Series):
            raise TypeError(f"{full} has no inplace")
        self.column, self.real = made.column, made.real
        return self if name in RETURNING else None

    @property
    def name(self) -> Any:
        return self.real.name

    @name.setter
    def name(self, name: Any) -> None:
        self.real = self.real.rename(name)

    @property
    def dtype(self) -> Any:
        return self.real.dtype

    @property
    def index(self) -> Index:
        return Index(self.trace, self.real.index, self.column.rows)

    @property
    def str(self) -> Accessor:
        return Accessor(self, "str")

    @property
    def dt(self) -> Accessor:
        return Accessor(self, "dt")

    @property
    def cat(self) -> Accessor:
        return Accessor(self, "cat")

    @property
    def loc(self) -> Indexer:
        return Indexer(self, "loc")

    @property
    def iloc(self) -> Indexer:
        return Indexer(self, "iloc")

    def __round__(self, decimals: int = 0) -> Any:
        return self.round(decimals)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __getitem__(self, key: Any) -> Any:
        return self._ask("Series.__getitem__", lambda: self.real[unwrapped(key)], key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ask("Series.__setitem__", lambda: None, key, value)


class Scalar(Valued):
    """A single number that is computed from the data, such as a mean."""

    __slots__ = ()
    kind = "Scalar"


class Index(Traced):
    """The labels of rows: they are followed only as far as saying which rows they are."""

    __slots__ = ("rows",)
    kind = "Index"

    def __init__(self, trace: Trace, real: Any, rows: Rows) -> None:
        super().__init__(trace, real)
        self.rows = rows


class Accessor(Traced):
    """`.str`, `.dt` or `.cat` of a column."""

    __slots__ = ("kind", "series")

    def __init__(self, series: Series, name: str) -> None:
        with placed(f"Series.{name}"):
            try:
                super().__init__(series.trace, getattr(series.real, name))
            except AttributeError as error:
                raise UnsupportedError(f"Series.{name}: {error}") from error
        self.series = series
        self.kind = f"Series.{name}"

    def __getitem__(self, key: Any) -> Any:
        return self._ask(f"{self.kind}.__getitem__", lambda: self.real[key], key)

    def _ask(self, full: str, run: Callable[[], Any], /, *args: Any, **kwargs: Any) -> Any:
        call, result = asked(self.trace, full, run, self.series, *args, **kwargs)
        return wrapped(call, result)


class Indexer(Traced):
    """`.loc`, `.iloc`, `.at` or `.iat` of a frame or column."""

    __slots__ = ("kind", "owner")

    def __init__(self, owner: Series | Frame, name: str) -> None:
        super().__init__(owner.trace, getattr(owner.real, name))
        self.owner = owner
        self.kind = f"{owner.kind}.{name}"

    def __getitem__(self, key: Any) -> Any:
        call, result = asked(self.trace, f"{self.kind}.__getitem__", lambda: self.real[unwrapped(key)], self.owner, key)
        return wrapped(call, result)

    def __setitem__(self, key: Any, value: Any) -> None:
        asked(self.trace, f"{self.kind}.__setitem__", lambda: None, self.owner, key, value)


class Deferred:
    """A column that is made when it is asked for, and then kept."""

    __slots__ = ("_column", "_make")

    def __init__(self, made: Column | Callable[[], Column]) -> None:
        self._column = made if isinstance(made, Column) else None
        self._make = made if not isinstance(made, Column) else None

    def get(self) -> Column:
        if self._column is None:
            assert self._make is not None
            self._column = self._make()
        return self._column

    def then(self, step: Callable[[Column], Column]) -> Deferred:
        return Deferred(lambda: step(self.get()))


BLANK = Rows("0", lambda: None)  # type: ignore[arg-type, return-value]
"""The rows of a frame that has no columns yet: it has those of its first column."""


OWN_NAMES = frozenset(["column", "copied", "kind", "put", "real", "rows", "series", "trace"])
"""What a frame has here and not in pandas: in the user's code, the columns that are called so come first."""
IN_PLACE_ITSELF = frozenset(["query", "eval"])
"""Methods whose rules look at the names of the code that calls them, and deal with inplace themselves."""


class Frame(Traced):
    """A data frame. It changes where the function changes it."""

    __slots__ = ("columns_by_name", "rows")
    kind = "DataFrame"

    def __init__(self, trace: Trace, real: Any, columns: dict[Any, Deferred], rows: Rows) -> None:
        self.columns_by_name = columns
        super().__init__(trace, real)
        self.rows = rows

    def __getattribute__(self, name: str) -> Any:
        if name in OWN_NAMES and name in self.columns_by_name and is_asked_by_user():
            return self.series(name)
        return super().__getattribute__(name)

    def _call(self, full: str, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if name in IN_PLACE_ITSELF or not kwargs.pop("inplace", False):
            return super()._call(full, name, *args, **kwargs)
        made = super()._call(full, name, *args, **kwargs)
        self.real, self.columns_by_name, self.rows = made.real, made.columns_by_name, made.rows
        return self if name in RETURNING else None

    def column(self, name: Any) -> Column:
        try:
            return self.columns_by_name[name].get()
        except UnsupportedError as error:
            raise UnsupportedError(f"column {quote(str(name))}: {error}") from error

    def series(self, name: Any) -> Series:
        with placed("DataFrame"):
            return Series(self.trace, self.real[name], self.column(name))

    def put(self, name: Any, value: Series | Scalar) -> None:
        """Make `value` a column, in place of what was called so."""
        self.real = self.real.copy(deep=False)
        self.real[name] = value.real
        self.columns_by_name[name] = Deferred(replace(value.column, rows=self.rows))

    def copied(self) -> Frame:
        return Frame(self.trace, self.real.copy(deep=False), dict(self.columns_by_name), self.rows)

    @property
    def columns(self) -> Any:
        return self.real.columns

    @property
    def dtypes(self) -> Any:
        return self.real.dtypes

    @property
    def index(self) -> Index:
        return Index(self.trace, self.real.index, self.rows)

    @property
    def loc(self) -> Indexer:
        return Indexer(self, "loc")

    @property
    def iloc(self) -> Indexer:
        return Indexer(self, "iloc")

    def __getattr__(self, name: str) -> Any:
        if name in self.columns_by_name and not hasattr(type(self.real), name):
            return self.series(name)
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        is_own = name in ("real", "trace", "columns_by_name", "rows")
        if name == "columns_by_name" or (is_own and not (name in self.columns_by_name and is_asked_by_user())):
            object.__setattr__(self, name, value)
        elif name in self.columns_by_name:
            self[name] = value
        else:
            self._ask(f"DataFrame.{name}=", lambda: None, value)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, Proxy | list) and _is_hashable(key) and key in self.columns_by_name:
            return self.series(key)
        return self._ask("DataFrame.__getitem__", lambda: self.real[unwrapped(key)], key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ask("DataFrame.__setitem__", lambda: None, key, value)

    def __delitem__(self, key: Any) -> None:
        self.real = self.real.drop(columns=[key])
        del self.columns_by_name[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.columns_by_name))

    def __contains__(self, key: Any) -> bool:
        return key in self.columns_by_name


def _is_hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
