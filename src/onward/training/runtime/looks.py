"""A trainer in words, and as a table of a notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer


def facts(trainer: Trainer) -> Mapping[str, str]:
    """What is trained, by what, and how far it is."""
    trainable = trainer.trainable
    count = sum(array.size for array in trainable.parameters.values())
    found = {"optimizer": str(trainable.optimizer), "learning rate": f"{trainer.rate:g}"}
    if trainable.loss is not None:
        from onward.training.recipe.described import loss_words

        found["loss"] = " + ".join(map(loss_words, trainable.loss))
    return found | {
        "weights": f"{len(trainable.parameters)} of {count:,} numbers",
        "a batch has": ", ".join(trainer.inputs),
        "steps": str(trainer.steps),
    }


def words(trainer: Trainer) -> str:
    return f"Trainer({'; '.join(f'{name}: {value}' for name, value in facts(trainer).items())})"


def table(trainer: Trainer) -> str:
    rows = "".join(
        f'<tr><th style="text-align: left">{html.escape(name)}</th>'
        f'<td style="text-align: left">{html.escape(value)}</td></tr>'
        for name, value in facts(trainer).items()
    )
    return f"<table><caption>Trainer</caption><tbody>{rows}</tbody></table>"
