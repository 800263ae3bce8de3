"""One small registry: a table from keys to entries in which a duplicate is an error."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Entries by key. What a user registers comes before what Onward ships."""

    def __init__(self, what: str) -> None:
        self._what = what
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
        return self._user.get(key) or self._builtin.get(key)

    def __contains__(self, key: str) -> bool:
        return key in self._user or key in self._builtin

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._user.keys() | self._builtin.keys()))


@cache
def import_files(package: str) -> None:
    """Import every file of a folder, once: each registers what it defines."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
