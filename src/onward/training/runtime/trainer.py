"""Trains on plain ONNX Runtime: one session for gradients, one for the optimizer, weights and state in place."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onward.errors import InvalidDataError, OnwardError, RunFailure, UnsupportedError
from onward.gate.arrays import read_npz
from onward.graph.held_weights import check_homes, homes, with_weights
from onward.model import Model
from onward.runners.calls import raised_failures
from onward.runners.custom import failing
from onward.training.parallel import statistics
from onward.training.parallel.counting import check_mean, counting, rows_of
from onward.training.parallel.workers import Reduce, Workers, fingerprint
from onward.training.recipe.ctc import CTC
from onward.training.recipe.facts import facts, in_brackets, table
from onward.training.recipe.narrow_weights import with_narrow_weights
from onward.training.recipe.targets import class_labels
from onward.training.recipe.wide_floats import with_half_ends
from onward.training.runtime.buffers import SharedBuffer
from onward.training.runtime.divergence import DivergedError, diagnosis
from onward.training.runtime.evaluation import COUNTED, RIGHT, evaluation
from onward.training.runtime.frozen import with_frozen_inputs
from onward.training.runtime.gradient_passes import Kept, Used, used
from onward.training.runtime.session import Batch, Feeds, Saving, bind_input, bind_output, open_session
from onward.training.runtime.starting_point import move_to_file
from onward.training.runtime.update import stepping
from onward.training.speed.stash import check_stash
from onward.training.step_graphs import LOSS
from onward.training.trainable import Trainable, check_rate

if TYPE_CHECKING:
    from onward.training.runtime.history import History

__all__ = ["DivergedError", "Trainer", "batches", "npz"]

Array = np.ndarray[Any, np.dtype[Any]]
RANDOM = frozenset({"Dropout"})
"""Ops that draw from the generator that ONNX Runtime's seed is for."""
MANY = 1000
"""Nodes of a graph whose copies are worth looking for."""


