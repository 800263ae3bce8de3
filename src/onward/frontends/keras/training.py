"""A compiled Keras model as two functions: what it gives in use, and the loss that training minimises."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onward.errors import OnwardError, UnsupportedError
from onward.frontends.keras.convert import packed, traced
from onward.frontends.keras.modes import modes_kept
from onward.frontends.keras.own_gradients import refuse_own_gradients
from onward.frontends.keras.recurrent import recurrent_layers_whole
from onward.frontends.keras.time_distributed import steps_as_batch
from onward.frontends.tensorflow.convert import output_names
from onward.frontends.tensorflow.trained import Storage, Trained, trained
from onward.model import Model

LOSS = "loss"
SAMPLE_WEIGHT = "sample_weight"
SPARSE = {
    "SparseCategoricalCrossentropy",
    "sparse_categorical_crossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "categorical_generalized_cross_entropy",
    "Circle",
    "circle",
}
"""Losses that take classes."""
GUESSED = {"crossentropy", "ce"}
"""Losses that Keras chooses when it sees labels."""


@dataclass
class Captured:
    """A model for inference and its loss in training, which share the names and the form of weights."""

    inference: Model
    outputs: list[str]
    """Of the model, in the order that Keras has them in."""
    loss: Model
    """Its one output is the loss; batch normalisation and dropout are in it as they are in inference."""
    labels: list[str]
    """By output: the input that the loss compares it with."""
    statistics: dict[str, str]
    """Running statistics that follow the batches, and the layers that they are of."""
    storage: Storage
    gradients: dict[str, str]
    """Variables that are trained and have a gradient in TensorFlow: `dense`, or the `rows` that were looked up."""
    weighted: bool = False
    """Whether the loss weights samples, by an input or by their labels."""
    weights: list[str] = field(default_factory=list)
    """The input that weights samples, if there is one."""


def captured(
    model: Any,
    signature: Sequence[Any] | None,
    labels: Sequence[Any] | None,
    sample_weight: bool = False,
    class_weight: Mapping[int, float] | None = None,
) -> Captured:
    """`labels` are the `tf.TensorSpec` of what each output is compared with, unless the loss tells.

    With `sample_weight` the loss has one more input, by which it weights samples; `class_weight` weights them by label.
    """
    import tensorflow as tf

    check(model)
    if sample_weight and class_weight:
        raise OnwardError("Keras takes weights of samples or of classes: give one of sample_weight and class_weight")
    storage = Storage()
    function, names = traced(model, signature)
    own = function.inputs[: len(function.inputs) - len(function.captured_inputs)]
    given = [tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.op.name) for tensor in own]
    targets = _targets(model, function, names, labels)
    if class_weight and len(targets) != 1:
        raise OnwardError(f"weights of classes are for a model of one output: this one has {len(targets)}")
    if sample_weight and SAMPLE_WEIGHT in {spec.name for spec in given}:
        raise OnwardError(f"the model has an input {SAMPLE_WEIGHT!r} of its own: rename it")
    weights = [tf.TensorSpec([None], tf.float32, name=SAMPLE_WEIGHT)] if sample_weight else []

    def loss(*tensors: Any) -> Any:
        x = packed(model, tensors[: len(given)])
        predicted = model(x, training=True)
        wanted = tf.nest.pack_sequence_as(predicted, list(tensors[len(given) :][: len(targets)]))
        weight = tensors[-1] if weights else class_weights(wanted, class_weight) if class_weight else None
        options = {"training": True} if "training" in inspect.signature(model.compute_loss).parameters else {}
        return model.compute_loss(x=x, y=wanted, y_pred=predicted, sample_weight=weight, **options)

    with recurrent_layers_whole(), steps_as_batch(), modes_kept() as statistics:
        try:
            minimised = tf.function(loss, autograph=False).get_concrete_function(*given, *targets, *weights)
        except ValueError as error:
            raise UnsupportedError(f"Keras does not compute the loss: {str(error).strip().splitlines()[0]}") from error
    refuse_own_gradients(minimised.graph)
    inference = trained(function, storage, names, name=model.name, batched=True)
    inference.without(inference.assigned)
    step = trained(minimised, storage, [LOSS], name=model.name, batched=True)
    _check_changes(step, inference)
    graph = step.model.ir.graph
    for value in list(graph.inputs):
        if value.name in {spec.name for spec in targets} and not value.uses():
            graph.inputs.remove(value)
    return Captured(
        inference.model,
        [value.name or "" for value in inference.model.ir.graph.outputs],
        step.model,
        [spec.name for spec in targets],
        statistics,
        storage,
        _gradients(model, loss, [*given, *targets, *weights]),
        bool(sample_weight or class_weight),
        [spec.name for spec in weights],
    )


def class_weights(labels: Any, weights: Mapping[int, float]) -> Any:
    """What `fit` makes of weights of classes: a weight of each sample, 1 for a class that is not named."""
    import tensorflow as tf

    if labels.shape.rank is None:
        raise UnsupportedError("weights of classes need labels of a known rank: give `labels=`, a tf.TensorSpec")
    if labels.shape.rank > 1:
        labels = tf.squeeze(labels, -1) if labels.shape[-1] == 1 else tf.argmax(labels, -1)
    if labels.shape.rank != 1:
        raise UnsupportedError("weights of classes are for one label a sample")
    if labels.dtype.is_floating:
        labels = tf.round(labels)
    same = tf.cast(labels, tf.int64)[:, None] == tf.constant(list(weights), tf.int64)
    found = tf.reduce_sum(tf.where(same, tf.constant(list(weights.values()), tf.float32), 0.0), -1)
    return tf.where(tf.reduce_any(same, -1), found, 1.0)


def _gradients(model: Any, loss: Any, specs: Sequence[Any]) -> dict[str, str]:
    import tensorflow as tf

    found: dict[str, str] = {}

    def derived(*tensors: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(*tensors)
        variables = [variable.value for variable in model.trainable_variables]
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            if gradient is not None:
                found[tensor_name(variable)] = "rows" if isinstance(gradient, tf.IndexedSlices) else "dense"
        return value

    tf.function(derived, autograph=False).get_concrete_function(*specs)
    return found


def tensor_name(variable: Any) -> str:
    """What a variable of TensorFlow is called in ONNX."""
    return str(variable.name).split(":")[0]


def check(model: Any) -> None:
    """Refuse what the steps of a model depend on and what is not looked at here."""
    import keras

    if not isinstance(model, keras.Model):
        raise OnwardError(f"{type(model).__name__} is not a Keras model")
    if not getattr(model, "compiled", False):
        raise OnwardError(
            "the model is not compiled: call model.compile(optimizer, loss) first, or convert it and give the loss and "
            "the optimizer to `onward train prepare`"
        )
    if type(model).train_step not in (keras.Model.train_step, keras.Sequential.train_step):
        raise UnsupportedError(
            f"{type(model).__name__} has a train_step of its own: give it as a function of TensorFlow"
        )
    for layer in model._flatten_layers():
        policy = getattr(layer, "dtype_policy", None)
        if policy is not None and policy.compute_dtype != policy.variable_dtype:
            raise UnsupportedError(f"{layer.name}: mixed precision ({policy.name}) is not trained")


def _targets(model: Any, function: Any, names: Sequence[str] | None, labels: Sequence[Any] | None) -> list[Any]:
    import keras
    import tensorflow as tf

    outputs = tf.nest.flatten(function.structured_outputs)
    own = list(names or output_names(function))
    called = ["labels"] if len(outputs) == 1 else [f"labels_{name}" for name in own]
    if labels is not None:
        if len(labels) != len(outputs):
            raise OnwardError(f"there are {len(outputs)} outputs, but labels of {len(labels)} are given")
        return [tf.TensorSpec(s.shape, s.dtype, name=name) for s, name in zip(labels, called, strict=True)]
    specs = []
    for index, (output, name, label) in enumerate(zip(outputs, own, called, strict=True)):
        loss = loss_of(model.loss, index, name)
        if isinstance(loss, str) and loss in GUESSED:
            raise OnwardError(
                f"Onward cannot tell which labels the loss {loss!r} takes: give `labels=`, a tf.TensorSpec"
            )
        how = keras.losses.get(loss) if loss is not None else None
        kind = getattr(how, "__name__", type(how).__name__)
        if kind in SPARSE:
            specs.append(tf.TensorSpec(output.shape[:-1], tf.int64, name=label))
        else:
            specs.append(tf.TensorSpec(output.shape, output.dtype, name=label))
    return specs


def loss_of(loss: Any, index: int, name: str) -> Any:
    """What was compiled for one of several outputs."""
    if isinstance(loss, dict):
        return loss.get(name)
    if isinstance(loss, list | tuple):
        return loss[index] if index < len(loss) else None
    return loss


def _check_changes(step: Trained, inference: Trained) -> None:
    """Refuse a model whose layers change variables that matter; what only counts, such as a metric, does not."""
    changed = step.assigned
    step.without(changed)
    for name in changed:
        if name in step.model.ir.graph.initializers or name in inference.model.ir.graph.initializers:
            raise UnsupportedError(
                f"the variable {name!r} changes while the model runs in training, in a way of its own"
            )
