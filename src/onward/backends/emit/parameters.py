"""What modules of one class differ by: the parameters of its `__init__`, named after their role.

Every number in the constructors of a class is a `Slot`. Where modules of the class agree on it, it is written as it
is; where they differ, it is a parameter: `in_channels` if the first layer takes so many, `hidden_channels`, `stride`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from onward.backends.emit.expr import Call, Name, lift, render

MOST_POSITIONAL = 3
"""Numbers that a reader tells apart without their names."""


@dataclass(eq=False)
class Slot:
    """A number in `__init__`, or several, that may differ between modules that are otherwise equal."""

    word: str
    """What the constructor calls it."""
    value: int | tuple[int, ...]
    owner: str = ""
    """The attribute whose constructor it stands in."""
    prefix: str = ""
    """What stands before it and goes with it where it is left out: `, stride=`."""
    default: int | tuple[int, ...] | None = None
    """What goes without saying."""
    call: list[Slot] = field(default_factory=list, repr=False)
    """All slots of the same constructor."""


Pieces = list[str | Slot]
"""Text with slots left open."""

Column = tuple[Any, ...]
"""What a slot is in each module of a class."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of `__init__`; one with a default may be left out."""

    name: str
    type: str
    default: int | tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.default is None else f" = {literal(self.default)}")


def literal(value: int | tuple[int, ...]) -> str:
    return render(lift(value), _no_leaf)


def _no_leaf(leaf: Any) -> tuple[str, int]:
    raise TypeError(f"{type(leaf).__name__} in a number")


class Parameters:
    """The parameters of a class whose modules have these slots, a row for each module."""

    def __init__(self, rows: Sequence[Sequence[Slot]]) -> None:
        self.slots = list(rows[0])
        self.columns: list[Column] = [tuple(slot.value for slot in slots) for slots in zip(*rows, strict=True)]
        self._derived = self._follow()
        self.by_column = self._named()

    def texts(self) -> list[str]:
        """What each slot is in the class: a parameter, a number, what follows from a parameter, or nothing."""
        found = []
        for i, (slot, column) in enumerate(zip(self.slots, self.columns, strict=True)):
            if i in self._derived:
                kernel = self.by_column[self._derived[i]].name
                text = f"{kernel} // 2"
            elif column in self.by_column:
                text = self.by_column[column].name
            elif slot.prefix and slot.value == slot.default:
                found.append("")
                continue
            else:
                text = literal(slot.value)
            found.append(slot.prefix + text)
        return found

    @property
    def ordered(self) -> list[tuple[Column, Parameter]]:
        """Those that must be given come first, and of these the widths of layers."""
        return sorted(
            self.by_column.items(), key=lambda item: (item[1].default is not None, not is_width(item[1].name))
        )

    def call(self, class_name: str, row: int) -> Call:
        """The constructor call of one module; what would be the fourth number without a name is given by name."""
        given = [(p, lift(column[row])) for column, p in self.ordered if column[row] != p.default]
        required = [p for p, _ in given if p.default is None]
        plain = required if len(required) <= MOST_POSITIONAL else [p for p in required if is_width(p.name)]
        plain = plain[:MOST_POSITIONAL]
        positional = tuple(value for p, value in given if p in plain)
        return Call(Name(class_name), positional, {p.name: value for p, value in given if p not in plain})

    def _follow(self) -> dict[int, Column]:
        """Paddings that are half a kernel in every module, and the column of that kernel."""
        found = {}
        place = {id(slot): i for i, slot in enumerate(self.slots)}
        for i, slot in enumerate(self.slots):
            if slot.word != "padding" or not _varies(self.columns[i]):
                continue
            for other in slot.call:
                kernel = self.columns[place[id(other)]]
                if other.word == "kernel_size" and all(
                    isinstance(k, int) and p == k // 2 for p, k in zip(self.columns[i], kernel, strict=True)
                ):
                    found[i] = kernel
        return found

    def _named(self) -> dict[Column, Parameter]:
        uses: dict[Column, list[int]] = {}
        for i, column in enumerate(self.columns):
            if _varies(column) and i not in self._derived:
                uses.setdefault(column, []).append(i)
        named: dict[Column, Parameter] = {}
        names = self._names(uses)
        for column, places in uses.items():
            defaults = {self.slots[i].default for i in places}
            default = defaults.pop() if len(defaults) == 1 else None
            named[column] = Parameter(names[column], _type(column), default if default in column else None)
        return named

    def _names(self, uses: dict[Column, list[int]]) -> dict[Column, str]:
        takes, gives = self._ends()
        names: dict[Column, str] = {}
        taken: set[str] = set()
        wishes = {column: self._wishes(places, takes, gives) for column, places in uses.items()}
        # What is sure of its name chooses first: the two ends of a module before what is between them.
        for column in sorted(uses, key=lambda c: (len(wishes[c]), uses[c])):
            names[column] = unused(wishes[column], taken)
            taken.add(names[column])
        return names

    def _ends(self) -> tuple[int | None, int | None]:
        """Where it says what the first layer takes, and what the last one gives."""
        layers = [slot for slot in self.slots if slot.word in _TAKES | _GIVES | _BOTH]
        if not layers:
            return None, None
        takes = [i for i, s in enumerate(self.slots) if s.call is layers[0].call and s.word in _TAKES | _BOTH]
        gives = [i for i, s in enumerate(self.slots) if s.call is layers[-1].call and s.word in _GIVES | _BOTH]
        return (takes[0] if takes else None), (gives[-1] if gives else None)

    def _wishes(self, places: list[int], takes: int | None, gives: int | None) -> list[str]:
        """Names for the slots at `places`, the best one first."""
        slots = [self.slots[i] for i in places]
        widths = [s for s in slots if is_width(s.word)]
        if not widths:
            first = min(slots, key=lambda s: _ORDER.get(s.word, 0))
            return [first.word, f"{first.owner}_{first.word}" if first.owner else first.word]
        unit = next((u for s in widths for u in _UNITS if s.word.endswith(u)), "size")
        if takes in places and gives in places:
            return [unit]
        if takes in places or gives in places:
            return [f"in_{unit}" if takes in places else f"out_{unit}"]
        owner = widths[0].owner
        return [f"hidden_{unit}", f"{owner}_{unit}" if owner else f"inner_{unit}"]


_UNITS = ("channels", "features")
_TAKES = frozenset({"in_channels", "in_features", "input_size"})
_GIVES = frozenset({"out_channels", "out_features"})
_BOTH = frozenset({"channels", "features"})
"""What classes of ours call a width that they take and give."""
_ORDER = {"padding": 2, "groups": 3}
"""What is the less telling name of a number that has several."""


def is_width(word: str) -> bool:
    """Whether a number counts the channels or features of a layer."""
    return word.endswith(("channels", "features")) or word in ("input_size", "hidden_size", "embedding_dim")


def _varies(column: Column) -> bool:
    return any(value != column[0] for value in column)


def _type(column: Column) -> str:
    kinds = dict.fromkeys("int" if isinstance(v, int) else f"tuple[{', '.join(['int'] * len(v))}]" for v in column)
    return " | ".join(sorted(kinds))


def unused(wishes: Iterable[str], taken: set[str]) -> str:
    """The first of the names that is free, or the last one with a number."""
    name = ""
    for name in wishes:
        if name not in taken:
            return name
    wish, n = name, 1
    while name in taken:
        n += 1
        name = f"{wish}{n}"
    return name
