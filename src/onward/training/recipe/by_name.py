"""Losses, optimizers and schedules by their names, with options by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from onward.advice.nearest import meant
from onward.errors import OnwardError


def by_name(
    what: str, kinds: Mapping[str, type[Any]], name: str, options: Mapping[str, Any], also: Sequence[str] = ()
) -> Any:
    """An instance of one of `kinds`, which are dataclasses; `also`: other names that `what` has."""
    kind = kinds.get(name)
    if kind is None:
        names = [*kinds, *also]
        raise OnwardError(f"there is no {what} {name!r}; there are {', '.join(names)}{meant(name, names)}")
    known = {field.name: field.default for field in fields(kind)}
    if unknown := options.keys() - known.keys():
        its = f"it has {', '.join(sorted(known))}" if known else "it has none"
        first = min(unknown)
        raise OnwardError(f"the {what} {name} has no option {first!r}; {its}{meant(first, known)}")
    if missing := [option for option, default in known.items() if default is MISSING and option not in options]:
        raise OnwardError(f"the {what} {name} needs the option {missing[0]!r}")
    types = get_type_hints(kind)
    for option, value in options.items():
        if problem := _problem(value, types[option]):
            raise OnwardError(f"the {what} {name}: {option} is {value!r}, {problem}")
    return kind(**options)


def _problem(value: Any, wanted: Any) -> str | None:
    """Why a value is not of a type, for the types that are asked for most."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is float and not is_number:
        return "which is no number"
    if wanted is int and not (is_number and value == int(value)):
        return "which is no whole number"
    if wanted is bool and not isinstance(value, bool):
        return "which is neither true nor false"
    if get_origin(wanted) is Literal and value not in get_args(wanted):
        return f"not {' or '.join(map(repr, get_args(wanted)))}"
    return None
