"""Recurrent layers, as far as every backend writes them alike: calls of helpers that walk over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onward.backends.emit.arguments import leading, options
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.graph.trained import role
from onward.spec.rnn import GATES, Recurrence, Stacked

_HELPERS = {"RNN": ops.simple_rnn, "GRU": ops.gated_rnn, "LSTM": ops.lstm}


def scan(e: Emitter, inputs: Sequence[Expr | None], activations: Any, p: Recurrence) -> list[Expr | None]:
    """The results of a helper, called with only those options that are not its defaults."""
    call = _HELPERS[p.kind](
        *leading(*inputs),
        **options(
            activations=activations,
            reverse=None if p.reverse == (False,) else p.reverse,
            clip=p.clip,
            batch_first=p.batch_first,
            input_forget=p.kind == "LSTM" and p.input_forget,
            reset_after=p.kind == "GRU" and p.reset_after,
        ),
    )
    return results(e, call, 3 if p.kind == "LSTM" else 2)


def activations(p: Recurrence, plain: Mapping[str, Expr]) -> tuple[tuple[Expr, ...], ...]:
    """The functions of each direction: those that the framework has itself, by name, and else helpers."""
    return tuple(
        tuple(plain[of.name] if of.name in plain else ops.rnn_activation(of.name, *of.numbers) for of in used)
        for used in p.activations
    )


def trained_half(e: Emitter, bias: Expr | None) -> tuple[Expr, int] | None:
    """Of a bias whose second half is zeros that are not trained: its first half, and how many zeros there are."""
    if not isinstance(bias, Arg):
        return None
    found, array = role(bias._value), e.const(bias)
    if found is None or not found.by_half or array is None:
        return None
    size = array.shape[-1] // 2
    return e.weights.arranged(bias._value, lambda both: both[:, :size], "half"), size


def results(e: Emitter, call: Expr, count: int) -> list[Expr | None]:
    """Those of a call's results that are read."""
    used = [i for i in range(count) if e.used(i)]
    if len(used) == 1:
        return [call[i] if i in used else None for i in range(count)]
    return list(e.unpack(call, count))


def stacked_parts(tensors: Sequence[Expr | None], p: Stacked) -> dict[str, Expr | None]:
    """The tensors of several layers under the names that PyTorch gives them."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if p.bias else 2]
    suffixes = [f"_l{i}{end}" for i in range(p.num_layers) for end in ("", "_reverse")[: 1 + p.bidirectional]]
    return dict(zip((n + s for s in suffixes for n in names), tensors, strict=True))


def rules_without_modules(
    plain: Mapping[str, Expr], pad: Expr, owned: Callable[..., list[Expr | None]]
) -> dict[str, Rule]:
    """The rules of frameworks that have no recurrent modules, by their activations, `pad` and place of weights."""

    def recurrent(
        e: Emitter, x: Expr, w: Expr, r: Expr, b: Expr | None = None, *others: Expr | None, p: Recurrence
    ) -> list[Expr | None]:
        half = trained_half(e, b)
        if half is None:
            weights = owned(e, p.kind.lower(), weight=w, recurrent_weight=r, bias=b)
        else:
            bias, zeros = half
            weights = [*owned(e, p.kind.lower(), weight=w, recurrent_weight=r), pad(bias, ((0, 0), (0, zeros)))]
        named = None if p.has_default_activations else activations(p, plain)
        return scan(e, [x, *weights, *others], named, p)

    def stacked(e: Emitter, x: Expr, lengths: Expr | None, *inputs: Expr | None, p: Stacked) -> list[Expr | None]:
        initial, tensors = inputs[: p.states], inputs[p.states :]
        tensors = tuple(owned(e, p.kind.lower(), **stacked_parts(tensors, p)))
        size = 4 if p.bias else 2
        weights = [tuple(tensors[i : i + size]) for i in range(0, len(tensors), size)]
        keywords = options(
            bidirectional=bool(p.bidirectional),
            batch_first=bool(p.batch_first),
            activation=None if p.nonlinearity == "tanh" else plain[p.nonlinearity],
        )
        call = ops.recurrent_layers(p.kind, x, weights, *leading(lengths, *initial), **keywords)
        return results(e, call, 1 + p.states)

    return dict.fromkeys(GATES, recurrent) | {f"onward::{kind}": stacked for kind in GATES}
