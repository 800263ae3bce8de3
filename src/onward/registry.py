"""One small registry: a table from keys to entries in which a duplicate is an error."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[T]):
    """Entries by key. What a user registers comes before what a plugin says, and that before what Onward ships."""

    def __init__(self, what: str, plugged: Callable[[str], T | None] | None = None) -> None:
        """`plugged` tells what plugins have for a key; it is asked each time, since they come and go."""
        self._what = what
        self._plugged = plugged
        self._builtin: dict[str, T] = {}
        self._user: dict[str, T] = {}

    def register(self, *keys: str, user: bool = False) -> Callable[[T], T]:
        """A decorator that files the decorated object under each of `keys`."""
        table = self._user if user else self._builtin

        def file(entry: T) -> T:
            for key in keys:
                if key in table:
                    raise ValueError(f"{self._what} {key!r} is registered twice")
                table[key] = entry
            return entry

        return file

    def take(self, entries: Mapping[str, T]) -> None:
        """File each of `entries` under its key: what several have in common."""
        for key, entry in entries.items():
            self.register(key)(entry)

    def get(self, key: str) -> T | None:
        plugged = None if self._plugged is None else self._plugged(key)
        return self._user.get(key) or plugged or self._builtin.get(key)

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        """Keys without those of plugins, which may be there for any."""
        return iter(sorted(self._user.keys() | self._builtin.keys()))


_OF_SCHEMAS: list[Any] = []


def cached_by_schema(function: F) -> F:
    """As `functools.cache`, of what follows from the schemas of ops: a plugin that brings some empties it."""
    made = cache(function)
    _OF_SCHEMAS.append(made)
    return made  # type: ignore[return-value]


def forget_schemas() -> None:
    for made in _OF_SCHEMAS:
        made.cache_clear()


@cache
def import_files(package: str) -> None:
    """Import every file of a folder, once: each registers what it defines."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
