"""Training comes from TensorFlow: a function that makes a whole step becomes a trainable ONNX model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.advice.extras import missing_packages
from onward.errors import OnwardError, UnsupportedError
from onward.frontends.tensorflow.convert import output_names
from onward.frontends.tensorflow.sources import concrete
from onward.frontends.tensorflow.trained import Storage, trained
from onward.training.autodiff.prepare_graph import differentiable
from onward.training.recipe.described import Stored
from onward.training.step_graphs import LOSS, updates
from onward.training.trainable import Trainable


@missing_packages()
def from_tensorflow(
    step: Any,
    signature: str | Sequence[Any] | None = None,
    *,
    inference: Any = None,
    inference_signature: str | Sequence[Any] | None = None,
) -> Trainable:
    """A step of training as TensorFlow makes it, with a `GradientTape` and variables that it changes.

    `step` is a function, or the folder of a SavedModel with the name of a signature, and gives the loss: as its only
    output, its first, or the one called `loss`. All that it changes, the state of an optimizer included, changes in
    the same way on ONNX Runtime; the learning rate is the step's own. `inference` is a function of the same variables,
    which becomes the model that others use; without it, that model computes what the step gives.
    """
    storage = Storage()
    function = concrete(step, signature)
    names = output_names(function)
    loss = "loss" if "loss" in names else names[0]
    made = trained(function, storage, names)
    if not made.assigned:
        raise OnwardError(
            "the function changes no variable: it is not a step of training; onward.from_tensorflow converts it"
        )
    if inference is None:
        original = trained(function, storage, names)
        original.without(original.assigned)
    else:
        original = trained(concrete(inference, inference_signature), storage)
        if original.assigned:
            raise UnsupportedError(f"the function for inference changes the variable {original.assigned[0]!r}")
    graph = differentiable(made.model)
    outputs = {value.name: value for value in graph.graph.outputs}
    value = outputs[loss]
    if value.dtype != ir.DataType.FLOAT or value.shape is None or value.shape.rank() != 0:
        raise UnsupportedError(f"the loss is the output {loss!r}, but that is not a single number of float32")
    value.name = LOSS
    graph.graph.outputs[:] = [value, *(outputs[f"{name}.next"] for name in made.assigned)]
    buffers = {}
    for name in made.assigned:
        buffers[name] = storage.stored(name, made.variables[name].array)
        held = graph.graph.initializers.pop(name, None)
        if held is None:  # nothing reads what it was before
            array = buffers[name]
            held = ir.Value(
                name=name, type=ir.TensorType(ir.DataType.from_numpy(array.dtype)), shape=ir.Shape(array.shape)
            )
        held.const_value = None
        graph.graph.inputs.append(held)
    known = {value.name for value in original.model.ir.graph.inputs}
    labels = [value.name or "" for value in graph.graph.inputs if value.name not in known and value.name not in buffers]
    optimizer = Stored(lr=1.0)
    return Trainable(original.model, graph, updates({}, optimizer)[0], optimizer, buffers=buffers, labels=labels)
