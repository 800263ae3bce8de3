"""Schedules as expressions of the number of the step."""

from __future__ import annotations

from dataclasses import dataclass

from onward.errors import UnsupportedError
from onward.training.recipe.schedules import OWN, Constant, Cosine, Linear, Schedule, Steps, Table, Warmup


@dataclass(frozen=True)
class Words:
    """How numbers are computed with: those of Python, or those that a function is traced with."""

    least: str = "min"
    math: str = "math"
    pi: str = "math.pi"
    choice: str = "{yes} if {test} else {no}"
    pick: str = "{table}[{index}]"


PYTHON = Words()


def factor(schedule: Schedule, words: Words = PYTHON, step: str = "step") -> str:
    """The factor of the learning rate as an expression of the number of the step, which is 1 at first."""
    before = f"{step} - 1" if step.isidentifier() else f"({step}) - 1"
    match schedule:
        case Constant():
            return "1.0"
        case Steps():
            return f"{schedule.factor!r} ** (({before}) // {schedule.every})"
        case Linear():
            return f"1 - {1 - schedule.floor!r} * {words.least}(({before}) / {schedule.steps}, 1)"
        case Cosine():
            turn = f"{words.pi} * {words.least}(({before}) / {schedule.steps}, 1)"
            return f"{schedule.floor!r} + {1 - schedule.floor!r} * (1 + {words.math}.cos({turn})) / 2"
        case Table():
            index = f"{words.least}({step}, {len(schedule.factors)}) - 1"
            return words.pick.format(table=list(schedule.factors), index=index)
        case Warmup():
            later = factor(schedule.then, words, f"{step} - {schedule.steps - 1}")
            test = f"{step} < {schedule.steps}"
            return words.choice.format(test=test, yes=f"{step} / {schedule.steps}", no=later)
    raise UnsupportedError(OWN.format("written as source"))
