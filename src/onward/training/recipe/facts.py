"""What a training is in words: for a terminal, a notebook, and whoever prints it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onward.training.recipe.described import Stored, loss_words, penalty_words
from onward.training.recipe.optimizers import Averaged, Clipped
from onward.training.recipe.schedules import Constant, Cosine, Linear, Steps, Table, Warmup
from onward.training.recipe.user_models import OnnxOptimizer

if TYPE_CHECKING:
    from onward.training.trainable import Trainable


def facts(trainable: Trainable) -> dict[str, str]:
    """What is minimised, by what, and what changes."""
    found = {}
    if trainable.loss is not None:
        found["loss"] = " + ".join([*map(loss_words, trainable.loss), *map(penalty_words, trainable.penalties)])
    optimizer, limits, around = trainable.optimizer, [], {}
    while isinstance(optimizer, Clipped):
        if isinstance(optimizer, Averaged):
            around["moving average of weights"] = f"{optimizer.value:g} of it stays in a step"
        else:
            limits.append(f"each number within ±{optimizer.value:g}")
        optimizer = optimizer.inner
    as_graph = isinstance(optimizer, Stored | OnnxOptimizer)
    found["optimizer"] = f"a graph, with lr={optimizer.lr:g}" if as_graph else str(optimizer)
    if len(kinds := set(trainable.rules.values())) > 1:
        found["groups"] = ", ".join(sorted(f"lr × {rule.lr:g} with weight decay {rule.decay:g}" for rule in kinds))
    if trainable.schedule is not None:
        found["schedule"] = schedule_words(trainable.schedule)
    if trainable.clip_norm is not None:
        limits.insert(0, f"norm at most {trainable.clip_norm:g}")
    if limits:
        found["gradients"] = ", ".join(limits)
    if trainable.accumulate > 1:
        found["batches for a step"] = str(trainable.accumulate)
    if trainable.adapters:
        ranks = sorted({trainable.parameters[adapter.a].shape[-1] for adapter in trainable.adapters.values()})
        found["adapters"] = f"of rank {', '.join(map(str, ranks))}, beside {', '.join(trainable.adapters)}"
    count = sum(array.size for array in trainable.parameters.values())
    return found | around | {"weights": f"{len(trainable.parameters)} of {count:,} numbers"}


def schedule_words(schedule: Any) -> str:
    """How the learning rate changes."""
    match schedule:
        case Constant():
            return "as it is"
        case Steps():
            return f"× {schedule.factor:g} every {schedule.every} steps"
        case Linear():
            return f"down to {schedule.floor:g} of it in a line, over {schedule.steps} steps"
        case Cosine():
            return f"down to {schedule.floor:g} of it along a cosine, over {schedule.steps} steps"
        case Table():
            return f"a list of {len(schedule.factors)} factors"
        case Warmup():
            return f"up over {schedule.steps} steps, then {schedule_words(schedule.then)}"
    return "a function of your own"


def in_brackets(name: str, known: Mapping[str, str]) -> str:
    """As Python shows an object."""
    return f"{name}({'; '.join(f'{key}: {value}' for key, value in known.items())})"


def table(name: str, known: Mapping[str, str]) -> str:
    """As a notebook shows it."""
    rows = "".join(
        f'<tr><th style="text-align: left">{html.escape(key)}</th>'
        f'<td style="text-align: left">{html.escape(value)}</td></tr>'
        for key, value in known.items()
    )
    return f"<table><caption>{name}</caption><tbody>{rows}</tbody></table>"
