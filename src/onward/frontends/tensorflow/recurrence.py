"""Loops that are recurrent layers: LSTM, GRU and simple cells, found by what a round computes.

A round is read backwards from the states that it leaves. What comes before an activation is a sum of products of the
step and the state with constant matrices, however the graph splits, slices and joins it: these sums are followed as
numbers, so that the gates come out whatever their order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.tensorflow.affine import Affine, Reader, Unread, source
from onward.frontends.tensorflow.rules.rnn import Activation, Layer, Series
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor

ACTIVATIONS = {"Sigmoid", "Tanh", "Relu", "Softsign", "Softplus"}
SPREADING = {"Tile", "Expand", "Identity"}


def recurrent(
    op: Writer, body: ir.Graph, goes: Tensor, initial: Sequence[Tensor], last: Collection[int] = ()
) -> list[Tensor] | None:
    """The results of a loop, states and then what each round gives out, if it is a recurrent layer; else None.

    `goes` says whether there is a first round, `initial` are the states before it; of what is given out at the places
    `last`, only the last round counts.
    """
    if not initial or any(state.dtype == ir.DataType.DOUBLE for state in initial):
        return None
    try:
        results = _Loop(op, body, goes, initial, last).results()
    except Unread:
        return None
    body.outputs.clear()
    for node in reversed(list(body)):  # so that nothing counts as a reader of the weights
        body.remove(node, safe=True)
    return results


Gate = tuple[str, Affine]
"""An activation, and what it is of."""


@dataclass
class _Loop:
    op: Writer
    body: ir.Graph
    goes: Tensor
    initial: Sequence[Tensor]
    last: Collection[int]
    masks: list[ir.Value] = field(default_factory=list)
    zeroed: set[ir.Value] = field(default_factory=set)
    """States that a step that is left out makes zero."""

    def __post_init__(self) -> None:
        self.states = list(self.body.inputs[2:])
        count = len(self.states)
        self.left = [source(value) for value in self.body.outputs[1 : 1 + count]]
        self.given_out = [source(value) for value in self.body.outputs[1 + count :]]
        self.counters = {self.states[i]: self.left[i] for i in range(count) if self._counts(i)}
        self.read = Reader(self.op, self.body, set(self.counters) | {self.body.inputs[0]})

    def results(self) -> list[Tensor]:
        op = self.op
        length = self._length()
        new = {s: self._unmasked(v, s) for s, v in zip(self.states, self.left, strict=True) if s not in self.counters}
        kept = [state for state in new if self._is_read(state)]
        layer, order, x = self._layer(kept, new)
        self._check_length(length, x)
        output = new[order[0]]
        places = {state: i for i, state in enumerate(self.states)}
        states = [self.initial[places[state]] for state in order]
        if all(self.read.zero(state.value) for state in states):
            states = []
        mask = self._mask(x)
        series = Series(op, layer, op.tensor(x), mask, states)
        results = []
        for state in self.states:
            if state in self.counters:
                results.append(op.tensor(length).cast(self.initial[places[state]].dtype))
            elif state in order and state not in self.zeroed:
                results.append(series.last[order.index(state)])
            elif new[state] is output and state in self.zeroed and state not in order:
                results.append(self._last(series, None))
            elif new[state] is output and mask is not None and state not in order:
                results.append(self._last(series, self._before(places[state])))
            else:
                raise Unread
        for i, value in enumerate(self.given_out):
            before = self._before_first(value, output, places)
            if i in self.last:
                results.append(op.unsqueeze(self._last(series, before), [0]))
            else:
                results.append(series.steps(zero=True) if before is None else series.steps(before))
        return results

    def _last(self, series: Series, before: Tensor | int | None) -> Tensor:
        if before is None:
            return self.op.Gather(series.steps(zero=True), self.op.index(-1), axis=0)
        return series.last_step(before)

    def _counts(self, i: int) -> bool:
        """Whether a state begins at zero and goes up by one."""
        start, made = self.op.known(self.initial[i]), self.left[i].producer()
        if start is None or start.size != 1 or int(start.reshape(())) != 0 or self.initial[i].rank != 0:
            return False
        if made is None or made.op_type != "Add":
            return False
        steps = [value for value in made.inputs if value is not None and source(value) is not self.states[i]]
        known = self.op.known(self.op.tensor(steps[0])) if len(steps) == 1 else None
        return known is not None and known.size == 1 and int(known.reshape(())) == 1

    def _length(self) -> ir.Value:
        """The number of rounds: every test is whether a counter is below it."""
        after = {result: state for state, result in self.counters.items()}
        bounds: list[ir.Value] = []
        for test in _conjuncts(source(self.body.outputs[0])):
            counter, bound = _pair(test, "Less")
            if counter not in after or bound.producer() in self.read.nodes:
                raise Unread
            bounds.append(bound)
        known = self.op.known(self.goes)
        if known is None:
            for test in _conjuncts(source(self.goes.value)):
                start, bound = _pair(test, "Less")
                zero = self.op.known(self.op.tensor(start))
                if zero is None or zero.size != 1 or int(zero.reshape(())) != 0 or not self._same(bound, bounds[0]):
                    raise Unread
        elif not bool(known):
            raise Unread
        if not bounds or not all(self._same(bound, bounds[0]) for bound in bounds):
            raise Unread
        return bounds[0]

    def _same(self, a: ir.Value, b: ir.Value) -> bool:
        one, other = self.op.known(self.op.tensor(a)), self.op.known(self.op.tensor(b))
        if one is not None and other is not None:
            return bool(np.array_equal(one.reshape(-1), other.reshape(-1)))
        return source(a) is source(b)

    def _check_length(self, length: ir.Value, x: ir.Value) -> None:
        """The rounds must be as many as there are steps in the series."""
        known = self.op.known(self.op.tensor(length))
        if known is not None:
            if x.shape is None or x.shape[0] != int(known.reshape(())):
                raise Unread
        elif self.op.size_of(self.op.tensor(length)) not in ((x, 0), (self._forwards(x), 0)):
            raise Unread

    def _forwards(self, x: ir.Value) -> ir.Value:
        """Of a series that was turned round, the one before, which is as long."""
        made = x.producer()
        if made is None or made.op_type != "Slice" or len(made.inputs) != 5 or made.inputs[0] is None:
            return x
        starts, ends, _, steps = (None if v is None else self.read.constant(v) for v in made.inputs[1:])
        if starts is None or ends is None or steps is None or not (steps == -1).all():
            return x
        whole = (starts == -1).all() and (ends < -FAR).all()
        return source(made.inputs[0]) if whole else x

    def _unmasked(self, value: ir.Value, state: ir.Value) -> ir.Value:
        """What a round computes, where a step that is left out keeps the state as it was, or makes it zero."""
        made = value.producer()
        if made is None or made.op_type != "Where":
            return value
        mask, new, old = (source(v) for v in made.inputs if v is not None)
        if old is not state and not self.read.zero(old):
            raise Unread
        if old is not state:
            self.zeroed.add(state)
        self.masks.append(self._mask_source(mask))
        return new

    def _mask_source(self, value: ir.Value) -> ir.Value:
        """The mask of the whole series, time first, with a last axis of one, of which a round takes one step."""
        made = value.producer()
        while made is not None and made.op_type in SPREADING and made.inputs[0] is not None:
            value = made.inputs[0]
            made = value.producer()
        step = self.read.step(value)
        if step is None or value.dtype != ir.DataType.BOOL or step.shape is None:
            raise Unread
        if step.shape.rank() != 3 or step.shape[2] != 1:
            raise Unread
        return step

    def _mask(self, x: ir.Value) -> Tensor | None:
        """Batch first."""
        if not self.masks:
            return None
        if any(mask is not self.masks[0] for mask in self.masks):
            raise Unread
        sizes = [None if value.shape is None else value.shape[0] for value in (self.masks[0], x)]
        if len(self.masks) < len(self.states) - len(self.counters) or (None not in sizes and sizes[0] != sizes[1]):
            raise Unread
        op = self.op
        return op.squeeze(op.transpose(op.tensor(self.masks[0]), [1, 0, 2]), [2])

    def _is_read(self, state: ir.Value) -> bool:
        """Whether a round computes with a state, and does not just keep it."""
        return any(node.op_type != "Where" or place != 2 for node, place in state.uses())

    def _before_first(self, value: ir.Value, output: ir.Value, places: dict[ir.Value, int]) -> Tensor | int | None:
        """What rounds give out as long as all steps are left out; None where every such step gives zero."""
        if value is output and not self.masks:
            return 0
        made = value.producer()
        if not self.masks or made is None or made.op_type != "Where":
            raise Unread
        mask, new, old = (source(v) for v in made.inputs if v is not None)
        if new is not output or self._mask_source(mask) is not self.masks[0]:
            raise Unread
        if old in places and old not in self.zeroed and self._unmasked(self.left[places[old]], old) is output:
            return self._before(places[old])
        if self.read.zero(old):
            return None
        raise Unread

    def _before(self, place: int) -> Tensor | int:
        """A state before the first round."""
        return 0 if self.read.zero(self.initial[place].value) else self.initial[place]

    def _layer(self, kept: list[ir.Value], new: dict[ir.Value, ir.Value]) -> tuple[Layer, list[ir.Value], ir.Value]:
        """The layer, its states in ONNX's order, and the series that it is applied to."""
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
        return layer, kept, self.read.series()

    def _lstm(self, hidden: ir.Value, cell: ir.Value, h: ir.Value, c: ir.Value) -> Layer:
        out, shown = _pair(h, "Mul")
        if source(_input(shown, 0)) is not c:
            out, shown = shown, out
        last = shown.producer()
        if last is None or source(_input(shown, 0)) is not c or last.op_type not in ACTIVATIONS:
            raise Unread
        remembered, learned = (_pair(part, "Mul") for part in _pair(c, "Add"))
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
        kept, made = (_pair(part, "Mul") for part in _pair(h, "Add"))
        if hidden not in kept:
            kept, made = made, kept
        if hidden not in kept:
            raise Unread
        update = kept[0] if kept[1] is hidden else kept[1]
        rest, candidate = made if self._is_rest(made[0], update) else made[::-1]
        if not self._is_rest(rest, update):
            raise Unread
        z, new = self._gate(update), self._gate(candidate)
        inner = [key for key in new[1].terms if key is not hidden and not self.read.is_series(key)]
        if len(inner) != 1 or hidden in new[1].terms:
            raise Unread
        reset, state = _pair(inner[0], "Mul")
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
        held = self.read.stored(None, bias) if bias.any() else None
        if held is not None and inner is None:
            held = self.op.half_trained(held)
        named: tuple[Activation, ...] = tuple((name, None, None) for name in activations)
        return Layer(
            kind,
            units,
            named,
            self.read.stored(x, kernel),
            self.read.stored(hidden, recurrent),
            held,
            after and kind == "GRU",
        )

    def _is_rest(self, value: ir.Value, update: ir.Value) -> bool:
        """Whether it is one minus the gate."""
        made = value.producer()
        if made is None or made.op_type != "Sub":
            return False
        one, gate = made.inputs
        known = None if one is None else self.op.known(self.op.tensor(one))
        return known is not None and bool((known == 1).all()) and gate is not None and source(gate) is update

    def _is_gate(self, value: ir.Value) -> bool:
        try:
            self._gate(value)
        except Unread:
            return False
        return True

    def _gate(self, value: ir.Value) -> Gate:
        made = value.producer()
        if made is not None and made.op_type in ACTIVATIONS:
            return made.op_type, self.read.affine(source(_input(value, 0)))
        if made is not None and made.op_type in ("Split", "Slice"):
            name, whole = self._gate(source(_input(value, 0)))
            start, stop = self.read.columns(value, whole.width)
            return name, whole.part(start, stop)
        raise Unread


def _pair(value: ir.Value, op_type: str) -> tuple[ir.Value, ir.Value]:
    made = value.producer()
    if made is None or made.op_type != op_type:
        raise Unread
    a, b = made.inputs
    assert a is not None and b is not None
    return source(a), source(b)


def _input(value: ir.Value, index: int) -> ir.Value:
    made = value.producer()
    found = None if made is None or not made.inputs else made.inputs[index]
    if found is None:
        raise Unread
    return found


def _conjuncts(value: ir.Value) -> Iterator[ir.Value]:
    made = value.producer()
    if made is not None and made.op_type == "And":
        for part in made.inputs:
            assert part is not None
            yield from _conjuncts(source(part))
    else:
        yield value
