"""Options as the user writes them: `--dim batch=16` in a terminal, `dims={'batch': 16}` in Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_TYPED = ContextVar("typed", default=False)
SINGULAR = {"dims": "dim", "outputs": "output"}
"""Options that are repeated in a terminal, and hold several values in Python."""


@contextmanager
def typed() -> Iterator[None]:
    """Inside, the user has typed a command."""
    before = _TYPED.set(True)
    try:
        yield
    finally:
        _TYPED.reset(before)


def option(name: str, value: object = None, *, plural: bool = False) -> str:
    """An option, by its name in Python, with a value if there is one; `True` and `False` are switches.

    With `plural` it has several values at once in a terminal, too, and the same name.
    """
    if not _TYPED.get():
        return name if value is None else f"{name}={value!r}"
    if value is False:
        return f"--no-{name}"
    word = f"--{(name if plural else SINGULAR.get(name, name)).replace('_', '-')}"
    if value is None or value is True:
        return word
    if isinstance(value, Mapping):
        value = [f"{key}={item}" for key, item in value.items()]
    items = value if isinstance(value, list) else [value]
    return " ".join(f"{word} {shlex.quote(str(item))}" for item in items)


def option_list(*names: str) -> str:
    """Several options: '--inputs-nhwc and --cast', or 'inputs_nhwc and cast'."""
    words = [option(name) for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
