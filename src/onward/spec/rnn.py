"""What RNN, GRU and LSTM nodes mean: directions, activations with their numbers, and gate order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onward.errors import InvalidModelError, UnsupportedError

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
"""How many gates' rows a weight holds: GRU z, r, h; LSTM i, o, f, c."""

_DEFAULT_ACTIVATIONS = {
    "RNN": ("tanh",),
    "GRU": ("sigmoid", "tanh"),
    "LSTM": ("sigmoid", "tanh", "tanh"),
}
_NUMBERS: dict[str, tuple[float, ...]] = {
    "relu": (),
    "tanh": (),
    "sigmoid": (),
    "softsign": (),
    "softplus": (),
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
}
"""Each activation's alpha and beta, as many as it takes, by default."""


@dataclass(frozen=True)
class Activation:
    """A function by its lower-case ONNX name, with alpha and beta as far as it takes them."""

    name: str
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Recurrence:
    """A recurrent node. `reverse` and `activations` have one entry for each direction."""

    kind: str
    reverse: tuple[bool, ...]
    activations: tuple[tuple[Activation, ...], ...]
    clip: float | None
    batch_first: bool

    @property
    def has_default_activations(self) -> bool:
        """Whether each direction uses the default activations."""
        default = tuple(Activation(name) for name in _DEFAULT_ACTIVATIONS[self.kind])
        return all(used == default for used in self.activations)

    @property
    def is_default(self) -> bool:
        """Whether each direction uses the default activations, unclipped."""
        return self.clip is None and self.has_default_activations


def recurrence(
    kind: str,
    *,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    layout: int = 0,
) -> Recurrence:
    """The meaning of a node's attributes; alphas and betas go to the activations that take one, in order."""
    reverses = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if direction not in reverses:
        raise InvalidModelError(f"{kind}: direction is {direction!r}, not forward, reverse or bidirectional")
    reverse = reverses[direction]
    default = _DEFAULT_ACTIVATIONS[kind]
    names = [n.lower() for n in activations] if activations else list(default) * len(reverse)
    if len(names) < len(default) * len(reverse):
        raise InvalidModelError(f"{kind}: {len(names)} activations for {len(reverse)} direction(s)")
    alphas, betas = iter(activation_alpha or ()), iter(activation_beta or ())
    found = []
    for name in names[: len(default) * len(reverse)]:
        if name not in _NUMBERS:
            raise UnsupportedError(f"{kind}: unknown activation {name!r}")
        given = (next(source, number) for source, number in zip((alphas, betas), _NUMBERS[name], strict=False))
        found.append(Activation(name, tuple(given)))
    size = len(default)
    grouped = tuple(tuple(found[d * size : (d + 1) * size]) for d in range(len(reverse)))
    return Recurrence(kind, reverse, grouped, clip if clip else None, bool(layout))
