"""Plugins and custom ops of a test are unknown to the tests that follow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from onward.plugins import find, table


@contextmanager
def plugins_restored() -> Iterator[None]:
    """What is loaded or made inside is unknown again afterwards, and can be loaded anew."""
    before, modules = set(table.ops()), dict(find._LOADED)
    try:
        yield
    finally:
        for op in set(table.ops()) - before:
            table.forget(op)
        for name in find._LOADED.keys() - modules.keys():
            del find._LOADED[name]
            sys.modules.pop(name, None)
