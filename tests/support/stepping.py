"""Makes training steps by the two graphs of a trainable model, on ONNX Runtime, without a trainer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime

from onward.model import Model
from onward.training.step_graphs import LEARNING_RATE, LOSS, STEP
from onward.training.trainable import Trainable

Array = np.ndarray[Any, Any]


def session(graph: ir.Model) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(Model(graph).to_proto().SerializeToString(), options)


def run(made: onnxruntime.InferenceSession, given: dict[str, Any]) -> dict[str, Array]:
    feeds = {value.name: np.array(given[value.name]) for value in made.get_inputs()}
    return dict(zip([value.name for value in made.get_outputs()], made.run(None, feeds), strict=True))


def steps(made: Trainable, batches: list[dict[str, Array]], lr: float = 0.1) -> tuple[list[float], Trainable]:
    """The losses, and the trainable model after the steps."""
    derive, update = session(made.gradients), session(made.update)
    losses = []
    parameters, buffers, state = made.parameters, made.buffers, made.state
    for step, batch in enumerate(batches, made.step + 1):
        found = run(derive, {**batch, **parameters, **buffers})
        losses.append(float(found[LOSS]))
        buffers = {name: found[f"{name}.next"] for name in buffers}
        now = {LEARNING_RATE: np.float32(lr), STEP: np.int64(step), **parameters, **state, **found}
        after = run(update, now)
        parameters = {name: after[f"{name}.next"] for name in parameters}
        state = {name: after[f"{name}.next"] for name in state}
    count = made.step + len(batches)
    return losses, replace(made, parameters=parameters, buffers=buffers, state=state, step=count)
