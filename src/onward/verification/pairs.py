"""Which output of one side belongs to which of the other, down to the arrays inside sequences and maps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from onward.runners.calls import Outputs
from onward.verification.metrics import Array
from onward.verification.results import Kind

By = Literal["name", "position"]


@dataclass(frozen=True)
class Pair:
    """An array of each side, or why there are no two to compare."""

    name: str
    """The source's: 'y', 's[2]' in a sequence, "m['cat']" in a map or in a list of maps."""
    expected: Array | None = None
    actual: Array | None = None
    kind: Kind = ""
    reason: str = ""
    remark: str = ""


def pairs(expected: Outputs, actual: Outputs, by: By = "name") -> Iterator[Pair]:
    """Every array of either side. What has no namesake is matched by position, where both sides have as many such."""
    names, others = list(expected), list(actual)
    partner = _partners(names, others, by)
    for name, value in expected.items():
        if name not in partner:
            there = ", ".join(map(str, actual)) or "none"
            yield Pair(name, kind="missing", reason=f"the other side has no such output; it has {there}")
            continue
        other = partner[name]
        remark = ""
        if len(names) == len(others) and names.index(name) != others.index(other):
            remark = f"the other side has it as output {1 + others.index(other)}, not {1 + names.index(name)}"
        for pair in _inside(name, value, actual[other]):
            yield replace(pair, remark=remark)
    for name in actual:
        if name not in partner.values():
            yield Pair(name, kind="unexpected", reason="the source has no such output")


def by_names_of(names: list[str], found: Outputs) -> Outputs:
    """Outputs under the names that another side has for them, where each has a partner there."""
    partner = _partners(names, list(found), "name")
    return {name: found[partner[name]] for name in names} if len(partner) == len(names) == len(found) else found


def renamed(names: list[str], others: list[str]) -> dict[str, str]:
    """Outputs that have other names on the other side and are matched by position, where that could be wrong.

    It cannot where there is but one to match, where the other side has no names, only positions, or where it
    merely spells them otherwise.
    """
    found = {name: other for name, other in _partners(names, others, "name").items() if name != other}
    positions = list(found.values()) == [str(names.index(name)) for name in found]
    spelled = all(_plain(name) == _plain(other) for name, other in found.items())
    return {} if len(found) < 2 or positions or spelled else found


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", re.sub(r":\d+$", "", name)).strip("_").lower()


def anywhere(name: str) -> str:
    """The name of an array with positions in sequences left out: noise is not that of one position."""
    return re.sub(r"\[\d+\]", "[]", name)


def _partners(wanted: list[str], found: list[str], by: By) -> dict[str, str]:
    partner = {name: name for name in wanted if name in found} if by == "name" else {}
    left = [name for name in wanted if name not in partner]
    others = [name for name in found if name not in partner]
    if len(left) == len(others):
        partner.update(zip(left, others, strict=True))
    return partner


def _inside(name: str, expected: Any, actual: Any) -> Iterator[Pair]:
    what, instead = _what(expected), _what(actual)
    if what != instead:
        yield Pair(name, kind="type", reason=f"{instead} instead of {what}")
    elif isinstance(expected, Mapping):
        yield from _maps(name, expected, actual)
    elif isinstance(expected, list | tuple):
        yield from _sequences(name, list(expected), list(actual))
    elif expected is None:
        yield Pair(name)
    else:
        yield Pair(name, *_numbers(expected, actual))


def _maps(name: str, expected: Mapping[Any, Any], actual: Mapping[Any, Any]) -> Iterator[Pair]:
    for key, value in expected.items():
        if key in actual:
            yield from _inside(f"{name}[{key!r}]", value, actual[key])
        else:
            yield Pair(f"{name}[{key!r}]", kind="missing", reason="the other side's map has no such key")
    for key in actual:
        if key not in expected:
            yield Pair(f"{name}[{key!r}]", kind="unexpected", reason="the source's map has no such key")


def _sequences(name: str, expected: list[Any], actual: list[Any]) -> Iterator[Pair]:
    if len(expected) != len(actual):
        yield Pair(name, kind="shape", reason=f"a sequence of {len(actual)} instead of {len(expected)}")
    elif not expected:
        yield Pair(name)
    elif keys := _table(expected + actual):
        for key in keys:
            wanted, found = ([row[key] for row in rows] for rows in (expected, actual))
            yield Pair(f"{name}[{key!r}]", *_numbers(wanted, found))
    else:
        for position, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from _inside(f"{name}[{position}]", one, other)


def _numbers(expected: Any, actual: Any) -> tuple[Array, Array]:
    """As arrays. The numbers of a map are Python's, which do not tell that they were of single precision."""
    arrays = np.asarray(expected), np.asarray(actual)
    plain = not isinstance(expected, np.ndarray | np.generic) and all(array.dtype.kind == "f" for array in arrays)
    if plain and all(np.array_equal(array.astype(np.float32), array, equal_nan=True) for array in arrays):
        return arrays[0].astype(np.float32), arrays[1].astype(np.float32)
    return arrays


def _table(rows: list[Any]) -> list[Any]:
    """The keys, where all of the rows are maps with the same keys to numbers, as classifiers give them."""
    if not all(isinstance(row, Mapping) and row.keys() == rows[0].keys() for row in rows):
        return []
    numbers = all(np.ndim(value) == 0 and not isinstance(value, str) for row in rows for value in row.values())
    return list(rows[0]) if numbers else []


def _what(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return "a sequence"
    return "strings" if np.asarray(value).dtype.kind in "OUST" else "a tensor"
