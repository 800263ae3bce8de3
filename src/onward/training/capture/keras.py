"""Training comes from Keras: a compiled model, as it is, becomes a trainable ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onward.advice.extras import missing_packages
from onward.canon.lower import key_of
from onward.errors import OnwardError, UnsupportedError
from onward.frontends.keras.training import Captured, captured, tensor_name
from onward.graph.walk import all_nodes
from onward.training.autodiff.prepare_graph import differentiable
from onward.training.capture.keras_losses import terms
from onward.training.capture.keras_optimizers import Taken, one_by_one, taken, waiting_batches
from onward.training.capture.keras_updates import together
from onward.training.recipe.groups import exactly
from onward.training.recipe.modes import training_mode
from onward.training.recipe.optimizers import SGD
from onward.training.recipe.parameters import choose
from onward.training.speed.scattered import give_rows
from onward.training.step_graphs import LOSS
from onward.training.trainable import Trainable, assembled

Array = np.ndarray[Any, np.dtype[Any]]


@missing_packages()
def from_keras(
    model: Any,
    signature: Sequence[Any] | None = None,
    *,
    labels: Sequence[Any] | None = None,
    dense_gradients: bool = False,
    sample_weight: bool = False,
    class_weight: Mapping[int, float] | None = None,
) -> Trainable:
    """A compiled Keras model as a trainable model whose next steps are those that `fit` would make.

    Loss, regularisation, optimizer with its state, and which weights are trained are the model's. `labels` are the
    `tf.TensorSpec` of what each output is compared with, for losses that do not tell. Of the gradient of an embedding,
    most optimizers of Keras square each row by itself, and add up then; so it is here, unless `dense_gradients` asks
    for the gradient to be added up first, as PyTorch and JAX have it, where such a training can go on.

    `sample_weight` and `class_weight` are those of `fit`: a batch has a `sample_weight` of each sample then, or each
    class has its weight for good.
    """
    found = captured(model, signature, labels, sample_weight, class_weight)
    variables = {tensor_name(variable.value): variable for variable in model.trainable_variables}
    accumulate, steps = waiting_batches(model.optimizer)
    if dense_gradients or accumulate > 1:  # Keras adds up what it accumulates
        found.gradients = dict.fromkeys(found.gradients, "dense")
    if one_by_one(model.optimizer, variables.values(), "rows" in found.gradients.values()):
        how = taken(model.optimizer, list(variables.values()))
        made = _checked(_assembled(model, found, how, list(variables)), found)
        state = dict(made.state)
        for name, states in zip(variables, how.state, strict=True):
            if name in made.parameters:
                state |= {f"{name}.{slot}": found.storage.stored(name, array) for slot, array in states.items()}
        return replace(made, state=state, step=how.step)
    all_at_once = together(model.optimizer, variables, found.gradients, found.storage)
    plain = Taken(SGD(), accumulate=accumulate)
    made = _checked(_assembled(model, found, plain, list(variables)), found)
    rows = [name for name, kind in found.gradients.items() if kind == "rows"]
    give_rows(made.gradients, rows)
    return replace(
        made,
        stored_update=all_at_once.update,
        optimizer=all_at_once.optimizer,
        state=all_at_once.state,
        step=steps,
        rows=rows,
    )


def _checked(made: Trainable, found: Captured) -> Trainable:
    for name in found.gradients:
        if name not in made.parameters:
            raise UnsupportedError(f"no gradient of the loss reaches {name!r}, though it does in TensorFlow")
    return made


def _assembled(model: Any, found: Captured, how: Taken, names: list[str]) -> Trainable:
    graph = differentiable(found.loss)
    loss = graph.graph.outputs[0]
    loss.name = LOSS
    buffers = training_mode(graph, found.statistics, biased=True)
    for name, layer in found.statistics.items():
        if name not in buffers:
            raise UnsupportedError(
                f"the running statistics of {layer!r} would not follow the training: is it used twice?"
            )
    if any(key_of(node) == "Dropout" for node in all_nodes(graph.graph) if node.graph is not graph.graph):
        raise UnsupportedError("dropout inside a branch or a loop is not drawn")
    wanted = set(names)
    if not wanted:
        raise OnwardError("the model has no weights that are trained")
    chosen = choose(graph.graph, loss, lambda name: name in wanted)
    inputs = {value.name for value in graph.graph.inputs}
    return assembled(
        found.inference,
        graph,
        loss,
        chosen,
        how.optimizer,
        buffers,
        no_decay=[exactly(names[i]) for i in how.no_decay if names[i] in found.gradients],
        labels=[name for name in (*found.labels, *found.weights) if name in inputs],
        clip_norm=how.clip_norm,
        clip_epsilon=0.0,
        accumulate=how.accumulate,
        loss=terms(model, found),
    )
