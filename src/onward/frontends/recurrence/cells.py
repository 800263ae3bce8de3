"""Cells of recurrent layers, LSTM, GRU and simple ones, found by what a round of a loop computes.

A round is read backwards from the states that it leaves. What comes before an activation is a sum of products of the
step and the state with constant matrices, however the graph splits, slices and joins it: these sums are followed as
numbers, so that the gates come out whatever their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.recurrence.affine import Affine, Reader, Unread, source
from onward.frontends.recurrence.layer import Activation, Layer
from onward.graph.replace import permutation

ACTIVATIONS = {"Sigmoid", "Tanh", "Relu", "Softsign", "Softplus"}
Gate = tuple[str, Affine]
"""An activation, and what it is of."""


@dataclass
class Cells:
    """Reads cells of the body of a loop."""

    read: Reader

    def layer(
        self, kept: Sequence[ir.Value], new: Mapping[ir.Value, ir.Value]
    ) -> tuple[Layer, list[ir.Value], ir.Value]:
        """The layer, its states in ONNX's order, and the series that it is applied to.

        `kept` are the states that a round computes with, `new` says what it makes of each.
        """
        if len(kept) == 2:
            for hidden, cell in (kept, kept[::-1]):
                try:
                    layer = self._lstm(hidden, cell, new[hidden], new[cell])
                    return layer, [hidden, cell], self.read.series()
                except Unread:
                    self.read.forget()
            raise Unread
        if len(kept) != 1:
            raise Unread
        (hidden,) = kept
        made = new[hidden].producer()
        layer = (self._gru if made is not None and made.op_type == "Add" else self._simple)(hidden, new[hidden])
        return layer, [hidden], self.read.series()

    def _lstm(self, hidden: ir.Value, cell: ir.Value, h: ir.Value, c: ir.Value) -> Layer:
        out, shown = pair(h, "Mul")
        if source(_input(shown, 0)) is not c:
            out, shown = shown, out
        last = shown.producer()
        if last is None or source(_input(shown, 0)) is not c or last.op_type not in ACTIVATIONS:
            raise Unread
        remembered, learned = (pair(part, "Mul") for part in pair(c, "Add"))
        if cell not in remembered:
            remembered, learned = learned, remembered
        if cell not in remembered:
            raise Unread
        forget = self._gate(remembered[0] if remembered[1] is cell else remembered[1])
        o = self._gate(out)
        i, g = (self._gate(part) for part in learned)
        if i[0] != o[0]:
            i, g = g, i
        if not i[0] == forget[0] == o[0]:
            raise Unread
        return self._made("LSTM", hidden, [gate[1] for gate in (i, o, forget, g)], (o[0], g[0], last.op_type))

    def _gru(self, hidden: ir.Value, h: ir.Value) -> Layer:
        z, candidate = self._mixed(hidden, h)
        new = self._gate(candidate)
        inner = [key for key in new[1].terms if key is not hidden and not self.read.is_series(key)]
        if len(inner) != 1 or hidden in new[1].terms:
            raise Unread
        reset, state = pair(inner[0], "Mul")
        after = new[1].terms[inner[0]] is None
        recurrent = self.read.affine(state)
        if not self._is_gate(reset) or set(recurrent.terms) != {hidden}:
            reset, state = state, reset
            recurrent = self.read.affine(state)
        if set(recurrent.terms) != {hidden} or (not after and state is not hidden):
            raise Unread
        r = self._gate(reset)
        if r[0] != z[0]:
            raise Unread
        outside = Affine({k: v for k, v in new[1].terms.items() if k is not inner[0]}, new[1].bias, new[1].width)
        if after:
            matrix, bias = recurrent.terms[hidden], recurrent.bias
        else:
            matrix, bias = new[1].terms[inner[0]], np.zeros(new[1].width, np.float32)
            self.read.note(hidden, inner[0])
        gates = [z[1], r[1], outside.plus(Affine({hidden: matrix}, np.zeros_like(bias), outside.width))]
        return self._made("GRU", hidden, gates, (z[0], new[0]), inner=bias, after=after)

    def _mixed(self, hidden: ir.Value, h: ir.Value) -> tuple[Gate, ir.Value]:
        """The gate that keeps the state, and what comes in where it does not: `z h + (1 - z) n`, in any of its forms.

        Where a gate lets in what is new, `z n + (1 - z) h`, the one that keeps is a sigmoid of the negative.
        """
        one, other = pair(h, "Add")
        for base, moved in ((one, other), (other, one)):
            product = moved.producer()
            if product is None or product.op_type != "Mul":
                continue
            for gate, difference in (pair(moved, "Mul"), pair(moved, "Mul")[::-1]):
                sides = _sides(difference)
                if sides is not None and sides[1] is base and hidden in sides:  # base + gate (other - base)
                    keeps = self._gate(gate) if sides[0] is hidden else self._opposite(gate)
                    return keeps, base if sides[0] is hidden else sides[0]
        kept, made = pair(one, "Mul"), pair(other, "Mul")
        if hidden not in kept:
            kept, made = made, kept
        if hidden not in kept:
            raise Unread
        keeping = kept[0] if kept[1] is hidden else kept[1]
        for rest, candidate in (made, made[::-1]):
            if self._is_rest(rest, keeping):
                return self._gate(keeping), candidate
            if self._is_rest(keeping, rest):
                return self._opposite(rest), candidate
        raise Unread

    def _opposite(self, value: ir.Value) -> Gate:
        """One minus a gate, as a gate."""
        name, whole = self._gate(value)
        if name != "Sigmoid":
            raise Unread
        return name, whole.negative()

    def _simple(self, hidden: ir.Value, h: ir.Value) -> Layer:
        activation, gate = self._gate(h)
        return self._made("RNN", hidden, [gate], (activation,))

    def _made(
        self,
        kind: str,
        hidden: ir.Value,
        gates: list[Affine],
        activations: tuple[str, ...],
        inner: npt.NDArray[Any] | None = None,
        after: bool = False,
    ) -> Layer:
        units, x = gates[0].width, self.read.series()
        if any(set(gate.terms) - {x, hidden} or gate.width != units for gate in gates) or not units:
            raise Unread
        size = self.read.width(x)
        kernel, recurrent = (
            np.concatenate([gate.matrix(key, rows).T for gate in gates])[None]
            for key, rows in ((x, size), (hidden, units))
        )
        ours = np.concatenate([gate.bias for gate in gates])
        theirs = np.zeros_like(ours)
        if inner is not None:
            theirs[-units:] = inner
        bias = np.concatenate([ours, theirs])[None]
        name = self._path()
        held = self.read.stored(None, bias, f"{name}bias") if bias.any() or self.read.weights.get(None) else None
        if held is not None and inner is None:
            held = self.read.op.half_trained(held)
        named: tuple[Activation, ...] = tuple((name, None, None) for name in activations)
        return Layer(
            kind,
            units,
            named,
            self.read.stored(x, kernel, f"{name}weight_ih"),
            self.read.stored(hidden, recurrent, f"{name}weight_hh"),
            held,
            after and kind == "GRU",
        )

    def _path(self) -> str:
        """Where all weights of the cell are: what their names begin with."""
        names = [value.name or "" for values in self.read.weights.values() for value in values]
        first, last = min(names, default=""), max(names, default="")
        same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        return first[: max(first.rfind(".", 0, same), first.rfind("/", 0, same)) + 1] or self.read.op.scope

    def _is_rest(self, value: ir.Value, update: ir.Value) -> bool:
        """Whether it is one minus the gate."""
        sides = _sides(value)
        known = None if sides is None else self.read.constant(sides[0])
        return known is not None and bool((known == 1).all()) and sides is not None and sides[1] is update

    def _is_gate(self, value: ir.Value) -> bool:
        try:
            self._gate(value)
        except Unread:
            return False
        return True

    def _gate(self, value: ir.Value, across: bool = False) -> Gate:
        made = value.producer()
        if made is not None and made.op_type in ACTIVATIONS:
            return made.op_type, self.read.affine(source(_input(value, 0)), across)
        if made is not None and made.op_type == "Transpose" and permutation(made) == [1, 0]:
            return self._gate(source(_input(value, 0)), not across)
        if made is not None and made.op_type in ("Split", "Slice"):
            name, whole = self._gate(source(_input(value, 0)), across)
            return name, whole.part(*self.read.columns(value, whole.width, across))
        raise Unread


def pair(value: ir.Value, op_type: str) -> tuple[ir.Value, ir.Value]:
    """What a node of two inputs is of."""
    made = value.producer()
    if made is None or made.op_type != op_type:
        raise Unread
    a, b = made.inputs
    assert a is not None and b is not None
    return source(a), source(b)


def _sides(value: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """Of a difference."""
    made = value.producer()
    return pair(value, "Sub") if made is not None and made.op_type == "Sub" else None


def _input(value: ir.Value, index: int) -> ir.Value:
    made = value.producer()
    found = None if made is None or not made.inputs else made.inputs[index]
    if found is None:
        raise Unread
    return found
