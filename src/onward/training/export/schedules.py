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


def factor(schedule: Schedule, words: Words = PYTHON, begun: int = 0) -> str:
    """The factor of the learning rate as an expression of `step`, which is 1 at first; `begun` steps come before it."""
    now = f"step - {begun}" if begun else "step"
    share = f"{words.least}((step - {begun + 1}) / {{}}, 1)"
    match schedule:
        case Constant():
            return "1.0"
        case Steps():
            return f"{schedule.factor!r} ** ((step - {begun + 1}) // {schedule.every})"
        case Linear():
            fall = "" if schedule.floor == 0 else f"{1 - schedule.floor!r} * "
            return f"1 - {fall}{share.format(schedule.steps)}"
        case Cosine():
            wave = f"(1 + {words.math}.cos({words.pi} * {share.format(schedule.steps)})) / 2"
            return wave if schedule.floor == 0 else f"{schedule.floor!r} + {1 - schedule.floor!r} * {wave}"
        case Table():
            index = f"{words.least}({now}, {len(schedule.factors)}) - 1"
            return words.pick.format(table=list(schedule.factors), index=index)
        case Warmup():
            later = factor(schedule.then, words, begun + schedule.steps - 1)
            first = f"{now} < {schedule.steps}" if not begun else f"step < {begun + schedule.steps}"
            rise = f"({now})" if begun else now
            return words.choice.format(test=first, yes=f"{rise} / {schedule.steps}", no=later)
    raise UnsupportedError(OWN.format("written as source"))
