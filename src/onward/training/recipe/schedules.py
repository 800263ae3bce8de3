"""Learning rates that change from step to step: functions of the number of the step, which is 1 at first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onward.errors import OnwardError
from onward.training.recipe.by_name import by_name

Schedule = Callable[[int], float]
"""The number of a step to the factor that the learning rate is multiplied by."""


@dataclass(frozen=True)
class Constant:
    """The rate as it is."""

    def __call__(self, step: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Steps:
    """Multiplied by `factor` after every so many steps."""

    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        _at_least_one(self, self.every)

    def __call__(self, step: int) -> float:
        return float(self.factor ** ((step - 1) // self.every))


@dataclass(frozen=True)
class Linear:
    """Down to `floor` in a straight line, over so many steps."""

    steps: int
    floor: float = 0.0

    def __post_init__(self) -> None:
        _at_least_one(self, self.steps)

    def __call__(self, step: int) -> float:
        return 1 - (1 - self.floor) * min((step - 1) / self.steps, 1)


@dataclass(frozen=True)
class Cosine:
    """Down to `floor` along half a cosine, over so many steps."""

    steps: int
    floor: float = 0.0

    def __post_init__(self) -> None:
        _at_least_one(self, self.steps)

    def __call__(self, step: int) -> float:
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * min((step - 1) / self.steps, 1))) / 2


@dataclass(frozen=True)
class Table:
    """A factor for each step, in a list; the last one stays. Unlike a function, it can be saved and exported."""

    factors: Sequence[float]

    def __post_init__(self) -> None:
        if not isinstance(self.factors, Sequence) or isinstance(self.factors, str) or not self.factors:
            raise OnwardError(f"a table of factors is {self.factors!r}: give a list with one number or more")
        object.__setattr__(self, "factors", tuple(map(float, self.factors)))
        if not all(map(math.isfinite, self.factors)):
            raise OnwardError("a table of factors has one that is no number: give finite ones")

    @classmethod
    def of(cls, schedule: Schedule, steps: int) -> Table:
        """What a function of your own gives for so many steps."""
        return cls([schedule(step) for step in range(1, steps + 1)])

    def __call__(self, step: int) -> float:
        return self.factors[min(step, len(self.factors)) - 1]


@dataclass(frozen=True)
class Warmup:
    """Up in a straight line over the first steps, then another schedule from its beginning."""

    steps: int
    then: Schedule = Constant()

    def __post_init__(self) -> None:
        _at_least_one(self, self.steps)

    def __call__(self, step: int) -> float:
        return step / self.steps if step < self.steps else self.then(step - self.steps + 1)


SCHEDULES: Mapping[str, type[Any]] = {
    "constant": Constant,
    "steps": Steps,
    "linear": Linear,
    "cosine": Cosine,
    "table": Table,
    "warmup": Warmup,
}


def schedule_named(name: str, **options: Any) -> Schedule:
    """A schedule by its name, with options by name; `warmup` in front of another one is its option."""
    first = options.pop("warmup", 0)
    made: Schedule = by_name("schedule", SCHEDULES, name, options)
    if first and not isinstance(first, int):
        raise OnwardError(f"the schedule {name}: warmup is {first!r}, but has to be a whole number")
    return Warmup(first, made) if first else made


def is_own(schedule: Schedule | None) -> bool:
    """Whether a part of it is a function of the user, which no file can hold."""
    if isinstance(schedule, Warmup):
        return is_own(schedule.then)
    return schedule is not None and type(schedule) not in SCHEDULES.values()


OWN = (
    "the schedule is a function of your own, which cannot be {}: give prepare(…, schedule=Table.of(yours, steps)),"
    " which lists what it gives for so many steps"
)
"""What is wrong, and what to do."""


def _at_least_one(schedule: Any, steps: int) -> None:
    if steps < 1:
        raise OnwardError(f"{schedule}: the number of steps has to be at least 1")
