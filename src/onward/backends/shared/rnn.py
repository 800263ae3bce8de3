"""Recurrent layers, as far as every backend writes them alike: calls of helpers that walk over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.backends.emit.arguments import leading, options
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.graph.trained import role
from onward.spec.rnn import Recurrence


def scan(
    e: Emitter, helper: Expr, meaning: Recurrence, inputs: Sequence[Expr | None], activations: Any, **flags: bool
) -> list[Expr | None]:
    """The results of a helper, called with only those options that are not its defaults."""
    call = helper(
        *leading(*inputs),
        **options(
            activations=activations,
            reverse=None if meaning.reverse == (False,) else meaning.reverse,
            clip=meaning.clip,
            batch_first=meaning.batch_first,
            **flags,
        ),
    )
    return results(e, call, 3 if meaning.kind == "LSTM" else 2)


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


def stacked_parts(
    tensors: Sequence[Expr | None], num_layers: int, bidirectional: int, bias: int
) -> dict[str, Expr | None]:
    """The tensors of several layers, as `fuse_rnn` lists them, under the names that PyTorch gives them."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if bias else 2]
    suffixes = [f"_l{i}{end}" for i in range(num_layers) for end in ("", "_reverse")[: 1 + bidirectional]]
    return dict(zip((n + s for s in suffixes for n in names), tensors, strict=True))
