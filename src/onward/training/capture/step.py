"""A whole step of training that a framework made itself, as a trainable model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.model import Model
from onward.training.autodiff.prepare_graph import differentiable
from onward.training.recipe.described import Stored
from onward.training.step_graphs import LOSS, updates
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]


def whole_step(original: Model, step: Model, loss: str, changed: Mapping[str, Array]) -> Trainable:
    """Of the model that others use, and of one that makes a step.

    The step gives the `loss`, and `<name>.next` of all that it changes, which it holds as initializers. The learning
    rate is its own.
    """
    graph = differentiable(step)
    outputs = {value.name: value for value in graph.graph.outputs}
    value = outputs[loss]
    if value.dtype != ir.DataType.FLOAT or value.shape is None or value.shape.rank() != 0:
        raise UnsupportedError(f"the loss is the output {loss!r}, but that is not a single number of float32")
    value.name = LOSS
    graph.graph.outputs[:] = [value, *(outputs[f"{name}.next"] for name in changed)]
    for name, array in changed.items():
        held = graph.graph.initializers.pop(name, None)
        if held is None:  # nothing reads what it was before
            dtype = ir.DataType.from_numpy(array.dtype)
            held = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(array.shape))
        held.const_value = None
        graph.graph.inputs.append(held)
    known = {value.name for value in original.ir.graph.inputs}
    labels = [value.name or "" for value in graph.graph.inputs if value.name not in known and value.name not in changed]
    optimizer = Stored(lr=1.0)
    return Trainable(original, graph, updates({}, optimizer)[0], optimizer, buffers=dict(changed), labels=labels)
