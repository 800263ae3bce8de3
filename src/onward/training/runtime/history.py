"""The curve of a training run, and how it looks: as text, as a picture, in a notebook."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from onward.training.runtime.curve import drawn, write_csv, write_plot

Stopped = Literal["finished", "early", "interrupted"]


@dataclass(repr=False)
class History:
    """The curve of a training run."""

    losses: list[float] = field(default_factory=list)
    """Of each batch, in the order of training."""
    epochs: list[int] = field(default_factory=list)
    """The epoch of each batch, 1 at first."""
    evaluations: list[dict[str, float]] = field(default_factory=list)
    """After each epoch: `batch` (how many came before), `epoch`, `loss` and, for class labels, `accuracy`."""
    stopped: Stopped = "finished"
    rates: list[float] = field(default_factory=list)
    """The learning rate at each batch."""

    def csv(self, path: str | os.PathLike[str]) -> None:
        """Write the curve as text: batch, epoch, loss, learning rate, and what was evaluated after that batch."""
        write_csv(Path(path), self.epochs, self.losses, self.evaluations, self.rates)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the curves, as `.svg`, as `.html` or, where matplotlib is installed, as `.png`.

        There is the loss with that of the evaluations, the accuracy if labels are classes, and the learning rate if it
        changes.
        """
        write_plot(Path(path), self.losses, self.evaluations, self.rates)

    def mean_loss(self, epoch: int) -> float:
        found = [loss for loss, own in zip(self.losses, self.epochs, strict=True) if own == epoch]
        return sum(found) / len(found)

    def line(self, epoch: int) -> str:
        """An epoch in words: its mean loss, and what was evaluated after it."""
        parts = [f"loss {self.mean_loss(epoch):.4g}"]
        for found in self.evaluations:
            if found["epoch"] == epoch:
                parts += [f"val {key} {found[key]:.4g}" for key in ("loss", "accuracy") if key in found]
        return f"epoch {epoch}: {', '.join(parts)}"

    def __repr__(self) -> str:
        if not self.losses:
            return "History(no batch yet)"
        done = dict.fromkeys(self.epochs)
        shown = [self.line(epoch) for epoch in dict.fromkeys((self.epochs[0], self.epochs[-1]))]
        ended = "" if self.stopped == "finished" else f", stopped: {self.stopped}"
        return f"History({len(self.losses)} batches, {len(done)} epochs{ended}; {'; '.join(shown)})"

    def _repr_html_(self) -> str:
        return f'<div style="max-width:46rem">{drawn(self.losses, self.evaluations, self.rates)}<p>{self!r}</p></div>'
