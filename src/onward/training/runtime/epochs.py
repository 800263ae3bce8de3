"""Training over epochs: order of the data, evaluation, early stopping, checkpoints, a progress bar, and Ctrl-C."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from onward.errors import InvalidDataError, OnwardError, RunFailure
from onward.training.parallel.workers import fingerprint
from onward.training.runtime import checkpoint as checkpoints
from onward.training.runtime.callbacks import Callback, Lines
from onward.training.runtime.data import arrays_of, batches_in, epoch_of, rows
from onward.training.runtime.history import History
from onward.writing import clear_leftovers

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Progress:
    """What a checkpoint says of a run."""

    epoch: int
    batch: int
    best: float | None
    waited: int
    evaluations: list[dict[str, Any]]


@dataclass
class _Run:
    """How far a training run is."""

    history: History = field(default_factory=History)
    epoch: int = 0
    """Epochs that are complete."""
    batch: int = 0
    """Batches of the epoch begun that are done."""
    best: float = math.inf
    waited: int = 0
    """Evaluations since the best one."""
    kept: dict[str, Array] = field(default_factory=dict)
    """The weights of the best evaluation."""

    def save(self, path: Path, trainer: Trainer) -> None:
        """A checkpoint, by worker 0; the one before stays if the weights are ruined."""
        trainer.gather()
        with trainer.workers.meeting(0, "a checkpoint is written"):
            if trainer.workers.lead:
                self.write(path, trainer)

    def write(self, path: Path, trainer: Trainer) -> None:
        trainer.check_finite()
        progress = {
            "epoch": self.epoch,
            "batch": self.batch,
            "best": self.best if math.isfinite(self.best) else None,
            "waited": self.waited,
            "evaluations": self.history.evaluations,
        }
        more = {f"best/{name}": array for name, array in self.kept.items()}
        more["losses"] = np.asarray(self.history.losses, np.float64)
        more["epochs"] = np.asarray(self.history.epochs, np.int64)
        more["rates"] = np.asarray(self.history.rates, np.float64)
        checkpoints.save(path, trainer, progress, more)

    def load(self, path: Path, trainer: Trainer) -> None:
        given, more = checkpoints.load(path, trainer)
        if not given:
            raise checkpoints.CheckpointError(f"{path}: it was not written by fit: start without resume")
        found = checkpoints.described(path, Progress, given)
        none = np.zeros(0)
        losses, epochs = more.get("losses", none), more.get("epochs", none)
        rates = more.get("rates", np.full(losses.shape, math.nan))  # older ones lack them
        numbers = [number for evaluation in found.evaluations for number in evaluation.values()]
        if not (
            min(found.epoch, found.batch, found.waited) >= 0
            and {array.shape for array in (losses, epochs, rates)} == {losses.shape[:1]}
            and all(isinstance(number, int | float) for number in numbers)
            and all({"batch", "epoch", "loss"} <= evaluation.keys() for evaluation in found.evaluations)
        ):
            raise checkpoints.CheckpointError(f"{path}: this checkpoint is damaged: its curve does not fit together")
        self.epoch, self.batch, self.waited = found.epoch, found.batch, found.waited
        self.best = math.inf if found.best is None else found.best
        self.history = History(losses.tolist(), epochs.tolist(), found.evaluations, rates=rates.tolist())
        self.kept = {name.removeprefix("best/"): array for name, array in more.items() if name.startswith("best/")}

    def resume(self, path: Path, trainer: Trainer) -> None:
        """Go on from a checkpoint that worker 0 finds, if it does."""
        with trainer.workers.meeting(1, "worker 0 reads the checkpoint") as found:
            if trainer.workers.lead and path.exists():
                self.load(path, trainer)
                found[0] = 1
        if found[0] and trainer.workers.size > 1:
            trainer.take()
            mine = [self.epoch, self.batch, self.waited, self.best, vars(self.history)]
            self.epoch, self.batch, self.waited, self.best, history = trainer.workers.told(mine)
            self.history = History(**history)


def fit(
    trainer: Trainer,
    data: Any,
    epochs: int = 1,
    batch: int = 32,
    *,
    val: Any = None,
    seed: int = 0,
    shuffle: bool = True,
    drop_last: bool = False,
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int | None = None,
    resume: bool = False,
    progress: bool | None = None,
    callbacks: Sequence[Callback] = (),
    on_checkpoint: Callable[[Path], None] = lambda path: None,
) -> History:
    """Train until so many epochs are done, counted from the beginning; gives the curve.

    `data` and `val` are arrays by input name, a tuple of arrays in the order of the inputs, or an iterable of batches
    (dicts or tuples) such as a PyTorch DataLoader. Arrays are shuffled anew for each epoch, by the seed;
    with `drop_last` a smaller batch at the end is left out, as batch normalisation wants it. Several workers are given
    the same data, and `batch` is what all of them take together; worker 0 writes and shows.

    After each epoch the model is evaluated on `val`; with `patience`, training ends after so many evaluations without
    a lower loss, and goes back to the best weights. A `checkpoint` is written after each epoch, and after `every` so
    many batches if given; with `resume` training goes on from there, if there is one, as if it had not been
    interrupted. Ctrl-C ends training after the current batch, with a checkpoint.

    `progress` shows a bar on a terminal, and a line for each epoch elsewhere; False shows neither. `callbacks` are told
    after each batch and each epoch, such as `TensorBoard("runs/1")`, by worker 0. `on_checkpoint` is called by every
    worker with the path of each checkpoint, once worker 0 has written it.
    """
    _check(epochs, batch, val, patience, every, checkpoint, resume)
    run, path = _Run(), None if checkpoint is None else Path(checkpoint)
    workers = trainer.workers
    if path is not None:
        if workers.lead:
            clear_leftovers(path)
        if resume:
            run.resume(path, trainer)
    with workers.meeting(workers.size, "the data are checked") as prints:
        prints[workers.rank] = _checked(trainer, (data, val), -(-batch // workers.size))
    if (prints != prints[0]).any():
        raise InvalidDataError("the workers were given different data: give each all of the data; fit divides them")
    saved, each = len(run.history.losses), batches_in(data, trainer.inputs, batch, drop_last)
    shows = progress if workers.lead else False
    told = [*([Lines(epochs)] if shows is None and not sys.stderr.isatty() else []), *callbacks] if workers.lead else []
    with (
        _kept(run, path, trainer),
        _interrupts() as pressed,
        _bar(shows, each, epochs, run) as shown,
        _ended(told, trainer, run),
    ):
        interrupted = workers.stopping(pressed)
        while run.epoch < epochs and run.history.stopped == "finished":
            if patience is not None and run.waited >= patience:
                run.history.stopped = "early"
                break
            seen = 0
            order = [seed, run.epoch] if shuffle else None
            for part in epoch_of(data, trainer.inputs, batch, order, drop_last, workers):
                seen += 1
                if seen <= run.batch:  # done before the checkpoint
                    continue
                rate = trainer.rate
                loss = trainer.step(part)
                run.batch = seen
                run.history.losses.append(loss)
                run.history.epochs.append(run.epoch + 1)
                run.history.rates.append(rate)
                shown(loss)
                for callback in told:
                    callback.on_step(trainer, run.history)
                if interrupted():
                    run.history.stopped = "interrupted"
                    break
                if path is not None and every and len(run.history.losses) % every == 0:
                    run.save(path, trainer)
                    on_checkpoint(path)
                    saved = len(run.history.losses)
            if run.history.stopped == "interrupted":
                break
            _check_epoch(seen, run)
            run.epoch, run.batch = run.epoch + 1, 0
            trainer.align()
            if val is not None:
                _evaluate(trainer, val, batch, run, keep=patience is not None)
            for callback in told:
                callback.on_epoch(trainer, run.history)
            if path is not None:
                run.save(path, trainer)
                on_checkpoint(path)
                saved = len(run.history.losses)
        if path is not None and saved != len(run.history.losses):
            run.save(path, trainer)
            on_checkpoint(path)
    trainer.check_finite()
    if run.kept and run.history.stopped != "interrupted":
        for name, view in (trainer.parameters | trainer.buffers).items():
            view[...] = run.kept[name]
    if patience is not None and workers.size > 1:
        trainer.take()
    return run.history


def _check(
    epochs: int, batch: int, val: Any, patience: int | None, every: int | None, checkpoint: Any, resume: bool
) -> None:
    for name, number in (("epochs", epochs), ("batch", batch), ("patience", patience), ("every", every)):
        if number is not None and number < 1:
            raise OnwardError(f"{name} is {number}: give at least 1")
    if patience is not None and val is None:
        raise OnwardError("patience needs data to evaluate on: give val")
    if checkpoint is None and (every or resume):
        raise OnwardError("there is no checkpoint: give the path of one")


def _checked(trainer: Trainer, parts: tuple[Any, Any], batch: int) -> int:
    """Refuse arrays that steps would refuse; gives a fingerprint of the others."""
    known: list[Any] = []
    for part in parts:
        if (arrays := arrays_of(part, trainer.inputs)) is not None:
            rows(arrays)
            trainer.check(arrays, batch)
            known += [(name, array.shape) for name, array in arrays.items()]
            known += [array[[0, -1]] for array in arrays.values()]
    return fingerprint(*known)


def _check_epoch(seen: int, run: _Run) -> None:
    if not seen:
        again = "; an iterator gives its batches only once: give a list or a DataLoader" if run.epoch else ""
        raise InvalidDataError(f"the data gave no batch in epoch {run.epoch + 1}{again}")
    if seen < run.batch:
        raise InvalidDataError(f"the data gave {seen} batches, but the checkpoint was written after {run.batch}")


def _evaluate(trainer: Trainer, val: Any, batch: int, run: _Run, keep: bool) -> None:
    found = trainer.evaluate(val, max(batch, 64))
    run.history.evaluations.append({"batch": len(run.history.losses), "epoch": run.epoch, **found})
    run.waited += 1
    if found["loss"] < run.best:
        run.best, run.waited = found["loss"], 0
        if keep and trainer.workers.lead:
            run.kept = {name: array.copy() for name, array in (trainer.parameters | trainer.buffers).items()}


@contextmanager
def _kept(run: _Run, path: Path | None, trainer: Trainer) -> Iterator[None]:
    """What was learnt before a batch that cannot be trained on goes into the checkpoint."""
    try:
        yield
    except (InvalidDataError, RunFailure):
        alone = trainer.workers.size == 1
        if path is not None and run.history.losses and trainer.workers.lead and (alone or not trainer.accumulated):
            run.write(path, trainer)
        raise


@contextmanager
def _ended(told: Sequence[Callback], trainer: Trainer, run: _Run) -> Iterator[None]:
    try:
        yield
    finally:
        for callback in told:
            callback.on_end(trainer, run.history)


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; a second one is not waited for. A step is never cut in two."""
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bar(wanted: bool | None, each: int | None, epochs: int, run: _Run) -> Iterator[Callable[[float], None]]:
    """Shows progress on the terminal, if there is one."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda loss: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TextColumn("{task.fields[val]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(
            "", total=each and each * epochs, completed=len(run.history.losses), epoch="", loss="", val=""
        )

        def shown(loss: float) -> None:
            last = run.history.evaluations[-1:]
            parts = [f"val {key} {value:.4g}" for e in last for key, value in e.items() if key in ("loss", "accuracy")]
            bar.update(task, advance=1, epoch=f"{run.epoch + 1}/{epochs}", loss=f"{loss:.4g}", val=", ".join(parts))

        yield shown
