"""The present moment: it would be that of the conversion for ever, so that asking for it is refused."""

from __future__ import annotations

import datetime
from types import ModuleType
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.dataframe.pandas.dispatch import placed

WORDS = ("now", "today")


def refuse(name: str) -> Any:
    with placed(name):
        raise UnsupportedError(
            f"{name} would be the moment of the conversion for ever: pass the time as a column, or compute it before "
            "the function, to keep it on purpose"
        )


def _without_present(original: type, name: str) -> Any:
    """A class that is another one in every respect, but does not tell the present."""

    def method(asked: str) -> classmethod[Any, Any, Any]:
        return classmethod(lambda cls, *args, **kwargs: refuse(f"{name}.{asked}()"))

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], str) and args[0].lower() in WORDS:
            refuse(f"{name}({args[0]!r})")
        return original(*args, **kwargs)

    checks = {
        "__instancecheck__": lambda cls, instance: original in type(instance).__mro__,
        "__subclasscheck__": lambda cls, other: original in other.__mro__,
    }
    meta = type(f"{original.__name__}Made", (type(original),), checks)
    present = {asked: method(asked) for asked in ("now", "today", "utcnow") if hasattr(original, asked)}
    return meta(original.__name__, (original,), {"__new__": new, **present})


class _Datetime(ModuleType):
    """The module datetime, with classes that do not tell the present."""

    def __init__(self, classes: dict[str, Any]) -> None:
        super().__init__("datetime")
        self.__dict__.update(classes)

    def __getattr__(self, name: str) -> Any:
        return getattr(datetime, name)


def replacements() -> tuple[dict[int, Any], dict[str, Any]]:
    """By the id of what they stand for; and those among the names of pandas."""
    import pandas

    stamp = _without_present(pandas.Timestamp, "pd.Timestamp")
    classes = {
        "datetime": _without_present(datetime.datetime, "datetime"),
        "date": _without_present(datetime.date, "date"),
    }
    found = {id(getattr(datetime, name)): made for name, made in classes.items()}
    return {id(pandas.Timestamp): stamp, id(datetime): _Datetime(classes), **found}, {"Timestamp": stamp}
