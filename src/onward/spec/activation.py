"""What activation functions and Dropout mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onward.spec.meaning import Spec, means


@means("LeakyRelu")
@dataclass(frozen=True)
class LeakyRelu(Spec):
    alpha: float = 0.01


@means("Elu", "Celu", "ThresholdedRelu", "Swish")
@dataclass(frozen=True)
class Scaled(Spec):
    alpha: float = 1.0


@means("Selu")
@dataclass(frozen=True)
class Selu(Spec):
    alpha: float = 1.6732632
    gamma: float = 1.050701

    @property
    def is_usual(self) -> bool:
        """Whether both are, in single precision, the numbers that frameworks have."""
        return (np.float32(self.alpha), np.float32(self.gamma)) == (np.float32(1.6732632), np.float32(1.050701))


@means("HardSigmoid")
@dataclass(frozen=True)
class HardSigmoid(Spec):
    alpha: float = 0.2
    beta: float = 0.5

    @property
    def is_usual(self) -> bool:
        """Whether both are, in single precision, the numbers that frameworks have."""
        return np.float32(self.alpha) == np.float32(1 / 6) and self.beta == 0.5


@means("Gelu")
@dataclass(frozen=True)
class Gelu(Spec):
    approximate: str = "none"


@means("Shrink")
@dataclass(frozen=True)
class Shrink(Spec):
    lambd: float = 0.5
    bias: float = 0.0


@means("Softmax", "LogSoftmax", "Hardmax")
@dataclass(frozen=True)
class Along(Spec):
    axis: int = -1


@means("Dropout")
@dataclass(frozen=True)
class Dropout(Spec):
    seed: int | None = None
