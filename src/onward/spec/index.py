"""What ops that pick, place, sort or count elements by index mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import onnx_ir as ir

from onward.spec.meaning import Spec, attributes, means, rank


@means("Gather", "GatherElements")
@dataclass(frozen=True)
class Along(Spec):
    """`axis` is counted from the front where the rank is known."""

    axis: int = 0

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given, count = attributes(node), rank(node)
        if count is not None and given.get("axis", 0) < 0:
            given["axis"] += count
        return cls(**given)


@means("Scatter", "ScatterElements")
@dataclass(frozen=True)
class ScatterElements(Along):
    reduction: str = "none"


@means("GatherND")
@dataclass(frozen=True)
class GatherND(Spec):
    batch_dims: int = 0


@means("ScatterND")
@dataclass(frozen=True)
class ScatterND(Spec):
    reduction: str = "none"


@means("TensorScatter")
@dataclass(frozen=True)
class TensorScatter(Spec):
    axis: int = -2
    mode: str = "linear"


@means("OneHot")
@dataclass(frozen=True)
class OneHot(Spec):
    axis: int = -1
    """Of the result."""


@means("Unique")
@dataclass(frozen=True)
class Unique(Spec):
    axis: int | None = None
    sorted: int = 1


@means("TopK")
@dataclass(frozen=True)
class TopK(Spec):
    axis: int = -1
    largest: int = 1
    sorted: int = 1


@means("Compress")
@dataclass(frozen=True)
class Compress(Spec):
    axis: int | None = None


@means("ReverseSequence")
@dataclass(frozen=True)
class ReverseSequence(Spec):
    batch_axis: int = 1
    time_axis: int = 0
