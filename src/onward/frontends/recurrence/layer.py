"""Recurrent layers as ONNX's LSTM, GRU and RNN, with or without steps that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onward.frontends.writer import Writer
from onward.graph.build import Tensor

Activation = tuple[str, float | None, float | None]
"""ONNX's name of one, with alpha and beta."""


@dataclass(frozen=True)
class Layer:
    """What a node of ONNX needs to know, the gates in ONNX's order."""

    kind: str
    units: int
    activations: tuple[Activation, ...]
    kernel: Tensor
    recurrent: Tensor
    bias: Tensor | None
    resets_after: bool = False
    """GRU: whether the reset gate comes after the product with the state."""
    backwards: bool = False
    """Whether it reads the series from the end; what it gives has the order of the series."""


class Series:
    """A layer applied to a series, time first; steps where `mask`, batch first, is false are left out.

    What counts is moved to the front, and the node gets lengths.
    """

    def __init__(
        self, op: Writer, layer: Layer, x: Tensor, mask: Tensor | None = None, states: Sequence[Tensor] = ()
    ) -> None:
        self._op, self._mask = op, mask
        lengths = None
        if mask is not None:
            kept = mask.cast(ir.DataType.INT64)
            self._count = op.CumSum(kept, op.index(1))
            lengths = op.reduced("ReduceSum", kept, [1], keepdims=False).cast(ir.DataType.INT32)
            x = op.transpose(_gathered(op, op.transpose(x, [1, 0, 2]), _first(op, mask)), [1, 0, 2])
        y, *last = _node(op, layer, x, lengths, states)
        self._whole = op.squeeze(y, [1])
        self.last = [op.squeeze(state, [0]) for state in last]
        """The states at the end."""

    def steps(self, before: Tensor | int = 0, zero: bool = False) -> Tensor:
        """The output of every step, time first.

        One that is left out repeats the one before, and `before` where there is none; or it is zero.
        """
        op = self._op
        if self._mask is None:
            return self._whole
        found = _gathered(op, op.transpose(self._whole, [1, 0, 2]), op.Max(self._count - op.index(1), op.index(0)))
        there = op.unsqueeze(self._mask if zero else self._count > 0, [2])
        before = op.unsqueeze(before, [1]) if isinstance(before, Tensor) else before
        return op.transpose(op.where(there, found, before), [1, 0, 2])

    def last_step(self, before: Tensor | int = 0) -> Tensor:
        """The output of the last step that counts, `before` if none does."""
        op = self._op
        if self._mask is None:
            return self.last[0]
        any_left = op.reduced("ReduceMax", self._mask.cast(ir.DataType.INT32), [1], keepdims=True)
        return op.where(any_left > 0, self.last[0], before)


def _node(op: Writer, layer: Layer, x: Tensor, lengths: Tensor | None, states: Sequence[Tensor]) -> list[Tensor]:
    initial = [op.unsqueeze(state, [0]) for state in states]
    names, alphas, betas = zip(*layer.activations, strict=True)
    options: dict[str, Any] = {"hidden_size": layer.units, "activations": list(names)}
    if any(a is not None for a in alphas):
        options["activation_alpha"] = [a or 0.0 for a in alphas]
        options["activation_beta"] = [b or 0.0 for b in betas]
    if layer.resets_after:
        options["linear_before_reset"] = 1
    if layer.backwards:
        options["direction"] = "reverse"
    outputs = 3 if layer.kind == "LSTM" else 2
    return op.many(layer.kind, outputs, x, layer.kernel, layer.recurrent, layer.bias, lengths, *initial, **options)


def _first(op: Writer, mask: Tensor) -> Tensor:
    """For each row the places that count, in their order, and then the others."""
    steps = op.Gather(op.Shape(mask), op.index(1))
    places = op.unsqueeze(op.Range(op.index(0), steps, op.index(1)), [0])
    key = op.where(mask, places, places + steps)
    return op.many("TopK", 2, key, op.flat(steps), axis=1, largest=0, sorted=1)[1]


def _gathered(op: Writer, rows: Tensor, places: Tensor) -> Tensor:
    """Of [batch, time, features], for each row the steps at some places."""
    return op.GatherND(rows, op.unsqueeze(places, [2]), batch_dims=1)


def cleared(body: ir.Graph) -> None:
    """Empty the body of a loop that became a layer, so that nothing in it counts as a reader of the weights."""
    body.outputs.clear()
    for node in reversed(list(body)):
        body.remove(node, safe=True)
