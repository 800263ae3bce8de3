"""Training comes from TensorFlow: a function that makes a whole step becomes a trainable ONNX model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.advice.extras import missing_packages
from onward.errors import OnwardError, UnsupportedError
from onward.frontends.tensorflow.convert import output_names
from onward.frontends.tensorflow.sources import concrete
from onward.frontends.tensorflow.trained import Storage, trained
from onward.training.capture.step import whole_step
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
    changed = {name: storage.stored(name, made.variables[name].array) for name in made.assigned}
    return whole_step(original.model, made.model, loss, changed)
