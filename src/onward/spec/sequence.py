"""What ops on sequences mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onward.spec.meaning import Spec, means


@means("SequenceEmpty")
@dataclass(frozen=True)
class SequenceEmpty(Spec):
    dtype: int = 1


@means("ConcatFromSequence")
@dataclass(frozen=True)
class ConcatFromSequence(Spec):
    axis: int
    new_axis: int = 0


@means("SplitToSequence")
@dataclass(frozen=True)
class SplitToSequence(Spec):
    axis: int = 0
    keepdims: int = 1


@means("Optional")
@dataclass(frozen=True)
class Optional(Spec):
    type: Any = None
