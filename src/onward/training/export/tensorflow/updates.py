"""How optimizers change one weight, as source for `train.py`: the formulas of the file, for TensorFlow and Keras."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onward.backends.emit.names import identifier
from onward.backends.emit.printing.language import wrap
from onward.training.export.script import indented
from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, RMSprop, initial
from onward.training.recipe.user_models import OnnxOptimizer


@dataclass(frozen=True)
class Formula:
    """What is done to a weight `w` with the gradient `g`; states go by their names."""

    name: str
    doc: str
    options: tuple[str, ...]
    """Of ours, which the body knows by the same names."""
    body: str
    """Lines that make `w` and the states anew. `step` is the number of the step, 1 at first."""


MOMENTS = """
exp_avg = first * exp_avg + (1 - first) * g
exp_avg_sq = second * exp_avg_sq + (1 - second) * g * g
count = tf.cast(step, tf.float64)  # 1 - 0.999 has only five digits in single precision
correction = tf.cast(1 - first**count, w.dtype)
root = tf.cast(tf.sqrt(1 - second**count), w.dtype)
"""
ADAM = MOMENTS + "w = w - lr / correction * exp_avg / (tf.sqrt(exp_avg_sq) / root + eps)"
COUNT = "count = tf.cast(step + first - 1, tf.float64)\ng = g + decay * w\n"


def formula(optimizer: Any) -> Formula:
    """That of one of Onward's own optimizers."""
    match optimizer:
        case OnnxOptimizer():
            states = [argument(slot) for slot in optimizer.states]
            after, given = (
                ", ".join([first, *states]) for first in ("w", "w, g, lr, tf.constant(decay, lr.dtype), step")
            )
            return Formula(
                "OfFile", "The optimizer of the file, which optimizer.py has.", (), f"{after} = OPTIMIZER({given})"
            )
        case SGD():
            return Formula("SGD", "Gradient descent, with momentum as PyTorch has it.", *_sgd(optimizer))
        case RMSprop():
            return Formula("RMSprop", "With epsilon beside the root, not in it.", *_rmsprop(optimizer))
    return FORMULAS[type(optimizer)]


def _sgd(optimizer: SGD) -> tuple[tuple[str, ...], str]:
    lines = ["g = g + decay * w"]
    if not optimizer.momentum:
        return (), "\n".join([*lines, "w = w - lr * g"])
    if optimizer.dampening:
        lines.append("share = tf.cast(tf.where(step == 1, 1.0, 1 - dampening), w.dtype)  # the first is not dampened")
    lines.append(f"momentum_buffer = momentum * momentum_buffer + {'share * ' if optimizer.dampening else ''}g")
    move = "(g + momentum * momentum_buffer)" if optimizer.nesterov else "momentum_buffer"
    options = ("momentum", "dampening") if optimizer.dampening else ("momentum",)
    return options, "\n".join([*lines, f"w = w - lr * {move}"])


def _rmsprop(optimizer: RMSprop) -> tuple[tuple[str, ...], str]:
    lines = ["g = g + decay * w", "square_avg = alpha * square_avg + (1 - alpha) * g * g"]
    spread = "square_avg"
    if optimizer.centered:
        lines.append("grad_avg = alpha * grad_avg + (1 - alpha) * g")
        spread = "square_avg - grad_avg * grad_avg"
    move = f"g / (tf.sqrt({spread}) + eps)"
    if optimizer.momentum:
        lines.append(f"momentum_buffer = momentum * momentum_buffer + {move}")
        move = "momentum_buffer"
    return ("alpha", "eps", *(["momentum"] if optimizer.momentum else [])), "\n".join([*lines, f"w = w - lr * {move}"])


