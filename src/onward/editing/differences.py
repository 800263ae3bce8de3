"""What two models do not have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["added", "removed", "changed", "renamed", "tied", "same"]
ADDED, REMOVED, CHANGED, RENAMED, TIED, SAME = "added", "removed", "changed", "renamed", "tied", "same"
PARTS = ("input", "output", "node", "weight", "function", "training", "opset", "metadata")
"""What changes are of, in the order in which they are told."""


@dataclass(frozen=True)
class Change:
    """One difference. The details are phrases such as `strides: [1, 1] → [2, 2]`."""

    part: str
    kind: Kind
    name: str
    details: tuple[str, ...] = ()
    op: str = ""
    """Of a node."""
    where: str = ""
    """The function, or the graph inside a node; '' for the main graph."""


@dataclass(frozen=True)
class Line:
    """A node of either main graph, in the order in which they run; `left` and `right` are it in words."""

    kind: Kind
    left: str
    right: str
    details: tuple[str, ...] = ()


@dataclass
class Difference:
    """What `onward.diff` finds: every difference of the second model from the first."""

    first: str
    second: str
    changes: list[Change] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    """Both main graphs, side by side."""
    nodes: tuple[int, int] = (0, 0)
    """How many they have."""

    @property
    def same(self) -> bool:
        """Whether there is no difference, of names neither."""
        return not self.changes

    def of(self, part: str) -> list[Change]:
        return [change for change in self.changes if change.part == part]

    def counts(self) -> dict[str, dict[Kind, int]]:
        """By part of the model and kind, how many changes there are."""
        found = Counter((change.part, change.kind) for change in self.changes)
        return {
            part: {kind: count for (p, kind), count in found.items() if p == part}
            for part in PARTS
            if any(p == part for p, _ in found)
        }

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, without the side-by-side view."""
        return {
            "first": self.first,
            "second": self.second,
            "same": self.same,
            "nodes": list(self.nodes),
            "changes": [asdict(change) for change in self.changes],
        }
