"""Recurrent layers: `nn.RNN`, `nn.GRU` and `nn.LSTM` where they mean the same, else a scan over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.weights import Part
from onward.backends.shared.rnn import activations, scan, stacked_parts, trained_half
from onward.backends.torch.target import F, nn, ops, rule, torch
from onward.backends.torch.window import typed
from onward.spec.rnn import GATES, Recurrence, Stacked

Array = np.ndarray[Any, Any]

GATE_ORDER = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}
"""Where PyTorch's gates stand among ONNX's: GRU r, z, n of z, r, h; LSTM i, f, g, o of i, o, f, c."""

_PLAIN_ACTIVATIONS = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softsign": F.softsign,
    "softplus": F.softplus,
}


def reordered(kind: str, direction: int, half: int | None = None) -> Callable[[Array], Array]:
    """Takes one direction of an ONNX weight (or half of its bias) to PyTorch's order of gates."""

    def transform(stacked: Array) -> Array:
        a = stacked[direction]
        if half is not None:
            a = a.reshape(2, -1)[half]
        return np.concatenate([np.split(a, GATES[kind])[gate] for gate in GATE_ORDER[kind]])

    return transform


def layer_parts(kind: str, directions: int, w: Expr, r: Expr, b: Expr | None, layer: int = 0) -> dict[str, Part]:
    """The tensors of one layer under the names PyTorch gives them."""
    parts = {}
    for d in range(directions):
        suffix = f"_l{layer}" + ("_reverse" if d else "")
        parts[f"weight_ih{suffix}"] = Part(w, reordered(kind, d), f"{kind}{d}")
        parts[f"weight_hh{suffix}"] = Part(r, reordered(kind, d), f"{kind}{d}")
        if b is not None:
            parts[f"bias_ih{suffix}"] = Part(b, reordered(kind, d, 0), f"{kind}{d}ih")
            parts[f"bias_hh{suffix}"] = Part(b, reordered(kind, d, 1), f"{kind}{d}hh", second_half=True)
    return parts


def _is_module(e: Emitter, w: Expr, r: Expr, b: Expr | None) -> bool:
    return all(e.const(t) is not None for t in (w, r, b) if t is not None)


def _results(e: Emitter, call: Expr, kind: str, with_states: bool) -> list[Expr]:
    """The output of PyTorch's module and, where they are read, its final states."""
    if not with_states:
        return [call[0]]
    y, final = e.unpack(call, 2)
    return [y, *(e.unpack(final, 2) if kind == "LSTM" else [final])]


def _layer(
    e: Emitter, x: Expr, w: Expr, r: Expr, b: Expr | None, states: list[Expr | None], p: Recurrence
) -> list[Expr]:
    """Outputs of an ONNX node that PyTorch's module computes: Y and the final states, in ONNX's layout."""
    kind, directions = p.kind, len(p.reverse)
    w_shape, r_shape = e.shape(w), e.shape(r)
    assert w_shape is not None and r_shape is not None
    options: dict[str, Any] = {}
    if p.nonlinearity != "tanh":
        options["nonlinearity"] = p.nonlinearity
    if b is None:
        options["bias"] = False
    if p.batch_first:
        options["batch_first"] = True
    if directions == 2:
        options["bidirectional"] = True
    constructor = getattr(nn, kind)(w_shape[2], r_shape[2], **options, **typed(e, w))
    module = e.module(constructor, kind.lower(), (), **layer_parts(kind, directions, w, r, b))
    time = 1 if p.batch_first else 0
    backwards = p.reverse == (True,)
    arguments: list[Any] = [x.flip(time) if backwards else x]
    if any(s is not None for s in states):
        batch = e.dim(x, 1 - time)
        zeros = torch.zeros(directions, batch, r_shape[2], device=e.device, **typed(e, w))
        given = [zeros if s is None else s.transpose(0, 1) if p.batch_first else s for s in states]
        arguments.append(tuple(given) if kind == "LSTM" else given[0])
    y, *last = _results(e, module(*arguments), kind, any(map(e.used, range(1, len(states) + 1))))
    if backwards:
        y = y.flip(time)
    if directions == 2:
        y = y.unflatten(2, (2, r_shape[2]))
        y = y if p.batch_first else y.transpose(1, 2)
    else:
        y = y.unsqueeze(2 if p.batch_first else 1)
    return [y, *(s.transpose(0, 1) if p.batch_first else s for s in last)]


@rule(*GATES)
def recurrent(
    e: Emitter,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    lengths: Expr | None = None,
    h0: Expr | None = None,
    c0: Expr | None = None,
    peepholes: Expr | None = None,
    *,
    p: Recurrence,
) -> Any:
    if p.is_usual and lengths is None and peepholes is None and _is_module(e, w, r, b):
        return _layer(e, x, w, r, b, [h0, c0] if p.kind == "LSTM" else [h0], p)
    half = trained_half(e, b)
    if half is not None:
        weight, zeros = half
        b = F.pad(weight, (0, zeros))
    return scan(e, (x, w, r, b, lengths, h0, c0, peepholes), activations(p, _PLAIN_ACTIVATIONS), p)


@rule(*(f"onward::{kind}" for kind in GATES))
def stacked(e: Emitter, x: Expr, lengths: Expr | None, *inputs: Expr | None, p: Stacked) -> list[Expr]:
    initial, tensors = inputs[: p.states], inputs[p.states :]
    options = {
        "num_layers": (p.num_layers, 1),
        "nonlinearity": (p.nonlinearity, "tanh"),
        "bias": (bool(p.bias), True),
        "batch_first": (bool(p.batch_first), False),
        "bidirectional": (bool(p.bidirectional), False),
    }
    given = {name: value for name, (value, default) in options.items() if value != default}
    first = tensors[0]
    assert first is not None
    constructor = getattr(nn, p.kind)(p.input_size, p.hidden_size, **given, **typed(e, first))
    module = e.module(constructor, p.kind.lower(), (), **stacked_parts(tensors, p))
    start = [] if initial[0] is None else [initial if p.kind == "LSTM" else initial[0]]
    call = module(x, *start) if lengths is None else ops.run_packed(module, x, lengths, *start)
    return _results(e, call, p.kind, any(map(e.used, range(1, 1 + p.states))))
