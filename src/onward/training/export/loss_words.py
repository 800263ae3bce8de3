"""Calls of losses that are printed as functions: they have the same names and arguments in every framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onward.training.recipe.ctc import CTC
from onward.training.recipe.losses import CrossEntropy, NegativeLogLikelihood


def class_loss_call(loss: CrossEntropy | NegativeLogLikelihood, logp: str, wanted: str) -> str:
    """Of logarithms of probabilities; only what is not the default is said."""
    is_soft = isinstance(loss, CrossEntropy) and loss.soft
    options: dict[str, Any] = {
        "weight": None if loss.weight is None else tuple(loss.weight),
        "ignored": loss.ignore_index,
        "smoothing": (loss.label_smoothing or None) if isinstance(loss, CrossEntropy) else None,
        "reduction": None if loss.reduction == "mean" else loss.reduction,
    }
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    return f"{'soft_' if is_soft else ''}class_loss({logp}, {wanted}{given})"


def ctc_loss_call(loss: CTC, logp: str, times: str, batch: Callable[[str], str]) -> str:
    """Of logarithms of probabilities (time, batch, classes); `times` where the loss has no input of lengths."""
    lengths = times if loss.input_lengths is None else batch(loss.input_lengths)
    options: list[tuple[str, Any, Any]] = [
        ("blank", loss.blank, 0),
        ("zero_infinity", loss.zero_infinity, False),
        ("reduction", loss.reduction, "mean"),
    ]
    given = [f"{name}={value!r}" for name, value, usual in options if value != usual]
    return f"ctc_loss({', '.join([logp, batch(loss.labels), lengths, batch(loss.target_lengths), *given])})"
