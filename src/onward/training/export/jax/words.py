"""Losses, optimizers and schedules in the words of JAX and optax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import Any

from onward.training.export.jax.transforms import OWN
from onward.training.export.loss_words import class_loss_call, ctc_loss_call
from onward.training.export.script import listed
from onward.training.export.state import NotInWords
from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.recipe.ctc import CTC
from onward.training.recipe.losses import (
    L1,
    TOKENS,
    BinaryCrossEntropy,
    CausalLM,
    CrossEntropy,
    Huber,
    KLDivergence,
    MeanSquaredError,
    NegativeLogLikelihood,
)
from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, RMSprop
from onward.training.recipe.user_models import OnnxOptimizer

MOMENTS = {"exp_avg": "mu", "exp_avg_sq": "nu"}
FIELDS: Mapping[type[Any], Mapping[str, str]] = {
    SGD: {"momentum_buffer": "trace"},
    Adagrad: {"sum": "total"},
    RMSprop: {"square_avg": "nu", "grad_avg": "mu", "momentum_buffer": "trace"},
    Adam: MOMENTS,
    AdamW: MOMENTS,
    LAMB: MOMENTS,
    OnnxAdam: MOMENTS,
    OnnxAdagrad: {"sum": "total"},
    OnnxMomentum: {"momentum_buffer": "trace"},
}
"""What the states of optimizers are called in those of optax."""
KNOWN = (*FIELDS, OnnxOptimizer)
TAKEN = frozenset({"count", "index", "mini_step", "gradient_step", "inner_opt_state", "acc_grads", "skip_state"})
"""The names of what tuples have, and of other states beside."""


def fields_of(optimizer: Any) -> dict[str, str]:
    """What each state of an optimizer is called."""
    if isinstance(optimizer, OnnxOptimizer):
        return {slot: _field(slot, number) for number, slot in enumerate(optimizer.states)}
    return {slot: FIELDS[type(optimizer)][slot] for slot in optimizer.states}


def _field(slot: str, number: int) -> str:
    """A name of a user's as one of Python."""
    plain = slot.isidentifier() and not slot.startswith("_") and not iskeyword(slot) and slot not in TAKEN
    return slot if plain else f"slot{number}"


APART = (AdamW, LAMB)
"""Optimizers whose weight decay is no part of the gradient."""


def loss_call(loss: Any, prediction: str, batch: Callable[[str], str]) -> str:
    """The loss as one number; `batch` is how an input of a name is written."""
    wanted = batch(getattr(loss, "labels", None) or TOKENS)
    match loss:
        case CrossEntropy() | NegativeLogLikelihood():
            return _class_loss(loss, prediction, wanted)
        case CausalLM():
            return _next_tokens(loss, prediction, batch)
        case BinaryCrossEntropy(pos_weight=1):
            each = f"optax.sigmoid_binary_cross_entropy({prediction}, {wanted})"
        case BinaryCrossEntropy():
            positive = f"{loss.pos_weight!r} * {wanted} * jax.nn.softplus(-{prediction})"
            each = f"({positive} + (1 - {wanted}) * jax.nn.softplus({prediction}))"
        case MeanSquaredError():
            each = f"optax.squared_error({prediction}, {wanted})"
        case L1():
            each = f"jnp.abs({prediction} - {wanted})"
        case Huber():
            each = f"optax.huber_loss({prediction}, {wanted}, delta={loss.delta!r})"
        case KLDivergence():
            apart = f"jax.scipy.special.xlogy({wanted}, {wanted}) - {wanted} * {prediction}"
            return f"jnp.sum({apart}) / len({prediction})"
        case CTC():
            return _ctc_loss(loss, prediction, batch)
        case _:
            raise NotInWords(f"the loss {type(loss).__name__} has no counterpart in optax")
    return f"{each}.{loss.reduction}()"


def _class_loss(loss: CrossEntropy | NegativeLogLikelihood, prediction: str, wanted: str) -> str:
    """A plain one in optax's words; with options, by a function that is printed."""
    if isinstance(loss, CrossEntropy):
        if loss.weight is None and loss.ignore_index is None and not loss.label_smoothing:
            labels = "" if loss.soft else "_with_integer_labels"
            return f"optax.softmax_cross_entropy{labels}({prediction}, {wanted}, axis=1).{loss.reduction}()"
        prediction = f"jax.nn.log_softmax({prediction}, axis=1)"
    return class_loss_call(loss, prediction, wanted)


def _next_tokens(loss: CausalLM, prediction: str, batch: Callable[[str], str]) -> str:
    wanted = f"{batch(loss.labels or TOKENS)}[:, 1:].ravel()"
    if loss.pad is not None:
        wanted = f"jnp.where({wanted} == {loss.pad}, {loss.ignore_index}, {wanted})"
    scores = f"{prediction}[:, :-1].reshape(-1, {prediction}.shape[-1])"
    return _class_loss(CrossEntropy(ignore_index=loss.ignore_index, reduction=loss.reduction), scores, wanted)


def _ctc_loss(loss: CTC, prediction: str, batch: Callable[[str], str]) -> str:
    times = f"jnp.full_like({batch(loss.target_lengths)}, {prediction}.shape[{int(loss.batch_first)}])"
    logp = f"{prediction}.swapaxes(0, 1)" if loss.batch_first else prediction
    return ctc_loss_call(loss, f"jax.nn.log_softmax({logp})" if loss.logits else logp, times, batch)


def core(optimizer: Any) -> list[str]:
    """What optax makes of gradients, before they are scaled by the learning rate."""
    match optimizer:
        case SGD(momentum=0):
            return []
        case SGD(dampening=0):
            nesterov = ", nesterov=True" if optimizer.nesterov else ""
            return [f"optax.trace({optimizer.momentum!r}{nesterov})"]
        case RMSprop():
            kind = "stddev" if optimizer.centered else "rms"
            scaled = f"optax.scale_by_{kind}({optimizer.alpha!r}, {optimizer.eps!r}, eps_in_sqrt=False)"
            return [scaled, *([f"optax.trace({optimizer.momentum!r})"] if optimizer.momentum else [])]
        case Adam() | AdamW() | LAMB():
            b1, b2 = optimizer.betas
            return [f"optax.scale_by_adam({b1!r}, {b2!r}, {optimizer.eps!r})"]
    own = OWN[type(optimizer)]
    given = ", ".join(f"{name}={getattr(optimizer, name)!r}" for name in own.options)
    return [f"{own.name}({given})"]


def is_counted(optimizer: Any) -> bool:
    """Whether the state counts steps."""
    return isinstance(optimizer, Adam | AdamW | LAMB | OnnxOptimizer) or is_own(optimizer)


def is_own(optimizer: Any) -> bool:
    """Whether optax lacks it, so that it is printed."""
    return type(optimizer) in OWN and not (isinstance(optimizer, SGD) and not optimizer.dampening)


def decays(optimizer: Any, groups: Mapping[Any, Sequence[str]]) -> list[str]:
    """Weight decay, of all parameters or by groups."""
    if not groups:
        return [f"optax.add_decayed_weights({optimizer.weight_decay!r})"] if optimizer.weight_decay else []
    by_decay: dict[float, list[str]] = {}
    for rule, members in groups.items():
        by_decay.setdefault(rule.decay, []).extend(members)
    return [
        f"optax.add_decayed_weights({decay!r}, mask=partial(among, {listed(members)}))"
        for decay, members in by_decay.items()
        if decay
    ]
