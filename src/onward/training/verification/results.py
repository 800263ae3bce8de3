"""What a verification of training found, as plain data: the terminal, JSON and HTML views are made from it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from onward.verification.results import Status, plain

Part = Literal["forward", "statistics", "loss", "gradient", "state", "update", "course"]
"""Of a training step, in the order of computation. `course`: no single step differs, but all together do."""
WORDS: dict[Part, str] = {
    "forward": "an output of the model",
    "statistics": "a running statistic",
    "loss": "the loss",
    "gradient": "the gradient of a weight",
    "state": "the optimizer's state",
    "update": "the optimizer's update of a weight",
    "course": "the course of training",
}


@dataclass(frozen=True)
class Check:
    """One tensor of both sides, after or in one step."""

    step: int
    part: Part
    tensor: str
    status: Status
    """`failed`: the noise of training drowns it, so nothing can be told."""
    error: float
    """As `Metrics.worst` of `onward verify`."""
    allowed: float
    reason: str = ""

    @property
    def closeness(self) -> float:
        """1 at the tolerance."""
        if self.status == "failed":
            return 0.0
        return self.error / self.allowed if self.allowed else math.inf if self.error else 0.0


@dataclass(frozen=True)
class SideResult:
    """The training in one framework against that on ONNX Runtime."""

    name: str
    losses: tuple[float, ...] = ()
    allowed: tuple[float, ...] = ()
    """How far each of these may be off."""
    checks: tuple[Check, ...] = ()
    """Of the first step all tensors, and of states the worst after each step that was looked at."""
    parted: int | None = None
    """The first step that is beyond the noise."""
    difference: Check | None = None
    """What it is that differs, found with the same weights and state on both sides."""
    failure: str = ""
    """Why it could not be run."""
    refused: bool = False
    """Whether that is because this training is not exported, and not a defect of what was."""
    seconds: float = 0.0
    noise: str = ""
    """What the noise was measured by."""

    @property
    def status(self) -> Status:
        if self.difference is not None:
            return "different"
        return "failed" if self.failure or not self.losses else "same"

    @property
    def worst(self) -> Check | None:
        """Of the tensors, the one furthest beyond, or closest to, its tolerance."""
        return max(self.checks, key=lambda check: check.closeness, default=None)


@dataclass
class TrainingReport:
    """A training on ONNX Runtime, and the same in other frameworks."""

    model: str
    steps: int
    data: str = ""
    """Where the batches came from."""
    losses: list[float] = field(default_factory=list)
    """On ONNX Runtime."""
    noise: list[float] = field(default_factory=list)
    """How far losses are from these, up to each step, where training starts one bit off."""
    chaos: int | None = None
    """The first step at which that noise is as large as the loss: from there on, nothing can be told."""
    sides: list[SideResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def compared(self) -> int:
        """How many steps say something."""
        return self.steps if self.chaos is None else self.chaos - 1

    @property
    def status(self) -> Status:
        statuses = {side.status for side in self.sides}
        if "different" in statuses:
            return "different"
        return "failed" if "failed" in statuses or not self.sides or not self.compared else "same"

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dump`: infinities and NaN as strings."""
        found: dict[str, Any] = plain(asdict(self))
        found["status"] = self.status
        for side, result in zip(self.sides, found["sides"], strict=True):
            result["status"] = side.status
        return found


def told(check: Check) -> str:
    """What differs, and how: 'step 3: the gradient of a weight, fc1.weight: …'."""
    return f"step {check.step}: {WORDS[check.part]}, {check.tensor}: {check.reason}"


def verdict(side: SideResult, report: TrainingReport) -> str:
    """One sentence about a framework."""
    if side.failure:
        return f"it cannot be run: {side.failure}"
    if side.difference is not None:
        return told(side.difference)
    steps = "1 step agrees" if report.compared == 1 else f"{report.compared} steps agree"
    off, allowed = _furthest(side)
    words = f"{steps}; the loss is off by at most {off:.1e}, allowed {allowed:.1e}"
    worst = side.worst
    if worst is not None:
        words += (
            f"; of tensors, {worst.tensor} comes closest to what is allowed ({worst.error:.1e} of {worst.allowed:.1e})"
        )
    return words


def _furthest(side: SideResult) -> tuple[float, float]:
    """The error of the loss that comes closest to what is allowed; relative to nothing."""
    found = [(check.error, check.allowed) for check in side.checks if check.part == "loss"]
    return max(found, key=lambda pair: pair[0] / pair[1] if pair[1] else 0.0, default=(0.0, 0.0))
