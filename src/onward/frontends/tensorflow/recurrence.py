"""Loops of TensorFlow that are recurrent layers: the cell that a round computes, with steps that masks leave out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onward.frontends.recurrence.affine import Reader, Unread, source
from onward.frontends.recurrence.cells import Cells, pair
from onward.frontends.recurrence.layer import Series, cleared
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor

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
    cleared(body)
    return results


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
        self.read = Reader(self.op, self.body, self._step)

    def results(self) -> list[Tensor]:
        op = self.op
        length = self._length()
        new = {s: self._unmasked(v, s) for s, v in zip(self.states, self.left, strict=True) if s not in self.counters}
        kept = [state for state in new if self._is_read(state)]
        layer, order, x = Cells(self.read).layer(kept, new)
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

    def _step(self, value: ir.Value) -> ir.Value | None:
        """The series, time first, of which a value is the step of this round."""
        made = value.producer()
        if made not in self.read.nodes or made is None or made.op_type != "Gather":
            return None
        data, index = made.inputs
        if data is None or index is None or made.attributes.get_int("axis", 0) != 0:
            return None
        outside = data.producer() not in self.read.nodes and data not in self.body.inputs
        counts = source(index) in self.counters or source(index) is self.body.inputs[0]
        return data if outside and counts else None

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
            counter, bound = pair(test, "Less")
            if counter not in after or bound.producer() in self.read.nodes:
                raise Unread
            bounds.append(bound)
        known = self.op.known(self.goes)
        if known is None:
            for test in _conjuncts(source(self.goes.value)):
                start, bound = pair(test, "Less")
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
        step = self._step(value)
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


def _conjuncts(value: ir.Value) -> Iterator[ir.Value]:
    made = value.producer()
    if made is not None and made.op_type == "And":
        for part in made.inputs:
            assert part is not None
            yield from _conjuncts(source(part))
    else:
        yield value