class Trainer:
    """Makes training steps. Parameters, gradients and state stay where they are from step to step."""

    def __init__(
        self,
        trainable: Trainable,
        *,
        lr: float | None = None,
        threads: int | None = None,
        seed: int = 0,
        kernels: bool | None = None,
        reduce: Reduce | None = None,
        recompute: str | None = None,
        stash: str | None = None,
    ) -> None:
        """`seed` is for dropout: the mask of each step follows from it and from the number of the step.

        `kernels`: whether a step runs in faster forms than its graph says: convolutions in those that suit their
        sizes, and parts compiled where there is a C compiler; by default unless the environment variable
        ONWARD_KERNELS is 0.

        `reduce` makes this one of several workers: gradients, losses and running statistics are averaged over all, and
        all start from what worker 0 has; see `onward.training.reduce_by_torch` and `onward.training.on_workers`.

        `recompute` holds less of the way forward and computes it anew on the way back: "layers" or "sqrt" of them, or
        a pattern of names, each of which ends a part. `stash="bfloat16"` holds large values of the way forward in
        half their size until the way back reads them: the loss is the same, gradients are rounded.
        """
        self.trainable = trainable
        self.lr = trainable.optimizer.lr if lr is None else lr
        check_rate(self.lr)
        self.seed = seed
        self.steps = trainable.step
        self.accumulated = 0
        """Batches since the last step of the optimizer, where several make one."""
        check_stash(stash)
        self._threads, self._kernels, self._saving = threads, kernels, Saving(recompute, stash)
        dtypes = {array.dtype for array in trainable.parameters.values()} or {np.dtype(np.float32)}
        if len(dtypes) != 1:
            raise OnwardError(f"parameters of several dtypes are not trained together: {sorted(map(str, dtypes))}")
        dtype = dtypes.pop()
        if dtype.itemsize < 4:
            raise UnsupportedError(
                f"weights of {dtype} are not trained: small steps would be rounded away. `onward train prepare`, or "
                f"`onward.training.prepare`, makes float32 of them"
            )
        check_homes(trainable.original, trainable.weights(trainable.parameters))
        self._working, self._frozen = with_frozen_inputs(trainable)
        self._weights = SharedBuffer.of(trainable.parameters, dtype)
        move_to_file(trainable)
        self._sums = self._weights.like() if trainable.accumulate > 1 else None
        self._state = {slot: self._slot(slot) for slot in trainable.optimizer.states}
        self._buffers = {name: array.copy() for name, array in trainable.buffers.items()}
        self._fresh = {name: array.copy() for name, array in trainable.buffers.items()}
        self._loss = np.zeros((), dtype)
        self.workers = Workers(reduce)
        together = self.workers.size > 1
        self._used = None
        if not together:
            self._used = used(self._working, self._weights, self._state, threads, kernels, self._saving)
        self._update = None
        if self._used is not None:
            self._bind(self._used.session, self._used.binding)
        elif trainable.parameters:
            rows = self._kept.one_by_one
            self._update = stepping(trainable, self._weights, self._gradients, self._state, threads, kernels, rows)
        first = self._used or self._kept
        own = {*self._weights.views, *self._frozen, *self._buffers, *first.own}
        self._feeds = Feeds(first.session, trainable.gradients.graph, own)
        self._labels = class_labels(trainable.gradients.graph, trainable.label_inputs)
        self._ctc = ctc_labels(trainable)
        self._random = any(node.op_type in RANDOM for node in trainable.gradients.graph.all_nodes())
        self.torn = False
        """Whether a step has failed when it had begun to change weights."""
        self._evaluation: Any = None
        if together:
            self._join()
        if len(trainable.gradients.graph) > MANY:
            gc.collect()  # graphs refer to their nodes in circles: those made on the way here would stay for a while

    def _join(self) -> None:
        """Refuse what workers cannot train together; take over where worker 0 is."""
        if not self.trainable.parameters:
            raise UnsupportedError(
                "several workers cannot train this model: its step is one graph that gives out no gradients"
            )
        if self.trainable.rows:
            raise UnsupportedError(
                "several workers cannot train this model: its optimizer takes the gradients of rows one by one; "
                "capture it with dense_gradients=True"
            )
        self._count, proven = counting(self.trainable)
        self._unproven = not proven
        shapes = {name: array.shape for name, array in self.parameters.items()}
        own = fingerprint(shapes, self.trainable.optimizer, self.trainable.accumulate, self.trainable.clip_norm)
        if not self.workers.agree(own, "the workers compare what they train"):
            raise OnwardError("the workers were given different models or optimizers: start all with the same file")
        self.take()

    def take(self) -> None:
        """Bring this worker to where worker 0 is: weights, state, statistics, steps."""
        self.workers.take({"": self._weights.buffer, **{slot: flat.buffer for slot, flat in self._state.items()}})
        self.workers.take(self._buffers)
        self.steps, self.accumulated, self.lr, self.seed = self.workers.told(
            [self.steps, self.accumulated, self.lr, self.seed]
        )
        if self._sums is not None and not self.workers.lead:
            self._sums.buffer[...] = 0

    def gather(self) -> None:
        """Bring what is accumulated of gradients to worker 0."""
        if self._sums is not None and self.accumulated:
            self.workers.add(self._sums.buffer)
            if not self.workers.lead:
                self._sums.buffer[...] = 0

    def align(self) -> None:
        """Take over from worker 0 if weights are not the same bit for bit: processors differ in how they round."""
        if self.workers.size == 1:
            return
        own = fingerprint(self._weights.buffer, *(flat.buffer for flat in self._state.values()))
        if not self.workers.agree(own, "the workers compare their weights"):
            self.take()

    def _slot(self, slot: str) -> SharedBuffer:
        """Of the parameters that have it."""
        known = self.trainable.state
        given = {n: known[f"{n}.{slot}"] for n in self.trainable.parameters if f"{n}.{slot}" in known}
        return SharedBuffer.of(given, self._weights.buffer.dtype)

    @cached_property
    def _kept(self) -> Kept:
        made = Kept(self._working, self._weights, self._threads, self._kernels, self._saving)
        self._bind(made.session, made.binding)
        return made

    @property
    def _gradients(self) -> SharedBuffer:
        return self._kept.gradients

    def _bind(self, session: Any, binding: Any) -> None:
        """Bind what stays where it is."""
        wanted = {value.name for value in session.get_inputs()}
        for name, view in {**self._weights.views, **self._frozen}.items():
            if name in wanted:
                bind_input(binding, name, view)
        given = {value.name for value in session.get_outputs()}
        for name, array in {LOSS: self._loss, **{f"{name}.next": array for name, array in self._fresh.items()}}.items():
            if name in given:
                bind_output(binding, name, array)

    @property
    def parameters(self) -> dict[str, Array]:
        """The weights as they are now: views, not copies."""
        return self._weights.views

    @property
    def state(self) -> dict[str, Array]:
        """Of the optimizer, `<parameter>.<slot>`: views, not copies."""
        return {f"{name}.{slot}": view for slot, flat in self._state.items() for name, view in flat.views.items()}

    @property
    def buffers(self) -> dict[str, Array]:
        """Running statistics as they are now."""
        return self._buffers

    @property
    def sums(self) -> dict[str, Array]:
        """Gradients of the batches since the last step of the optimizer, where several make one; views."""
        return {} if self._sums is None else self._sums.views

    @property
    def last_gradients(self) -> dict[str, Array]:
        """Of the last batch: views, not copies."""
        return self._gradients.views

    @property
    def inputs(self) -> list[str]:
        """What a batch consists of: data, then labels."""
        names = self._feeds.names
        return sorted(names, key=lambda name: name in self.trainable.labels)

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        schedule = self.trainable.schedule
        return self.lr if schedule is None else self.lr * schedule(self.steps + 1)

    @property
    def _facts(self) -> dict[str, str]:
        now = {"learning rate": f"{self.rate:g}", "a batch has": ", ".join(self.inputs), "steps": str(self.steps)}
        return facts(self.trainable) | now

    def __repr__(self) -> str:
        return in_brackets("Trainer", self._facts)

    def _repr_html_(self) -> str:
        return table("Trainer", self._facts)

    def step(self, batch: Batch) -> float:
        """One step on a batch, arrays by input name; gives the loss before it.

        Where gradients are accumulated, only every so many batches change the weights. Of several workers, each has a
        batch of its own, and the step and the loss are those of all their rows together.
        """
        self._check_whole()
        if self._used is not None:
            self._used.prepare(self.rate, self.steps + 1)
            loss = self._passed(self._used, batch)
        elif self.workers.size > 1:
            loss = self._together(batch)
        else:
            loss = self.gradients(batch)
        if not math.isfinite(loss):
            raise DivergedError(self._diagnosis(loss, batch))
        if self._sums is not None:
            self.accumulated += 1
            self._sums.buffer += self._gradients.buffer
            if self.accumulated < self.trainable.accumulate:
                return loss
            np.divide(self._sums.buffer, self.accumulated, out=self._gradients.buffer)
            self._kept.rows.forget()
            self._sums.buffer[...] = 0
            self.accumulated = 0
        if self.workers.size > 1:
            self.workers.add(self._gradients.buffer)
            self._kept.rows.forget()
        if self._update is not None:
            self._update(self.rate, self.steps + 1)
        self.steps += 1
        return loss

    def gradients(self, batch: Batch) -> float:
        """The loss of a batch; its gradients are then in place, and running statistics have followed it."""
        self._kept.prepare()
        loss = self._passed(self._kept, batch)
        self._kept.rows.remember()
        return loss

    def _together(self, batch: Batch) -> float:
        """As `gradients`, of the rows of all workers; in place is this worker's share, to be added to the others'."""
        doing, before, weight = f"step {self.steps + 1}", self._buffers, 0.0
        try:
            with self.workers.meeting(3 + statistics.length(before), doing) as numbers:
                if count := rows_of(batch):
                    self._prove(batch)
                    loss, weight = self.gradients(batch), self._count(batch)
                    if weight and not math.isfinite(loss):
                        raise DivergedError(self._diagnosis(loss, batch))
                    numbers[:3] = (weight, weight * loss, count) if weight else 0
                    numbers[3:] = statistics.packed(self._buffers, count if weight else 0, self.workers.lead)
        except Exception:
            if self._buffers is not before:
                self._buffers, self._fresh = self._fresh, self._buffers
            raise
        if not numbers[0]:
            raise DivergedError(f"{doing}: there is no loss, because no label of the batch counts")
        statistics.unpack(self._buffers, numbers[3:], numbers[2])
        if weight:
            self._gradients.buffer *= weight / numbers[0]
        else:
            self._gradients.buffer[...] = 0
        return float(numbers[1] / numbers[0])

    def _prove(self, batch: Batch) -> None:
        """Whether a loss that is known as a graph only is a mean over rows, by the first batch."""
        if self._unproven:
            self._unproven = False
            check_mean(lambda part: self._evaluated(part)[0], batch)

    def _passed(self, way: Kept | Used, batch: Batch) -> float:
        """The loss of a batch; running statistics have followed it."""
        feeds = self._feed(way.binding, batch)
        for name, array in self._buffers.items():
            bind_input(way.binding, name, array)
            bind_output(way.binding, f"{name}.next", self._fresh[name])
        if self._random:
            self._set_seed()
        self._loss[...] = math.nan
        try:
            self._run(way.session, way.binding, feeds)
        except RunFailure:
            self.torn = self.torn or (way is self._used and math.isfinite(self._loss))
            raise
        loss = float(self._loss)
        if math.isfinite(loss):
            self._buffers, self._fresh = self._fresh, self._buffers
        return loss

    def _feed(self, binding: Any, batch: Batch) -> dict[str, Array]:
        if not isinstance(batch, Mapping):
            raise InvalidDataError(f"a batch is a dict of arrays by name, {', '.join(map(repr, self.inputs))}")
        feeds = self._feeds.checked(batch)
        self._check_labels(feeds)
        for name, array in feeds.items():
            bind_input(binding, name, array)
        return feeds

    def check(self, data: Mapping[str, Array], batch: int) -> None:
        """Refuse arrays by name that steps would refuse: by their first batch, and by all class labels."""
        self._feeds.checked({name: array[:batch] for name, array in data.items()})
        self._check_labels(data)

    def _check_labels(self, data: Mapping[str, Array]) -> None:
        for name, labels in self._labels.items():
            labels.check(data[name])
        for loss, classes in self._ctc:
            loss.check(data, classes)

    def _run(self, session: Any, binding: Any, feeds: Mapping[str, Array]) -> None:
        """Feeds are arguments because they have to live as long as the run."""
        try:
            with raised_failures("onnxruntime"), failing():
                session.run_with_iobinding(binding)
        except RunFailure as error:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
            raise RunFailure(f"step {self.steps + 1} on a batch of {shapes}: {error}") from error

    def _set_seed(self) -> None:
        import onnxruntime

        own = [self.workers.rank] if self.workers.rank else []
        drawn = np.random.default_rng([self.seed, self.steps, self.accumulated, *own]).integers(1 << 31)
        onnxruntime.set_seed(int(drawn))

    def _diagnosis(self, loss: float, batch: Batch) -> str:
        feeds = self._feeds.checked(batch)
        given = {**feeds, **self._weights.views, **self._buffers}
        found = diagnosis(self.trainable.gradients, given, feeds, loss, self.steps + 1, self.rate)
        return f"{found}. {CTC.hint}" if self._ctc and math.isinf(loss) else found

    def evaluate(self, data: Any, batch: int = 256) -> dict[str, float]:
        """The mean loss as the model is used (no dropout, running statistics) and, for class labels, the accuracy.

        Several workers are given the same data; each takes some of the batches.
        """
        from onward.training.runtime.data import epoch_of

        with self.workers.meeting(4, "evaluation") as totals:
            for number, part in enumerate(epoch_of(data, self.inputs, batch, order=None)):
                if number % self.workers.size == self.workers.rank:
                    loss, right, counted, size = self._evaluated(part)
                    totals += loss * size, right, counted, size
        self.workers.take({"totals": totals})
        loss, right, counted, size = totals.tolist()
        if not size:
            raise OnwardError("there is nothing to evaluate on: the data gave no batch")
        return {"loss": loss / size, **({"accuracy": right / counted} if counted else {})}

    def _evaluated(self, batch: Batch) -> tuple[float, int, int, int]:
        """Loss, right answers, answers, samples."""
        if self._evaluation is None:
            session = open_session(evaluation(self._working), self._threads)
            self._evaluation = session, session.io_binding(), [value.name for value in session.get_outputs()]
            self._bind(*self._evaluation[:2])
        session, binding, outputs = self._evaluation
        counts = {name: np.zeros((), np.int64) for name in (RIGHT, COUNTED)}
        wanted = {value.name for value in session.get_inputs()}
        feeds = self._feed(binding, batch)
        for name, array in self._buffers.items():
            if name in wanted:
                bind_input(binding, name, array)
        for name, count in counts.items():
            if name in outputs:
                bind_output(binding, name, count)
        self._run(session, binding, feeds)
        sizes = [array.shape[0] for array in feeds.values() if array.ndim]
        return float(self._loss), int(counts[RIGHT]), int(counts[COUNTED]), max(sizes, default=1)

    def fit(self, data: Any, epochs: int = 1, batch: int = 32, **options: Any) -> History:
        """Train for some epochs; see `onward.training.runtime.epochs.fit` for what else there is to choose."""
        from onward.training.runtime.epochs import fit

        return fit(self, data, epochs, batch, **options)

    def save(self, path: str | os.PathLike[str], *, average: bool = False, narrow_weights: bool = False) -> None:
        """Write the model as it was given, with the weights as they are now, or with their moving averages.

        `narrow_weights`: those that became float32 when it was prepared are stored in the dtype that they had.
        """
        tuned = self.tuned(average=average)
        (with_narrow_weights(tuned) if narrow_weights else tuned).save(path, durable=True)

    def continued(self) -> Trainable:
        """What is trained, from where it is now: its weights, state and steps."""
        self._check_whole()
        return replace(
            self.trainable,
            parameters={name: array.copy() for name, array in self.parameters.items()},
            state={name: array.copy() for name, array in self.state.items()},
            buffers={name: array.copy() for name, array in self._buffers.items()},
            step=self.steps,
        )

    def tuned(self, *, average: bool = False) -> Model:
        """The model as it was given, with the weights as they are now, or with their moving averages."""
        self._check_whole()
        weights = self.trainable.average(self.state) if average else self.parameters
        original = self.trainable.original
        known = homes(original.ir.graph)
        statistics = {name: array for name, array in self._buffers.items() if name in known}
        return with_half_ends(with_weights(original, self.trainable.weights(weights) | statistics))

    def _check_whole(self) -> None:
        if self.torn:
            raise OnwardError(
                f"step {self.steps + 1} failed when it had changed some weights and not others: "
                "go on from the last checkpoint"
            )

    def check_finite(self) -> None:
        """Refuse weights that the last step has ruined: no loss has shown it yet."""
        self._check_whole()
        for name, array in self.parameters.items():
            if not np.isfinite(array).all():
                raise DivergedError(
                    f"step {self.steps} went too far: the weight {name} has numbers that are not finite. "
                    f"Try a smaller learning rate than {self.lr:g}, or clipped gradients (clip_norm=1)"
                )


def ctc_labels(trainable: Trainable) -> list[tuple[CTC, int | None]]:
    """The CTC losses that are minimised, each with the number of classes that its output has, if that is known."""
    shapes = {value.name: value.shape for value in trainable.original.ir.graph.outputs}
    found = []
    for term in trainable.loss or ():
        if isinstance(term.loss, CTC):
            shape = shapes.get(term.output)
            size = shape[-1] if shape is not None and shape.rank() else None
            found.append((term.loss, size if isinstance(size, int) else None))
    return found


def batches(data: Mapping[str, Array], size: int, seed: int = 0, shuffle: bool = True) -> Iterator[dict[str, Array]]:
    """Arrays by name cut into batches, in an order that follows from the seed."""
    from onward.training.runtime.data import epoch_of

    yield from epoch_of(data, list(data), size, order=[seed] if shuffle else None)


def npz(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The arrays of an .npz file; no pickle is opened."""
    return read_npz(Path(path))
