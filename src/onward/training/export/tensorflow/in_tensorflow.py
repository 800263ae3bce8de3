"""What every `train.py` that computes with TensorFlow says alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from onward.training.export import script
from onward.training.export.tensorflow.updates import starts
from onward.training.export.tensorflow.words import NUMBERS, SUMS, loss_call


@dataclass(frozen=True)
class InTensorFlow(script.Script):
    dtypes, numbers, sums = "np", NUMBERS, SUMS

    draws: bool = False
    """Whether the model draws random numbers in training."""

    def turned(self, text: str, axes: tuple[int, ...]) -> str:
        return f"tf.transpose({text}, {list(axes)})"

    @property
    def _loss_call(self) -> Callable[..., str]:
        return partial(loss_call, flat=[self.ranks.get(name) for name in self.outputs] == [2] * len(self.outputs))

    @property
    def _slots(self) -> list[str]:
        return [*self.optimizer.states, *(["average"] if self.average is not None else [])]

    @property
    def _starts(self) -> dict[str, float]:
        return starts(self.optimizer, self.optimizer.states)
