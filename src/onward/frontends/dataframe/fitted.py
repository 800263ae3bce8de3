"""Values that are taken from the sample once and for all, where the function says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

T = TypeVar("T")
_ACTIVE: ContextVar[bool] = ContextVar("fitting", default=False)


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
    return value


@contextmanager
def fitting() -> Iterator[None]:
    """While a function is followed."""
    token = _ACTIVE.set(True)
    try:
        yield
    finally:
        _ACTIVE.reset(token)
