"""Class labels in a training graph: what values they may have, and which scores they are compared with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidDataError

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ClassLabels:
    """An input of indices that pick one of the scores along an axis."""

    input: ir.Value
    wanted: ir.Value
    """What the loss made of the input, one for each place of the scores: moved by a place, or in another shape."""
    scores: ir.Value
    axis: int
    ignored: tuple[int, ...]
    """The indices that stand for no class; the first is the one that `wanted` has."""

    @property
    def classes(self) -> int | None:
        """How many there are, if it is known."""
        size = None if self.scores.shape is None else self.scores.shape[self.axis]
        return size if isinstance(size, int) else None

    def check(self, array: Array) -> None:
        """Refuse an index of no class. ONNX Runtime takes negative ones to count from the end."""
        top = self.classes
        bad = array < 0 if top is None else (array < 0) | (array >= top)
        bad &= ~np.isin(array, self.ignored)
        if bad.any():
            place = np.argwhere(bad)[0].tolist()
            at = place[0] if len(place) == 1 else place
            many = "" if bad.sum() == 1 else f" (and {bad.sum() - 1} more)"
            classes = "classes are counted from 0" if top is None else f"there are {top} classes, 0 to {top - 1}"
            raise InvalidDataError(f"{self.input.name!r} at {at} is {array[bad][0]}{many}, but {classes}")


def class_labels(graph: ir.Graph, names: Collection[str]) -> dict[str, ClassLabels]:
    """Those of the named inputs that are class labels of a loss."""
    found: dict[str, ClassLabels] = {}
    for node in graph:
        if node.op_type == "GatherElements" and node.inputs[0] is not None and node.inputs[1] is not None:
            wanted, source, ignored = _source(node.inputs[1])
            if source.name in names and source.is_graph_input():
                axis = node.attributes.get_int("axis", 0)
                found.setdefault(source.name or "", ClassLabels(source, wanted, node.inputs[0], axis, ignored))
    return found


def _source(value: ir.Value) -> tuple[ir.Value, ir.Value, tuple[int, ...]]:
    """The indices before some were replaced, where they come from, and which of them are replaced on the way."""
    ignored: list[int] = []
    wanted = None
    while (node := value.producer()) is not None:
        if node.op_type == "Where" and (condition := node.inputs[0]) is not None:
            test = condition.producer()
            if test is not None and test.op_type == "Equal" and (constant := test.inputs[1]) is not None:
                ignored += [] if constant.const_value is None else [int(constant.const_value.numpy().item())]
            following = node.inputs[2]
            wanted = wanted or following
        elif node.op_type in ("Unsqueeze", "Squeeze", "Identity", "Cast", "Reshape", "Slice", "Concat"):
            following = node.inputs[0]
            if node.op_type != "Unsqueeze":
                wanted = wanted or value
        else:
            break
        if following is None:
            break
        value = following
    return wanted or value, value, tuple(ignored)
