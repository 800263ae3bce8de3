"""What differs from one model to another, in words: the same in the terminal and on a page."""

from __future__ import annotations

from onward.editing.differences import Change, Difference
from onward.report.wording import counted

SIGNS = {"added": "+", "removed": "-", "changed": "~", "renamed": "»", "tied": "="}
TITLES = {
    "input": "Inputs",
    "output": "Outputs",
    "node": "Nodes",
    "weight": "Weights",
    "function": "Functions",
    "training": "Training",
    "opset": "Opsets",
    "metadata": "Metadata",
}


def summary(found: Difference) -> str:
    """`2 nodes removed, 1 changed; 3 weights changed`"""
    if found.same:
        return "no difference"
    groups = []
    for part, kinds in found.counts().items():
        (first, count), *rest = kinds.items()
        things = "metadata" if part == "metadata" else "training" if part == "training" else ""
        head = f"{things} {first}" if things else f"{counted(count, part)} {first}"
        groups.append(", ".join([head, *(f"{number:,} {kind}" for kind, number in rest)]))
    return "; ".join(groups)


def subject(change: Change) -> str:
    """`Conv 'conv1'`, `x`"""
    name = f"{change.op} {change.name!r}" if change.op else change.name
    return f"{name} (in {change.where})" if change.where else name
