"""What the optimizers of ONNX mean, and gradients inside a model."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.spec.meaning import Spec, means

TRAINING = "ai.onnx.preview.training"


@means(f"{TRAINING}::Adam")
@dataclass(frozen=True)
class Adam(Spec):
    alpha: float = 0.9
    beta: float = 0.999
    epsilon: float = 0.0
    norm_coefficient: float = 0.0
    norm_coefficient_post: float = 0.0


@means(f"{TRAINING}::Adagrad")
@dataclass(frozen=True)
class Adagrad(Spec):
    decay_factor: float = 0.0
    epsilon: float = 0.0
    norm_coefficient: float = 0.0


@means(f"{TRAINING}::Momentum")
@dataclass(frozen=True)
class Momentum(Spec):
    alpha: float
    beta: float
    norm_coefficient: float
    mode: str

    def __post_init__(self) -> None:
        if self.mode not in ("standard", "nesterov"):
            raise InvalidModelError(f"Momentum: mode is {self.mode!r}, not standard or nesterov")

    @property
    def is_nesterov(self) -> bool:
        return self.mode == "nesterov"


@means("onward::Gradient")
@dataclass(frozen=True)
class Gradient(Spec):
    """The derivatives of the sum of the body's output with respect to its first `count` inputs."""

    body: ir.Graph
    count: int
