"""Losses, optimizers and schedules in Keras's own words, where they mean exactly the same; None where they do not."""

from __future__ import annotations

from typing import Any

from onward.training.export.plan import Plan
from onward.training.recipe.losses import L1, BinaryCrossEntropy, CrossEntropy, Huber, MeanSquaredError
from onward.training.recipe.optimizers import SGD
from onward.training.recipe.schedules import Cosine, Linear, Steps


def own_loss(plan: Plan) -> str | None:
    """A loss for `compile`, which is of one output and one input of labels."""
    if (
        plan.graph is not None
        or len(plan.terms) != 1
        or len(plan.outputs) != 1
        or plan.penalties
        or plan.terms[0].weight != 1
    ):
        return None
    loss: Any = plan.terms[0].loss
    rank = plan.ranks.get(plan.outputs[0])
    options: dict[str, Any] = {}
    match loss:
        case CrossEntropy(weight=None, ignore_index=None, label_smoothing=0, soft=False) if rank == 2:
            # of probabilities, TensorFlow's gradient is another one for rows that do not add up to 1, as empty ones
            name, options = "SparseCategoricalCrossentropy", {"from_logits": True}
            options |= {"reduction": "sum"} if loss.reduction == "sum" else {}
        case BinaryCrossEntropy(pos_weight=1, reduction="mean"):
            name, options = "BinaryCrossentropy", {"from_logits": True}
        case MeanSquaredError(reduction="mean"):
            name = "MeanSquaredError"
        case L1(reduction="mean"):
            name = "MeanAbsoluteError"
        case Huber(reduction="mean"):
            name, options = "Huber", {"delta": loss.delta}
        case _:
            return None
    return _call(f"keras.losses.{name}", options)


def own_optimizer(plan: Plan) -> str | None:
    """Keras's gradient descent; every other optimizer of Keras has epsilon, or weight decay, in another place."""
    how = plan.optimizer
    if not isinstance(how, SGD) or plan.groups or plan.average is not None or plan.clip_norm is not None:
        return None
    if how.momentum and (how.dampening or how.weight_decay or plan.scheduled or not plan.lr):
        return None  # its momentum has the learning rate of each step in it
    options: dict[str, Any] = {}
    options |= {"momentum": how.momentum} if how.momentum else {}
    options |= {"nesterov": True} if how.nesterov else {}
    options |= {"weight_decay": how.weight_decay} if how.weight_decay else {}
    options |= {"clipvalue": plan.clip_value} if plan.clip_value is not None else {}
    return _call("keras.optimizers.SGD", {**options, **accumulation(plan)}, "learning_rate")


def accumulation(plan: Plan) -> dict[str, int]:
    return {"gradient_accumulation_steps": plan.accumulate} if plan.accumulate > 1 else {}


def own_schedule(plan: Plan) -> str | None:
    """A schedule of Keras, which counts the steps made before."""
    if plan.accumulate > 1:
        return None  # Keras counts batches then
    lr, schedule = plan.lr, plan.schedule
    match schedule:
        case Steps():
            return _call("ExponentialDecay", {"staircase": True}, repr(lr), str(schedule.every), repr(schedule.factor))
        case Linear():
            return _call("PolynomialDecay", {"end_learning_rate": lr * schedule.floor}, repr(lr), str(schedule.steps))
        case Cosine():
            return _call("CosineDecay", {"alpha": schedule.floor}, repr(lr), str(schedule.steps))
    return None


def _call(name: str, options: dict[str, Any], *arguments: str) -> str:
    return f"{name}({', '.join([*arguments, *(f'{key}={value!r}' for key, value in options.items())])})"
