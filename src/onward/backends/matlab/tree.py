"""The tree of tensors as MATLAB holds it: structs by name, and cell arrays where the names are numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from onward.backends.emit.statements import Scope
from onward.backends.matlab.language import KEYWORDS
from onward.errors import UnsupportedError

LONGEST = 63
"""Characters of the name of a field."""


def field_name(part: str) -> str:
    """A part of a path as the field of a struct."""
    text = part.lstrip("_") or "x"
    text = text if text[0].isalpha() else f"n{text}"
    return f"{text}_" if text in KEYWORDS else text


def nested(leaves: Mapping[Scope, Any], lists: Collection[Scope]) -> dict[str, Any]:
    """Dictionaries and lists of what stands at each path."""
    root: dict[str, Any] = {}
    for path, leaf in leaves.items():
        place: Any = root
        for i, part in enumerate(path):
            is_last = i == len(path) - 1
            new: Any = leaf if is_last else ({} if path[: i + 1] not in lists else [])
            place = _put(place, part, new, is_last, path)
    return root


def _put(place: Any, part: str, new: Any, is_last: bool, path: Scope) -> Any:
    """What stands at a part of a path, made if it is not there yet."""
    if isinstance(place, list):
        number = int(part)
        while len(place) <= number:
            place.append(None)
        if place[number] is None or is_last:
            place[number] = new
        return place[number]
    key = field_name(part)
    if len(key) > LONGEST:
        raise UnsupportedError(f"{'.'.join(path)}: MATLAB has no names of more than {LONGEST} characters")
    known = place.setdefault(key, (part, new))
    if known[0] != part or (is_last and known[1] is not new):
        raise UnsupportedError(f"{'.'.join(path)}: MATLAB would call it as it calls {known[0]!r} beside it: {key}")
    return known[1]


def plain(tree: Any) -> Any:
    """The tree without what its parts are called in the file."""
    if isinstance(tree, dict):
        return {key: plain(value) for key, (_, value) in tree.items()}
    return [plain(value) for value in tree] if isinstance(tree, list) else tree
