"""What is told of a training while it runs: anything that has these methods."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onward.training.runtime.history import History
    from onward.training.runtime.trainer import Trainer


class Callback:
    """Derive from it, and write the methods that you need; give it to `fit(callbacks=[…])`."""

    def on_step(self, trainer: Trainer, history: History) -> None:
        """After each batch: its loss is `history.losses[-1]`."""

    def on_epoch(self, trainer: Trainer, history: History) -> None:
        """After each epoch, and its evaluation if there is one, which is `history.evaluations[-1]`."""

    def on_end(self, trainer: Trainer, history: History) -> None:
        """When training has ended, also by Ctrl-C or an error."""


class Lines(Callback):
    """A line for each epoch, where there is no terminal for a bar."""

    def __init__(self, epochs: int, tell: Callable[[str], None] | None = None) -> None:
        """`tell` is given the lines; by default they go to standard error."""
        self._epochs, self._began = epochs, time.perf_counter()
        self._tell = tell or partial(print, file=sys.stderr, flush=True)

    def on_epoch(self, trainer: Trainer, history: History) -> None:
        now = time.perf_counter()
        number, words = history.line(history.epochs[-1]).split(":", 1)
        self._tell(f"{number}/{self._epochs}:{words} ({now - self._began:.1f} s)")
        self._began = now
