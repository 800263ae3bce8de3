"""What the nodes that read an input say about its values: indices below a size, masks, lengths, keys, shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onward.verification.data.linked_sizes import Array, Fit, View, rule_of

# fmt: off
VALUE_KEEPING = {
    "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Cast", "Identity", "Slice", "Expand", "Concat",
    "Flatten", "Tile", "TopK", "Split", "Pad", "Gather", "GatherElements", "GatherND", "ReduceMax", "ReduceMin",
    "SequenceAt", "OptionalGetElement", "CastLike", "SequenceConstruct", "Where",
}
UNTOUCHED = {"Cast", "Identity", "CastLike", "OptionalGetElement"}
# fmt: on
"""Ops that keep every element in its place."""

MASK_NAME = re.compile("mask", re.IGNORECASE)
POSITION_NAME = re.compile("position", re.IGNORECASE)
LENGTH_NAME = re.compile(r"len|width|height|size|num|count", re.IGNORECASE)

Exact = Callable[[tuple[int, ...]], Any]
"""The shape of an input to its only sensible contents."""


@dataclass
class Clues:
    """What is known of an input's values."""

    low: float | None = None
    high: float | None = None
    """Inclusive limits: of integers, or of floats that have to stay within."""
    exact: Exact | None = None
    choices: list[Any] = field(default_factory=list)
    is_mask: bool = False
    is_length: bool = False
    longest: int | None = None
    """What lengths do not exceed."""
    filled: int | None = None
    """How many places of a cache hold something."""
    is_positive: bool = False
    is_pixels: bool = False
    is_scale: bool = False
    """Whether it is a part of what says how much larger or smaller an image becomes."""
    thresholds: dict[int, list[float]] = field(default_factory=dict)
    """Of decision trees, by feature."""
    affine: tuple[Array, Array] | None = None
    """Mean and deviation of the features."""

    def limit(self, low: float, high: float | None) -> None:
        """The values stay within both these limits and those known before."""
        if high is None:
            return
        self.low = low if self.low is None else max(low, self.low)
        self.high = high if self.high is None else min(high, self.high)
        if self.high < self.low:
            self.low = self.high

    def below(self, size: int | None) -> None:
        """The values are indices of something of that size."""
        self.limit(0, None if size is None else max(size - 1, 0))

    @property
    def is_structural(self) -> bool:
        """Whether the model may not run on other values: they are shapes, counts, or lengths."""
        chosen = bool(self.choices) and self.low is None
        return self.exact is not None or self.is_length or self.is_scale or chosen or (self.low or 0) > 0


@dataclass(frozen=True)
class Use(View):
    """One input of a node, the sizes of dynamic dimensions being chosen."""

    index: int
    sizes: Mapping[str, int]
    direct: bool
    """Whether the input of the graph arrives with every element in its place."""

    def shape(self, index: int) -> tuple[int, ...] | None:
        return self.fit.shape(self.value(index), self.sizes)

    def length(self, index: int, axis: int) -> int | None:
        """The size of an axis, if it is known."""
        return self.fit.length(self.axis(index, axis), self.sizes)


Rule = Callable[[Clues, Use], None]


def clues_of(value: ir.Value, fit: Fit, sizes: Mapping[str, int], rules: Mapping[str, Rule]) -> Clues:
    clues = Clues()
    for node, index, direct in _readers(value):
        if rule := rule_of(rules, node):
            rule(clues, Use(fit, node, index, sizes, direct))
    return clues


def _readers(value: ir.Value) -> Iterator[tuple[ir.Node, int, bool]]:
    """Every (node, input number) that the values reach unchanged, subgraphs included."""
    pending, seen = [(value, True)], {id(value)}
    while pending:
        current, direct = pending.pop()
        for node, index in current.uses():
            yield node, index, direct
            if node.op_type in VALUE_KEEPING and (node.op_type == "Concat" or (index > 0) == (node.op_type == "Where")):
                fresh = [output for output in node.outputs if id(output) not in seen]
                seen.update(map(id, fresh))
                pending += [(output, direct and node.op_type in UNTOUCHED) for output in fresh]
            elif node.op_type in ("Loop", "Scan"):
                inner = _passed(node, index)
                if inner is not None and id(inner) not in seen:
                    seen.add(id(inner))
                    pending.append((inner, direct and node.op_type == "Loop"))


def _passed(node: ir.Node, index: int) -> ir.Value | None:
    """The input of a body that an input of a Loop or Scan is passed to."""
    body = node.attributes["body"].as_graph() if "body" in node.attributes else None
    if body is None or index >= len(body.inputs) or (node.op_type == "Loop" and index < 2):
        return None
    return body.inputs[index]
