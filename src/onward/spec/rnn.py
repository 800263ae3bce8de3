"""What RNN, GRU and LSTM nodes mean: directions, activations with their numbers, and gate order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import onnx_ir as ir

from onward.errors import InvalidModelError, UnsupportedError
from onward.spec.meaning import Spec, attributes, means

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


@means(*GATES)
@dataclass(frozen=True)
class Recurrence(Spec):
    """A recurrent node. `reverse` and `activations` have one entry for each direction."""

    kind: str
    reverse: tuple[bool, ...]
    activations: tuple[tuple[Activation, ...], ...]
    clip: float | None
    batch_first: bool
    input_forget: bool
    """The forget gate of an LSTM is 1 less its input gate."""
    reset_after: bool
    """The reset gate of a GRU acts on what the state has been multiplied to, not on the state."""

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        kind, given = node.op_type, attributes(node)
        reverse = _directions(kind, given.get("direction", "forward"))
        return cls(
            kind,
            reverse,
            _activations(kind, len(reverse), given),
            given.get("clip") or None,
            bool(given.get("layout", 0)),
            bool(given.get("input_forget", 0)),
            bool(given.get("linear_before_reset", 0)),
        )

    @property
    def has_default_activations(self) -> bool:
        """Whether each direction uses the default activations."""
        default = tuple(Activation(name) for name in _DEFAULT_ACTIVATIONS[self.kind])
        return all(used == default for used in self.activations)

    @property
    def nonlinearity(self) -> str | None:
        """What frameworks call so: that of an RNN where it is the same in each direction."""
        names = {used[-1].name for used in self.activations}
        return names.pop() if len(names) == 1 else None

    @property
    def is_usual(self) -> bool:
        """Whether this is a layer as frameworks have it, lengths and peepholes aside."""
        if self.clip is not None or self.input_forget or (self.kind == "GRU" and not self.reset_after):
            return False
        return self.has_default_activations or (self.kind == "RNN" and self.nonlinearity == "relu")


@means(*(f"onward::{kind}" for kind in GATES))
@dataclass(frozen=True)
class Stacked(Spec):
    """A module of several layers, as `fuse_rnn` finds it: all weights in PyTorch's own form."""

    kind: str
    input_size: int
    hidden_size: int
    num_layers: int
    bidirectional: int
    batch_first: int
    bias: int
    nonlinearity: str = "tanh"

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        return cls(node.op_type, **attributes(node))

    @property
    def states(self) -> int:
        """How many states there are: an LSTM has cells as well."""
        return 2 if self.kind == "LSTM" else 1


def _directions(kind: str, direction: str) -> tuple[bool, ...]:
    """Whether each direction goes backwards."""
    reverses = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if direction not in reverses:
        raise InvalidModelError(f"{kind}: direction is {direction!r}, not forward, reverse or bidirectional")
    return reverses[direction]


def _activations(kind: str, directions: int, given: Mapping[str, Any]) -> tuple[tuple[Activation, ...], ...]:
    """Those of each direction; alphas and betas go to the activations that take one, in order."""
    default = _DEFAULT_ACTIVATIONS[kind]
    names = [n.lower() for n in given.get("activations") or list(default) * directions]
    if len(names) < len(default) * directions:
        raise InvalidModelError(f"{kind}: it has {len(names)} activations for {directions} direction(s)")
    alphas, betas = (iter(given.get(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    found = []
    for name in names[: len(default) * directions]:
        if name not in _NUMBERS:
            raise UnsupportedError(f"{kind}: activation {name!r} is not known")
        numbers = (next(source, number) for source, number in zip((alphas, betas), _NUMBERS[name], strict=False))
        found.append(Activation(name, tuple(numbers)))
    size = len(default)
    return tuple(tuple(found[d * size : (d + 1) * size]) for d in range(directions))
