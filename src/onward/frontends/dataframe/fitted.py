"""Values that are taken from the sample once and for all, where the function says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

T = TypeVar("T")
_ACTIVE: ContextVar[bool] = ContextVar("fitting", default=False)
_KEPT: ContextVar[Callable[[Any], Any] | None] = ContextVar("kept", default=None)
"""What becomes of a value while a function is compared with its model."""


def fitted(value: T) -> T:
    """A value as it is for the sample, from now on a constant of the model.

    Without it, `df.age.median()` is the median of whatever rows the model is given, as pandas would compute it. With
    it, the median of the sample is kept. Called by itself, outside a conversion, it returns what it is given.

    >>> import onward, pandas
    >>> def features(df):
    ...     return df.assign(age=df.age.fillna(onward.fitted(df.age.median())))
    >>> model = onward.from_dataframe(features, pandas.DataFrame({"age": [20.0, None, 40.0]}))
    >>> onward.run(model, pandas.DataFrame({"age": [None, 50.0]})).age.tolist()
    [30.0, 50.0]
    """
    if _ACTIVE.get() and hasattr(value, "trace"):
        return cast(T, cast(Any, value).real)
    kept = _KEPT.get()
    return value if kept is None else cast(T, kept(value))


def fitted_once(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function with the values that are fitted by the first frame that it is given, as its model has them."""
    values: list[Any] | None = None

    def call(frame: Any) -> Any:
        nonlocal values
        if values is not None:
            again = iter(values)
            return _with(lambda _: next(again), function, frame)
        found: list[Any] = []

        def noted(value: Any) -> Any:
            found.append(value)
            return value

        result = _with(noted, function, frame)
        values = found
        return result

    return call


def _with(kept: Callable[[Any], Any], function: Callable[[Any], Any], frame: Any) -> Any:
    token = _KEPT.set(kept)
    try:
        return function(frame)
    finally:
        _KEPT.reset(token)


@contextmanager
def fitting() -> Iterator[None]:
    """While a function is followed."""
    token = _ACTIVE.set(True)
    try:
        yield
    finally:
        _ACTIVE.reset(token)
