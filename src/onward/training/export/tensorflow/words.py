"""Losses in TensorFlow's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onward.errors import UnsupportedError
from onward.training.export.schedules import Words
from onward.training.recipe.ctc import CTC
from onward.training.recipe.losses import (
    L1,
    BinaryCrossEntropy,
    CausalLM,
    CrossEntropy,
    Huber,
    KLDivergence,
    MeanSquaredError,
    NegativeLogLikelihood,
)

NUMBERS = Words("tf.minimum", "tf", "math.pi", "tf.where({test}, {yes}, {no})")
"""A schedule is computed of the number of the step in double precision."""
SUMS = ("tf.reduce_sum(abs(w))", "tf.reduce_sum(w * w)")


def loss_call(loss: Any, prediction: str, batch: Callable[[str], str]) -> str:
    """The loss as one number; `batch` is how an input of a name is written."""
    wanted = batch(getattr(loss, "labels", "labels"))
    match loss:
        case CrossEntropy() | NegativeLogLikelihood():
            return _class_loss(loss, prediction, wanted)
        case CausalLM():
            return _next_tokens(loss, prediction, wanted)
        case BinaryCrossEntropy(pos_weight=1):
            each = f"tf.nn.sigmoid_cross_entropy_with_logits({wanted}, {prediction})"
        case BinaryCrossEntropy():
            each = f"tf.nn.weighted_cross_entropy_with_logits({wanted}, {prediction}, {loss.pos_weight!r})"
        case MeanSquaredError():
            each = f"tf.math.squared_difference({prediction}, {wanted})"
        case L1():
            each = f"tf.abs({prediction} - {wanted})"
        case Huber():
            each = f"huber_loss({prediction} - {wanted}, {loss.delta!r})"
        case KLDivergence():
            apart = f"tf.math.xlogy({wanted}, {wanted}) - {wanted} * {prediction}"
            return f"tf.reduce_sum({apart}) / tf.cast(tf.shape({prediction})[0], {prediction}.dtype)"
        case CTC():
            return _ctc_loss(loss, prediction, batch)
        case _:
            raise UnsupportedError(f"the loss {type(loss).__name__} has no counterpart in TensorFlow")
    return f"tf.reduce_{loss.reduction}({each})"


def _class_loss(loss: CrossEntropy | NegativeLogLikelihood, prediction: str, wanted: str) -> str:
    is_soft = isinstance(loss, CrossEntropy) and loss.soft
    smoothing = loss.label_smoothing if isinstance(loss, CrossEntropy) else 0.0
    if isinstance(loss, CrossEntropy):
        prediction = f"tf.nn.log_softmax({prediction}, 1)"
    options: dict[str, Any] = {
        "weight": None if loss.weight is None else tuple(loss.weight),
        "ignored": loss.ignore_index,
        "smoothing": smoothing or None,
        "reduction": None if loss.reduction == "mean" else loss.reduction,
    }
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    return f"{'soft_' if is_soft else ''}class_loss({prediction}, {wanted}{given})"


def _next_tokens(loss: CausalLM, prediction: str, wanted: str) -> str:
    following = f"{wanted}[:, 1:]"
    if loss.pad is not None:
        following = f"tf.where({following} == {loss.pad}, {loss.ignore_index}, {following})"
    logp = f"tf.nn.log_softmax(tf.transpose({prediction}[:, :-1], [0, 2, 1]), 1)"
    reduction = "" if loss.reduction == "mean" else f", reduction={loss.reduction!r}"
    return f"class_loss({logp}, {following}, ignored={loss.ignore_index}{reduction})"


def _ctc_loss(loss: CTC, prediction: str, batch: Callable[[str], str]) -> str:
    lengths = batch(loss.target_lengths)
    times = f"tf.fill(tf.shape({lengths}), tf.shape({prediction})[{int(loss.batch_first)}])"
    if loss.input_lengths is not None:
        times = batch(loss.input_lengths)
    logp = f"tf.transpose({prediction}, [1, 0, 2])" if loss.batch_first else prediction
    logp = f"tf.nn.log_softmax({logp})" if loss.logits else logp
    options: list[tuple[str, Any, Any]] = [
        ("blank", loss.blank, 0),
        ("zero_infinity", loss.zero_infinity, False),
        ("reduction", loss.reduction, "mean"),
    ]
    given = [f"{name}={value!r}" for name, value, usual in options if value != usual]
    return f"ctc_loss({', '.join([logp, batch(loss.labels), times, lengths, *given])})"
