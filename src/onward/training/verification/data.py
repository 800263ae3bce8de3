"""The batches that trainings are compared on: of the user's data, or made up so that they fit the training graph."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from onward import runners
from onward.errors import OnwardError, RunFailure, UnsupportedError
from onward.model import Model
from onward.runners.calls import Run
from onward.training.recipe.targets import class_labels
from onward.training.runtime.data import arrays_of, epoch_of, rows
from onward.training.runtime.trainer import Trainer, npz
from onward.training.step_graphs import LOSS, keep_outputs
from onward.training.trainable import Trainable
from onward.verification.data.sets import accepts, data_sets

Array = np.ndarray[Any, np.dtype[Any]]
Batch = Mapping[str, Array]
SIZE = 8
"""Samples of a batch that is made up."""
DIFFERENT = 16
"""Batches that are made up; then they come again."""


def batches(trainer: Trainer, data: Any, count: int, size: int, seed: int) -> tuple[list[Batch], str]:
    """So many batches, and where they are from."""
    if data is None:
        return made_up(trainer, count, seed), "made up"
    given = npz(data) if isinstance(data, str | os.PathLike) else data
    if (arrays := arrays_of(given, trainer.inputs)) is not None:
        trainer.check(arrays, size)
    name = os.fspath(data) if isinstance(data, str | os.PathLike) else "given"
    return list(itertools.islice(_epochs(given, trainer.inputs, size, seed), count)), name


def _epochs(data: Any, inputs: list[str], size: int, seed: int) -> Iterator[Batch]:
    for epoch in itertools.count():
        found = False
        for batch in epoch_of(data, inputs, size, [seed, epoch]):
            found = True
            yield batch
        if not found:
            raise OnwardError("the data gave too few batches: give arrays, or fewer steps")


def made_up(trainer: Trainer, count: int, seed: int) -> list[Batch]:
    """Data and labels on which the loss is a number."""
    model = loss_model(trainer.trainable)
    run = runners.prepare("onnxruntime", model)
    fit = accepts(run)
    found: list[Batch] = []
    for number in range(min(count, DIFFERENT)):
        drawn = np.random.default_rng([seed, number])
        for dims in (_wide(model), None):  # of samples as many as can be
            try:
                sets = data_sets(model, dims=dims, seed=seed + number, regimes=("random",), runs=fit, sizes=1)
                made = _suiting(trainer, run, dict(next(iter(sets)).inputs), drawn)
            except (OnwardError, StopIteration):
                continue
            if made is not None:
                found.append(made)
                break
        else:
            raise UnsupportedError(
                f"no data could be made up for {', '.join(map(repr, trainer.inputs))} on which the loss is a number:"
                " give your own (--data train.npz)"
            )
    return [found[number % len(found)] for number in range(count)]


def _wide(model: Model) -> dict[str, int] | None:
    """Several samples: the size of the first dimension of each input, if it is open."""
    return {name: SIZE for name in map(_first, model.ir.graph.inputs) if isinstance(name, str)} or None


def _first(value: ir.Value) -> int | str | None:
    """The first dimension of an input: its size, or its name."""
    first = value.shape[0] if value.shape is not None and value.shape.rank() else 0
    return first if isinstance(first, int) else first.value


def _suiting(trainer: Trainer, run: Run, batch: dict[str, Array], drawn: np.random.Generator) -> Batch | None:
    """A batch whose labels are classes where they have to be, or else shares, which every loss of floats takes.

    Where nobody knows that whole numbers are classes, two classes will do.
    """
    for name, labels in class_labels(trainer.trainable.gradients.graph, trainer.trainable.labels).items():
        if labels.classes is not None:
            batch[name] = drawn.integers(0, labels.classes, batch[name].shape).astype(batch[name].dtype)
    floats = [name for name in trainer.trainable.labels if batch[name].dtype.kind == "f" and batch[name].ndim]
    shares = {name: _shares(drawn, batch[name]) for name in floats}
    whole = [name for name in trainer.trainable.labels if batch[name].dtype.kind in "iu"]
    few = {name: drawn.integers(0, 2, batch[name].shape).astype(batch[name].dtype) for name in whole}
    for made in ({**batch, **shares}, batch, {**batch, **shares, **few}):
        try:
            trainer.check(made, rows(made))
            if np.isfinite(run(made)[LOSS]).all():
                return made
        except (OnwardError, RunFailure):
            continue
    return None


def _shares(drawn: np.random.Generator, like: Array) -> Array:
    """Numbers from 0 to 1, which add up to 1 along the last axis if it has several."""
    numbers = np.asarray(drawn.uniform(0.1, 1, like.shape))
    return np.asarray(numbers / (numbers.sum(axis=-1, keepdims=True) if like.shape[-1] > 1 else 1), like.dtype)


def loss_model(trainable: Trainable) -> Model:
    """Data and labels to the loss, the weights being what they are now."""
    model = trainable.gradients.clone()
    keep_outputs(model, {LOSS})
    common.RemoveUnusedNodesPass()(model)
    for value in list(model.graph.inputs):
        array = {**trainable.parameters, **trainable.buffers}.get(value.name or "")
        if array is not None:
            model.graph.inputs.remove(value)
            value.const_value = ir.Tensor(np.ascontiguousarray(array), name=value.name)
            model.graph.initializers[value.name or ""] = value
    named = next((name for name in map(_first, model.graph.inputs) if isinstance(name, str)), "batch")
    for value in model.graph.inputs:
        if _first(value) is None:  # samples along the first axis, as many as of the others
            assert value.shape is not None
            value.shape = ir.Shape([named, *value.shape[1:]])
    return Model(model)
