"""What a file holds as JSON, as the dataclasses that it is to be: a file may hold anything, so types are looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from onward.errors import InvalidModelError

T = TypeVar("T")


def instance(kind: type[T], given: Any) -> T:
    """Of a dataclass, with the options that are given by name."""
    what = kind.__name__
    if not isinstance(given, Mapping):
        raise InvalidModelError(f"the metadata has {given!r:.80} for {what}")
    own: Any = kind
    known, hints = {field.name for field in fields(own)}, get_type_hints(kind)
    if unknown := [name for name in given if name not in known]:
        raise InvalidModelError(f"the metadata has {unknown[0]!r:.80} for {what}, which has no such option")
    try:
        return kind(**{name: fitted(value, hints[name], f"{what}.{name}") for name, value in given.items()})
    except TypeError as error:  # an option is missing
        raise InvalidModelError(f"the metadata does not have all of {what}: {error}") from error


def fitted(value: Any, wanted: Any, where: str) -> Any:
    """A value of the type that is wanted: lists become tuples where these are."""
    kind, inner = get_origin(wanted) or wanted, get_args(wanted)
    if kind in (Union, UnionType):
        for one in inner:
            try:
                return fitted(value, one, where)
            except InvalidModelError:
                continue
    elif kind is Literal and value in inner:
        return value
    elif kind in (list, tuple, Sequence) and isinstance(value, list | tuple):
        kinds = inner if kind is tuple and inner and inner[-1] is not ... else [inner[0]] * len(value)
        if len(kinds) == len(value):
            made = [fitted(one, own, where) for one, own in zip(value, kinds, strict=True)]
            return made if kind is list else tuple(made)
    elif kind in (dict, Mapping) and isinstance(value, dict):
        return {fitted(k, inner[0], where): fitted(v, inner[1], where) for k, v in value.items()}
    elif _is_plain(value, kind):
        return value
    raise InvalidModelError(f"the metadata has {value!r:.80} for {where}, which does not fit")


def _is_plain(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return kind is Any or (kind in (str, bool, NoneType) and isinstance(value, kind))
