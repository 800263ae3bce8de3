"""Losses of Keras in Onward's words, where both mean the same; the graph of a loss is traced, whatever it is."""

from __future__ import annotations

from typing import Any

from onward.frontends.keras.training import Captured, loss_of
from onward.training.recipe.losses import L1, BinaryCrossEntropy, CrossEntropy, Huber, Loss, MeanSquaredError, Term

MEANS = ("sum_over_batch_size", "mean")


def terms(model: Any, found: Captured) -> list[Term] | None:
    """A sum of losses of outputs; None where it is something else as well, such as a penalty of weights."""
    if model.losses or found.weighted:
        return None
    said = []
    weights = getattr(model, "loss_weights", None)
    ranks = {
        value.name: None if value.shape is None else value.shape.rank() for value in found.inference.ir.graph.outputs
    }
    for index, (output, labels) in enumerate(zip(found.outputs, found.labels, strict=True)):
        loss = loss_of(model.loss, index, output)
        if loss is None:
            continue
        term = _said(loss, ranks[output], labels)
        weight = loss_of(weights, index, output)
        if term is None:
            return None
        said.append(Term(term, 1.0 if weight is None else float(weight), output))
    return said or None


def _said(given: Any, rank: int | None, labels: str) -> Loss | None:
    import keras

    loss = keras.losses.get(given)
    options = {**(loss.get_config() if hasattr(loss, "get_config") else {}), **getattr(loss, "_fn_kwargs", {})}
    if options.get("reduction", MEANS[0]) not in MEANS or options.get("axis", -1) != -1:
        return None
    logits, smoothing = options.get("from_logits", False), options.get("label_smoothing", 0.0)
    match getattr(loss, "__name__", type(loss).__name__):
        case "MeanSquaredError" | "mean_squared_error":
            return MeanSquaredError(labels=labels)
        case "MeanAbsoluteError" | "mean_absolute_error":
            return L1(labels=labels)
        case "Huber" | "huber":
            return Huber(float(options.get("delta", 1.0)), labels=labels)
        case "BinaryCrossentropy" if logits and not smoothing:
            return BinaryCrossEntropy(labels=labels)
        case "CategoricalCrossentropy" if logits and rank == 2:
            return CrossEntropy(float(smoothing), soft=True, labels=labels)
        case "SparseCategoricalCrossentropy" if logits and rank == 2 and options.get("ignore_class") is None:
            return CrossEntropy(labels=labels)
    return None
