"""ONNX Runtime's side of a comparison: where a training starts, steps from there, and what one step consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.training.export.plan import outputs_inside
from onward.training.recipe.groups import Rule
from onward.training.runtime.checkpoint import PARTS
from onward.training.runtime.session import open_session
from onward.training.runtime.trainer import Trainer
from onward.training.step_graphs import LOSS
from onward.training.trainable import Trainable
from onward.training.verification.rounding import rounded_otherwise

Array = np.ndarray[Any, np.dtype[Any]]
Tensors = dict[str, Array]
Batches = Sequence[Mapping[str, Array]]
"""Of one step: several where gradients are accumulated."""
EXACT = 16
"""Numbers that are whole in this unit are exact everywhere."""


@dataclass(frozen=True)
class Passed:
    """What the passes through the model give before the optimizer is asked."""

    outputs: Tensors
    loss: float
    gradients: Tensors


@dataclass
class Course:
    """How a training went."""

    losses: list[float] = field(default_factory=list)
    """Of each step: the mean of its batches."""
    states: dict[int, Tensors] = field(default_factory=dict)
    """After the steps of these numbers: weights, running statistics and the optimizer's state, by their names."""


class Source:
    """Trains on ONNX Runtime, from wherever it is put."""

    def __init__(self, trainable: Trainable, kernels: bool | None = None) -> None:
        self.trainable = trainable
        self.trainer = Trainer(trainable, kernels=kernels)
        self._passes: Any = None

    def put(self, start: Trainable) -> None:
        """Go on from the weights, the state and the step of `start`, which is the same training."""
        for part in PARTS[:3]:
            for name, view in getattr(self.trainer, part).items():
                view[...] = getattr(start, part)[name]
        for view in self.trainer.sums.values():
            view[...] = 0
        self.trainer.steps, self.trainer.accumulated, self.trainer.torn = start.step, 0, False

    def step(self, batches: Batches) -> float:
        return float(np.mean([self.trainer.step(batch) for batch in batches]))

    def state(self) -> Tensors:
        """Copies of all that a step changes."""
        return {name: array.copy() for part in PARTS[:3] for name, array in getattr(self.trainer, part).items()}

    def course(self, start: Trainable, steps: Sequence[Batches], points: Sequence[int]) -> Course:
        """Train from `start`, and keep the states after the steps `points`."""
        self.put(start)
        found = Course()
        for number, batches in enumerate(steps, 1):
            found.losses.append(self.step(batches))
            if number in points:
                found.states[number] = self.state()
        return found

    def at(self, state: Mapping[str, Array], step: int) -> Trainable:
        """The training with a state that `state` gave, after so many steps."""
        weights, slots, buffers = ({name: state[name] for name in getattr(self.trainable, part)} for part in PARTS[:3])
        return replace(self.trainable, step=step, parameters=weights, state=slots, buffers=buffers)

    def passed(self, start: Trainable, batch: Mapping[str, Array]) -> Passed:
        """What one batch gives, by the graph that the gradients are computed by."""
        if self._passes is None:
            graph = self.trainable.gradients.clone()
            inner = outputs_inside(replace(self.trainable, gradients=graph))
            for value in inner.values():
                if not value.is_graph_output():
                    graph.graph.outputs.append(value)
            names = {name: value.name or "" for name, value in inner.items()}
            self._passes = open_session(graph), names
        session, names = self._passes
        held: Tensors = {**start.parameters, **start.buffers, **batch}
        wanted = [LOSS, *(f"{name}.grad" for name in start.parameters), *names.values()]
        feeds = {value.name: np.ascontiguousarray(held[value.name]) for value in session.get_inputs()}
        results = dict(zip(wanted, session.run(wanted, feeds), strict=True))
        return Passed(
            {name: results[inside] for name, inside in names.items()},
            float(results[LOSS]),
            {name: results[f"{name}.grad"] for name in start.parameters},
        )


class Draws:
    """The same training started one bit off, several times.

    The weights are moved to the next number above or below. In every other draw all results inside are as well, and
    the numbers of the optimizer, each for itself: a framework may round 0.999, and then 1 - 0.999 is far off.
    """

    def __init__(self, source: Source, count: int) -> None:
        self._source, self.count = source, count
        self._twins: dict[int, Source] = {}

    def __iter__(self) -> Iterator[tuple[Source, Callable[[Trainable], Trainable]]]:
        """Where each is run, and what moves its start."""
        for seed in range(self.count):
            yield self._twin(seed) if seed % 2 else self._source, partial(one_bit_off, seed=seed)

    def more(self, count: int) -> Iterator[tuple[Source, Callable[[Trainable], Trainable]]]:
        """Others, in each of which results inside are moved as well."""
        for seed in range(self.count, self.count + count):
            yield self._twin(1), partial(one_bit_off, seed=seed)

    def _twin(self, seed: int) -> Source:
        if seed not in self._twins:
            given = self._source.trainable
            apart = dict.fromkeys(given.parameters, Rule(1.0, given.optimizer.weight_decay))  # the graph has all rules
            moved = replace(given, stored_update=nudged(given.update, seed), rules=apart)
            try:
                own = rounded_otherwise(given.gradients, seed)
                self._twins[seed] = Source(replace(moved, gradients=own), kernels=False)
            except (OnwardError, ValueError):  # such as a graph that is too large to be copied
                self._twins[seed] = Source(moved, kernels=False)
        return self._twins[seed]


def nudged(update: ir.Model, seed: int) -> ir.Model:
    """The graph of an optimizer's step whose numbers are one bit of single precision off; 0, 1 and their like stay."""
    drawn = np.random.default_rng(seed)
    model = update.clone()
    for value in model.graph.initializers.values():
        tensor = value.const_value
        array = None if tensor is None else tensor.numpy()
        if (
            array is None
            or array.dtype.kind != "f"
            or array.dtype.itemsize < 4
            or float(array.flat[0]) * EXACT % 1 == 0
        ):
            continue
        towards = np.where(drawn.integers(0, 2, array.shape), np.inf, -np.inf).astype(np.float32)
        moved = np.nextafter(array.astype(np.float32), towards).astype(array.dtype)
        value.const_value = ir.Tensor(np.asarray(moved), name=value.name)
    return model


def one_bit_off(trainable: Trainable, seed: int) -> Trainable:
    """The same training, each number of its weights moved to the next one above or below."""
    drawn = np.random.default_rng(seed)

    def moved(array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        signs = np.where(drawn.integers(0, 2, array.shape), np.inf, -np.inf).astype(array.dtype)
        return np.where(array == 0, array, np.nextafter(array, signs)).reshape(array.shape)

    return replace(
        trainable,
        parameters={name: moved(array) for name, array in trainable.parameters.items()},
        buffers={name: moved(array) for name, array in trainable.buffers.items()},
    )
