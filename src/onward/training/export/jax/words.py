"""Losses, optimizers and schedules in the words of JAX and optax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onward.errors import UnsupportedError
from onward.training.export.jax.transforms import OWN
from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.recipe.losses import (
    L1,
    BinaryCrossEntropy,
    CrossEntropy,
    Huber,
    KLDivergence,
    MeanSquaredError,
    NegativeLogLikelihood,
    Penalty,
)
from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, RMSprop

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
APART = (AdamW, LAMB)
"""Optimizers whose weight decay is no part of the gradient."""


def loss_call(loss: Any, prediction: str, batch: Callable[[str], str]) -> str:
    """The loss as one number; `batch` is how an input of a name is written."""
    wanted = batch(getattr(loss, "labels", "labels"))
    match loss:
        case CrossEntropy() | NegativeLogLikelihood():
            return _class_loss(loss, prediction, wanted)
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
        case _:
            raise UnsupportedError(f"the loss {type(loss).__name__} has no counterpart in optax")
    return f"{each}.{loss.reduction}()"


def _class_loss(loss: CrossEntropy | NegativeLogLikelihood, prediction: str, wanted: str) -> str:
    """A plain one in optax's words; with options, by the function that `CLASS_LOSS` defines."""
    plain = loss.weight is None and loss.ignore_index is None
    is_soft = isinstance(loss, CrossEntropy) and loss.soft
    smoothing = loss.label_smoothing if isinstance(loss, CrossEntropy) else 0.0
    if isinstance(loss, CrossEntropy):
        if plain and not smoothing:
            labels = "" if is_soft else "_with_integer_labels"
            return f"optax.softmax_cross_entropy{labels}({prediction}, {wanted}, axis=1).{loss.reduction}()"
        prediction = f"jax.nn.log_softmax({prediction}, axis=1)"
    options: dict[str, Any] = {
        "weight": None if loss.weight is None else tuple(loss.weight),
        "ignored": loss.ignore_index,
        "smoothing": smoothing or None,
        "reduction": None if loss.reduction == "mean" else loss.reduction,
    }
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    return f"{'soft_' if is_soft else ''}class_loss({prediction}, {wanted}{given})"


CLASS_LOSS = '''
def class_loss(
    logp: Array,
    labels: Array,
    weight: Any = None,
    ignored: int | None = None,
    smoothing: float = 0.0,
    reduction: str = "mean",
) -> Array:
    """The negative logarithm of the labelled class's probability: a mean over what counts, or a sum."""
    counts = jnp.ones(labels.shape, logp.dtype) if ignored is None else (labels != ignored).astype(logp.dtype)
    index = jnp.where(counts > 0, labels, 0)
    share = counts if weight is None else counts * jnp.array(weight, logp.dtype)[index]
    losses = -jnp.take_along_axis(logp, index[:, None], axis=1)[:, 0] * share
    if smoothing:
        ends = [1] * (logp.ndim - 2)
        even = logp if weight is None else logp * jnp.array(weight, logp.dtype).reshape(-1, *ends)
        losses = losses * (1 - smoothing) - even.mean(axis=1) * counts * smoothing
    return losses.sum() / share.sum() if reduction == "mean" else losses.sum()
'''
SOFT_CLASS_LOSS = '''
def soft_class_loss(
    logp: Array, p: Array, weight: Any = None, smoothing: float = 0.0, reduction: str = "mean"
) -> Array:
    """The cross entropy of probabilities of every class."""
    p = p * (1 - smoothing) + smoothing / logp.shape[1]
    if weight is not None:
        p = p * jnp.array(weight, logp.dtype).reshape(-1, *[1] * (logp.ndim - 2))
    losses = -(p * logp).sum(axis=1)
    return losses.mean() if reduction == "mean" else losses.sum()
'''
CLIP = '''
def clip_by_norm(limit: float) -> optax.GradientTransformation:
    """Keeps the norm of all gradients together below a limit."""

    def clip(gradients: Any, params: Any) -> Any:
        factor = jnp.minimum(limit / (optax.global_norm(gradients) + 1e-6), 1)
        return jax.tree.map(lambda g: g * factor, gradients)

    return optax.stateless(clip)
'''


def penalty_call(penalty: Penalty, weights: str) -> str:
    """A regularisation term; `weights` is what goes through the weights that it is of."""
    if penalty.power == 1:
        return f"{penalty.factor!r} * sum(jnp.abs(w).sum() for w in {weights})"
    return f"{penalty.factor / 2!r} * sum(jnp.square(w).sum() for w in {weights})"


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
    return isinstance(optimizer, Adam | AdamW | LAMB) or is_own(optimizer)


def is_own(optimizer: Any) -> bool:
    """Whether optax lacks it, so that it is printed."""
    return type(optimizer) in OWN and not (isinstance(optimizer, SGD) and not optimizer.dampening)


def decays(optimizer: Any, groups: Mapping[Any, Sequence[str]], names: Callable[[Sequence[str]], str]) -> list[str]:
    """Weight decay, of all parameters or by groups; `names` is how a group is written."""
    if not groups:
        return [f"optax.add_decayed_weights({optimizer.weight_decay!r})"] if optimizer.weight_decay else []
    by_decay: dict[float, list[str]] = {}
    for rule, members in groups.items():
        by_decay.setdefault(rule.decay, []).extend(members)
    return [
        f"optax.add_decayed_weights({decay!r}, mask=partial(among, {names(members)}))"
        for decay, members in by_decay.items()
        if decay
    ]
