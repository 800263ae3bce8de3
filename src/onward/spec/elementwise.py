"""What arithmetic means, element by element."""

from __future__ import annotations

from dataclasses import dataclass

from onward.spec.meaning import Spec, means


@means("Mod")
@dataclass(frozen=True)
class Mod(Spec):
    fmod: int = 0
    """1: the result has the sign of the dividend."""


@means("BitShift")
@dataclass(frozen=True)
class BitShift(Spec):
    direction: str

    @property
    def is_left(self) -> bool:
        return self.direction == "LEFT"


@means("IsInf")
@dataclass(frozen=True)
class IsInf(Spec):
    detect_negative: int = 1
    detect_positive: int = 1
