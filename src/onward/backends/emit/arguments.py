"""How calls are written: without what goes without saying."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.expr import Expr
from onward.spec.meaning import Spec


def given(**arguments: Any) -> dict[str, Any]:
    """Keyword arguments without those that are None."""
    return {name: value for name, value in arguments.items() if value is not None}


def options(**arguments: Any) -> dict[str, Any]:
    """Keyword arguments without those that are None or False, which flags are by default."""
    return {name: value for name, value in given(**arguments).items() if value is not False}


def changed(p: Spec, *names: str, **renamed: str) -> dict[str, Any]:
    """Parameters of a node that are not the default, as keyword arguments: `name`, or `keyword="name"`."""
    wanted = dict(zip(names, names, strict=True)) | renamed
    return {key: value for key, name in wanted.items() if (value := getattr(p, name)) != getattr(type(p), name)}


def leading(*arguments: Expr | None) -> list[Expr | None]:
    """Positional arguments up to the last one that there is."""
    count = max((i for i, argument in enumerate(arguments, 1) if argument is not None), default=0)
    return list(arguments[:count])
