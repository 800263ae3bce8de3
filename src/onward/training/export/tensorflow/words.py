"""Losses in TensorFlow's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onward.training.export.loss_words import class_loss_call, ctc_loss_call
from onward.training.export.schedules import Words
from onward.training.export.state import NotInWords
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

NUMBERS = Words(
    "tf.minimum",
    "tf",
    "math.pi",
    "tf.where({test}, {yes}, {no})",
    "tf.gather({table}, tf.cast(tf.maximum({index}, 0), tf.int32))",
)
"""A schedule is computed of the number of the step in double precision."""
SUMS = ("tf.reduce_sum(abs(w))", "tf.reduce_sum(w * w)")


def loss_call(loss: Any, prediction: str, batch: Callable[[str], str], *, flat: bool = False) -> str:
    """The loss as one number; `batch` is how an input of a name is written. `flat`: predictions have two axes."""
    wanted = batch(getattr(loss, "labels", "labels"))
    match loss:
        case CrossEntropy(weight=None, ignore_index=None, label_smoothing=0, soft=False) if flat:
            each = f"tf.nn.sparse_softmax_cross_entropy_with_logits({wanted}, {prediction})"
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
            raise NotInWords(f"the loss {type(loss).__name__} has no counterpart in TensorFlow")
    return f"tf.reduce_{loss.reduction}({each})"


def _class_loss(loss: CrossEntropy | NegativeLogLikelihood, prediction: str, wanted: str) -> str:
    logp = f"tf.nn.log_softmax({prediction}, 1)" if isinstance(loss, CrossEntropy) else prediction
    return class_loss_call(loss, logp, wanted)


def _next_tokens(loss: CausalLM, prediction: str, wanted: str) -> str:
    following = f"{wanted}[:, 1:]"
    if loss.pad is not None:
        none = f"tf.cast({loss.ignore_index}, {wanted}.dtype)"
        following = f"tf.where({following} == {loss.pad}, {none}, {following})"
    logp = f"tf.nn.log_softmax(tf.transpose({prediction}[:, :-1], [0, 2, 1]), 1)"
    reduction = "" if loss.reduction == "mean" else f", reduction={loss.reduction!r}"
    return f"class_loss({logp}, {following}, ignored={loss.ignore_index}{reduction})"


def _ctc_loss(loss: CTC, prediction: str, batch: Callable[[str], str]) -> str:
    times = f"tf.fill(tf.shape({batch(loss.target_lengths)}), tf.shape({prediction})[{int(loss.batch_first)}])"
    logp = f"tf.transpose({prediction}, [1, 0, 2])" if loss.batch_first else prediction
    return ctc_loss_call(loss, f"tf.nn.log_softmax({logp})" if loss.logits else logp, times, batch)
