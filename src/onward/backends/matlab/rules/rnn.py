"""Recurrent layers, by helpers that walk over time. Weights keep the order of gates that the file has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name, lift
from onward.backends.emit.expr import Sequence as Display
from onward.backends.matlab.target import ops, row, rule
from onward.backends.shared.layer_weights import owned
from onward.spec.rnn import GATES, Recurrence

HELPERS = {"RNN": ops.simple_rnn, "GRU": ops.gru, "LSTM": ops.lstm}
NOTHING = Name("[]")


@rule(*GATES)
def recurrent(
    e: Emitter, x: Expr, w: Expr, r: Expr, b: Expr | None = None, *others: Expr | None, p: Recurrence
) -> list[Expr | None]:
    weights = owned(e, p.kind.lower(), weight=w, recurrent_weight=r, bias=b)
    lengths, *states = (*others, None, None, None, None)[: 4 if p.kind == "LSTM" else 2]
    peepholes = states[2:]
    given = [_turned(p, x), *weights, lengths, *(_turned(p, state) for state in states[:2]), *peepholes]
    call = HELPERS[p.kind](*(NOTHING if each is None else each for each in given), *_options(p))
    only = not (e.used(1) or e.used(2))
    found = [call] if only else list(e.unpack(call, 3 if p.kind == "LSTM" else 2))
    return [_turned(p, y, () if i else (1, 3, 4, 2)) for i, y in enumerate(found)]


def _turned(p: Recurrence, x: Expr | None, order: Sequence[int] = ()) -> Expr | None:
    """From the layout with the batch first to that with the steps first, or back."""
    return x if x is None or not p.batch_first else Name("permute")(x, row(order or (1, 3, 2)))


def _options(p: Recurrence) -> list[Any]:
    """What the helper is told of the layer: directions, a bound, what its kind may have, activations."""
    found: list[Any] = [row(p.reverse), NOTHING if p.clip is None else p.clip]
    if p.kind != "RNN":
        found.append(p.input_forget if p.kind == "LSTM" else p.reset_after)
    if not p.has_default_activations:
        used = [activation for direction in p.activations for activation in direction]
        numbers = [(*activation.numbers, 0.0, 0.0)[:2] for activation in used]
        found += [_texts([activation.name for activation in used]), _columns(numbers)]
    return found


def _texts(names: Sequence[str]) -> Expr:
    return Display(tuple(map(lift, names)))


def _columns(pairs: Sequence[tuple[float, ...]]) -> Expr:
    """A column for each pair."""
    numbers = Display(tuple(lift(number) for pair in pairs for number in pair))
    return Name("reshape")(numbers, 2, NOTHING)