FORMULAS: Mapping[type[Any], Formula] = {
    Adagrad: Formula(
        "Adagrad",
        "With epsilon beside the root, not in it.",
        ("lr_decay", "eps"),
        """
g = g + decay * w
lr = lr / (1 + tf.cast(step - 1, w.dtype) * lr_decay)
total = total + g * g
w = w - lr * g / (tf.sqrt(total) + eps)
""",
    ),
    Adam: Formula(
        "Adam",
        "With epsilon added after the correction, as PyTorch does; weight decay is part of the gradient.",
        ("betas", "eps"),
        "first, second = betas\ng = g + decay * w" + ADAM,
    ),
    AdamW: Formula(
        "AdamW",
        "With epsilon added after the correction, as PyTorch does; weight decay is apart from the gradient.",
        ("betas", "eps"),
        "first, second = betas\nw = w - lr * decay * w" + ADAM,
    ),
    LAMB: Formula(
        "Lamb",
        "AdamW with steps scaled tensor by tensor, by the norm of the weight over that of its step.",
        ("betas", "eps"),
        "first, second = betas"
        + MOMENTS
        + """
move = exp_avg / correction / (tf.sqrt(exp_avg_sq) / root + eps) + decay * w
size, length = tf.norm(w), tf.norm(move)
trust = tf.where((size > 0) & (length > 0), size / length, tf.ones_like(size))
w = w - lr * trust * move
""",
    ),
    OnnxAdam: Formula(
        "OnnxAdam",
        "As ai.onnx.preview.training defines it: epsilon is added before the correction.",
        ("first", "alpha", "beta", "epsilon", "norm_coefficient_post"),
        COUNT
        + """
exp_avg = alpha * exp_avg + (1 - alpha) * g
exp_avg_sq = beta * exp_avg_sq + (1 - beta) * g * g
some = tf.maximum(count, 1)
scale = tf.where(count > 0, tf.sqrt(1 - beta**some) / (1 - alpha**some), 1)
w = (w - lr * tf.cast(scale, w.dtype) * exp_avg / (tf.sqrt(exp_avg_sq) + epsilon)) * (1 - norm_coefficient_post)
""",
    ),
    OnnxAdagrad: Formula(
        "OnnxAdagrad",
        "As ai.onnx.preview.training defines it.",
        ("first", "decay_factor", "epsilon"),
        COUNT
        + """
total = total + g * g
w = w - lr / (1 + tf.cast(count, w.dtype) * decay_factor) * g / (tf.sqrt(total) + epsilon)
""",
    ),
    OnnxMomentum: Formula(
        "OnnxMomentum",
        "As ai.onnx.preview.training defines it.",
        ("first", "alpha", "beta", "mode"),
        COUNT
        + """
momentum_buffer = alpha * momentum_buffer + tf.cast(tf.where(count > 0, beta, 1.0), w.dtype) * g
w = w - lr * (g + alpha * momentum_buffer if mode == "nesterov" else momentum_buffer)
""",
    ),
}
KNOWN = (SGD, RMSprop, OnnxOptimizer, *FORMULAS)


def argument(slot: str) -> str:
    """What a state is called in a formula: not as a function of Python."""
    return "total" if slot == "sum" else identifier(slot)


def update(optimizer: Any, slots: Sequence[str]) -> list[str]:
    """A function of a weight, its gradient, the learning rate, weight decay, the step and the states."""
    own = formula(optimizer)
    states = [argument(slot) for slot in slots]
    given = ["w", "g", "lr", "decay", "step", *states]
    types = {"decay": "float"}
    arguments = ", ".join(f"{name}: {types.get(name, 'tf.Tensor')}" for name in given)
    options = [f"{name} = {getattr(optimizer, name)!r}" for name in own.options]
    body = [*options, *(line for line in own.body.strip("\n").splitlines() if line)]
    return [
        *wrap(f"def update({arguments}) -> list[tf.Tensor]:"),
        f'    """A weight and its states after a step of {own.name}.',
        "",
        f"    {own.doc}",
        '    """',
        *indented([line for text in body for line in wrap(text)]),
        f"    return [{', '.join(['w', *states])}]",
    ]


def starts(optimizer: Any, slots: Sequence[str]) -> dict[str, float]:
    """What states start from that do not start from zero."""
    return {slot: number for slot in slots if (number := initial(optimizer, slot))}
