"""A model made trainable: one step of it on ONNX Runtime, with a loss that fits what its output comes from.

Cross entropy of what goes into a Softmax (random classes), binary cross entropy of what goes into a Sigmoid (random
numbers from 0 to 1), the likelihood of a LogSoftmax, and for all others the mean squared error (random numbers as
large as the output). Inputs are those that a verification generates.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onward.conversion.request import Request
from onward.conversion.sources import Original, read
from onward.errors import OnwardError
from onward.runners import prepare
from onward.verification.data.sets import Inputs, make_inputs
from onward.zoo.found import Found, raised

if TYPE_CHECKING:
    from onward.model import Model
    from onward.training import Trainable, Trainer

RATE = 1e-4
TARGETS = "labels"
ROUNDS = ("Identity", "QuantizeLinear", "DequantizeLinear")
"""Ops that give what they are given, but for rounding."""
ALL_ZERO = "every gradient is zero on this batch"
MOST_SILENT = 3
"""Parameters without a gradient that are named."""


@dataclass(frozen=True)
class Objective:
    """What a model is trained for."""

    loss: str
    output: str
    """The output that targets are about."""
    of: str
    """The value that the loss is computed of: the output, or what its last op is applied to."""


def training(path: Path) -> Found:
    """Made trainable for the first output that allows it: not for one that is the same whatever the weights are."""
    found, constant = Found("refused", "it has no float output"), list[str]()
    try:
        original = read_source(path)
        found.model = original.model
        for objective in objectives(original.model):
            if attempt(original, objective, found):
                if found.message != ALL_ZERO:
                    break
                constant.append(objective.output)
        if constant:
            remark = f"{ALL_ZERO} for {', '.join(map(repr, constant))}"
            same = found.verdict == "same"
            found.verdict, found.message = ("same", f"{found.message}; {remark}") if same else ("failed", remark)
    except Exception as error:
        found.verdict, found.message = raised(error)
    return found


def read_source(path: Path, run: bool = False) -> Original:
    """A model as ONNX, and if asked for, how its own framework runs it."""
    from onward.model import load

    if path.suffix == ".onnx":
        return Original(load(path))
    return read(Request(source=path, to="onnx", out=Path(), verify=run))


def objectives(model: Model) -> Iterator[Objective]:
    """One for each output of floats, or of integers that stand for such, in order."""
    from onward.training.recipe.quantised_weights import quantizer

    for output in model.ir.graph.outputs:
        if output.dtype is not None and not output.dtype.is_floating_point() and quantizer(output) is None:
            continue
        name = output.name or ""
        last = output.producer()
        while last is not None and last.op_type in ROUNDS and last.inputs[0] is not None:
            last = last.inputs[0].producer()
        before = "" if last is None or not last.inputs or last.inputs[0] is None else last.inputs[0].name or ""
        flat = output.shape is not None and output.shape.rank() == 2
        kind = "" if last is None else last.op_type
        if kind == "Sigmoid":
            yield Objective("bce_with_logits", name, before)
        elif kind == "Softmax" and flat:
            yield Objective("cross_entropy", name, before)
        elif kind == "LogSoftmax" and flat:
            yield Objective("nll", name, name)
        else:
            yield Objective("mse", name, name)


def attempt(original: Original, objective: Objective, found: Found) -> bool:
    """Whether it becomes trainable so; what was found says why not, or how the step went."""
    from onward import training

    model = original.model
    began = time.perf_counter()
    try:
        trainable = training.prepare(model, objective.loss, training.AdamW(lr=RATE), output=objective.of)
        prepared = time.perf_counter()
        trainer = training.Trainer(trainable, kernels=False)
        feeds = make_inputs(model) if original.inputs is None else _first(original.inputs)
        given = {name: array for name, array in feeds.items() if name in trainer.inputs}
        batch = given | targets(trainable, objective, model, feeds)
        stepped = time.perf_counter()
        loss = trainer.gradients(batch)
    except OnwardError as error:
        found.verdict, found.message = raised(error)
        return False
    done = time.perf_counter()
    found.facts = {
        "seconds": round(prepared - began, 3),
        "verify_seconds": round(done - stepped, 3),
        "nodes": len(trainable.gradients.graph),
    }
    problem, silent = unsound(trainer, loss)
    found.verdict = "failed" if problem else "same"
    found.message = problem or said(objective, trainable, loss, silent)
    return True


def _first(inputs: object) -> Inputs:
    found: Inputs = inputs if isinstance(inputs, dict) else inputs[0]  # type: ignore[index]
    return found


def said(objective: Objective, trainable: Trainable, loss: float, silent: list[str]) -> str:
    weights = sum(array.size for array in trainable.parameters.values())
    words = (
        f"{objective.loss} of {objective.of!r} is {loss:.4g} on a batch, with finite gradients of"
        f" {weights:,} numbers in {len(trainable.parameters):,} tensors"
    )
    if silent:
        more = f" and {len(silent) - MOST_SILENT:,} more" if len(silent) > MOST_SILENT else ""
        words += f"; zero everywhere on it: {', '.join(silent[:MOST_SILENT])}{more}"
    return words


def targets(trainable: Trainable, objective: Objective, model: Model, feeds: Inputs) -> Inputs:
    """Random ones, of the shape of the output; one for all along an axis whose size only the data decides."""
    from onward.training.recipe.quantised_weights import dequantised

    output = np.asarray(prepare("onnxruntime", model)(feeds)[objective.output])
    rng = np.random.default_rng(0)
    if objective.loss in ("cross_entropy", "nll"):
        return {TARGETS: rng.integers(0, output.shape[1], output.shape[0])}
    declared = next(value for value in trainable.gradients.graph.inputs if value.name == TARGETS)
    shape, dtype = [1] * output.ndim, np.float32 if declared.dtype is None else declared.dtype.numpy()
    if declared.shape is not None:
        known = [d if isinstance(d, int) else d.value for d in declared.shape]
        shape = [1 if dim is None else size for dim, size in zip(known, output.shape, strict=True)]
    if objective.loss == "bce_with_logits":
        return {TARGETS: rng.random(shape).astype(dtype)}
    given = next(value for value in model.ir.graph.outputs if value.name == objective.output)
    output = dequantised(given, output)
    if output.itemsize < 4:
        output = output.astype(np.float32)
    made = rng.normal(output.mean(), max(output.std(), abs(output.mean()), 0.1), shape)
    return {TARGETS: made.astype(dtype)}


def unsound(trainer: Trainer, loss: float) -> tuple[str, list[str]]:
    """What is wrong with the gradients of a step, and the parameters that have none on this batch."""
    found = trainer.last_gradients
    if bad := [name for name, array in found.items() if not np.isfinite(array).all()]:
        return f"the gradient of {bad[0]} is not finite", []
    if not np.isfinite(loss):
        return f"the loss is {loss}", []
    silent = [name for name, array in found.items() if not array.any()]
    return (ALL_ZERO if len(silent) == len(found) else "", silent)
