"""Branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.recurrence import recurrent
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.sequence import padded, stacked
from onward.frontends.tensorflow.values import (
    Collected,
    Complex,
    NotCollected,
    Reserved,
    Table,
    TensorList,
    Value,
    Variable,
)
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor

SWITCHES = {"Switch", "RefSwitch"}
"""How TensorFlow 1 sends a tensor into one of two branches."""


@rule("If", "StatelessIf")
def if_(op: Writer, condition: Tensor, *arguments: Value, then_branch: str, else_branch: str) -> Sequence[Value]:
    graph = op.operation.graph
    return chosen(
        op,
        truth(op, condition),
        lambda: op.translator.call(then_branch, graph, arguments),
        lambda: op.translator.call(else_branch, graph, arguments),
    )


@rule("Case", "StatelessCase")
def case(op: Writer, index: Tensor, *arguments: Value, branches: Sequence[str]) -> Sequence[Value]:
    graph = op.operation.graph
    return branched(op, index, [partial(op.translator.call, branch, graph, arguments) for branch in branches])


def branched(op: Writer, index: Tensor, branches: Sequence[Callable[[], Sequence[Value]]]) -> Sequence[Value]:
    """A chain of branches; an index of none of them takes the last."""

    def from_(i: int) -> Sequence[Value]:
        if i == len(branches) - 1:
            return branches[i]()
        return chosen(op, op.Equal(index, op.like(i, index)), branches[i], lambda: from_(i + 1))

    return from_(0)


def truth(op: Writer, condition: Tensor) -> Tensor:
    """A scalar as a truth value: numbers are true unless zero, tensors of more unless empty."""
    if condition.rank:
        return op.Size(condition) > op.index(0)
    return condition if condition.dtype == ir.DataType.BOOL else condition.cast(ir.DataType.BOOL)


def chosen(
    op: Writer, test: Tensor, then: Callable[[], Sequence[Value]], otherwise: Callable[[], Sequence[Value]]
) -> Sequence[Value]:
    known = op.known(test)
    if known is not None:
        return then() if bool(known) else otherwise()
    results: list[Sequence[Value]] = []
    bodies = []
    for write in (then, otherwise):
        graph = ir.Graph([], [], nodes=[], name=op.names.node("branch"))
        with op.inside(graph):
            results.append(write())
            for value in results[-1]:
                for tensor in _parts(op, value):
                    graph.outputs.append(op.Identity(tensor).value)
        bodies.append(graph)
    made = op.many("If", len(bodies[0].outputs), test, then_branch=bodies[0], else_branch=bodies[1])
    return _put_together(results[0], made)


def _parts(op: Writer, value: Value) -> list[Tensor]:
    """The tensors that a value is made of."""
    match value:
        case Tensor():
            return [value]
        case Complex():
            return [value.real, value.imaginary]
        case TensorList():
            return [value.stacked]
        case Reserved():
            return [stacked(op, value)]
        case Variable() | Table():
            return []
    raise UnsupportedError(f"a {type(value).__name__} as the result of a branch or a loop is not supported")


def _put_together(like: Sequence[Value], tensors: Sequence[Tensor]) -> list[Value]:
    """Values of the kinds of others, of the tensors they are made of."""
    rest = list(tensors)
    made: list[Value] = []
    for value in like:
        match value:
            case Complex():
                made.append(Complex(rest.pop(0), rest.pop(0)))
            case TensorList() | Reserved():
                made.append(TensorList(rest.pop(0)))
            case Variable() | Table():
                made.append(value)
            case _:
                made.append(rest.pop(0))
    return made


@rule("While", "StatelessWhile")
def while_(op: Writer, *arguments: Value, cond: str, body: str) -> Sequence[Value]:
    graph = op.operation.graph
    inner = op.translator.body(body, graph)
    same = enumerate(zip(inner.inputs, inner.outputs, strict=True))
    fixed = {i for i, (a, b) in same if source(b, {"Identity", *SWITCHES}) is a}
    carried = [i for i in range(len(arguments)) if i not in fixed and not isinstance(arguments[i], Variable | Table)]
    collecting = {i for i in carried if isinstance(arguments[i], Reserved)}
    whole = partial(op.translator.call, cond, graph), partial(op.translator.call, body, graph)
    shapes = [tensor.shape.as_list() if tensor.shape.rank is not None else None for tensor in inner.inputs]
    try:
        return Loop(op, arguments, *whole, shapes, carried, collecting).written()
    except NotCollected:
        return Loop(op, arguments, *whole, shapes, carried, set()).written()


def source(tensor: Any, through: Collection[str] = ("Identity",)) -> Any:
    """What a tensor is another name of."""
    while tensor.op.type in through:
        tensor = tensor.op.inputs[0]
    return tensor


@dataclass
class Loop:
    """A loop as long as a condition holds, which is given what the body is given."""

    op: Writer
    arguments: Sequence[Value]
    cond: Callable[[Sequence[Value]], Sequence[Value]]
    body: Callable[[Sequence[Value]], Sequence[Value]]
    shapes: Sequence[Sequence[int | None] | None]
    """What is known of the shapes that states have in every round."""
    carried: list[int]
    """The arguments that change."""
    collecting: set[int]
    """Lists to whose end each round puts one tensor: what ONNX calls scan outputs."""
    overwritten: set[int] = field(default_factory=set)

    def written(self) -> list[Value]:
        op = self.op
        kept = [i for i in self.carried if i not in self.collecting]
        states = list(self.arguments)
        first = self.cond(states)[0]
        inner = ir.Graph([], [], nodes=[], name=op.names.node("loop"))
        for dtype in (ir.DataType.INT64, ir.DataType.BOOL):
            inner.inputs.append(ir.Value(name=op.names.value("loop"), type=ir.TensorType(dtype), shape=ir.Shape([])))
        outer = [tensor for i in kept for tensor in _parts(op, self.arguments[i])]
        sizes = [self._size(i, len(_parts(op, self.arguments[i]))) for i in kept]
        inside = [self._state(*pair) for pair in zip(outer, [s for group in sizes for s in group], strict=True)]
        inner.inputs.extend(tensor.value for tensor in inside)
        for i, value in zip(kept, _put_together([self.arguments[i] for i in kept], inside), strict=True):
            states[i] = value
        for i in self.collecting:
            states[i] = Collected()
        with op.inside(inner):
            results = list(self.body(states))
            goes_on = self.cond(results)[0]
            assert isinstance(goes_on, Tensor)
            inner.outputs.append(op.Identity(truth(op, goes_on)).value)
            for i in kept:
                inner.outputs.extend(op.Identity(tensor).value for tensor in _parts(op, results[i]))
            for i in sorted(self.collecting):
                inner.outputs.append(op.Identity(self._item(i, results[i], states, results)).value)
        assert isinstance(first, Tensor)
        goes = truth(op, first)
        last_only = [place for place, i in enumerate(sorted(self.collecting)) if i in self.overwritten]
        layer = recurrent(op, inner, goes, outer, last_only)
        last = layer or op.many("Loop", len(outer) + len(self.collecting), None, goes, *outer, body=inner)
        final = list(self.arguments)
        for i, value in zip(kept, _put_together([self.arguments[i] for i in kept], last[: len(outer)]), strict=True):
            final[i] = value
        for i, tensor in zip(sorted(self.collecting), last[len(outer) :], strict=True):
            reserved = self.arguments[i]
            assert isinstance(reserved, Reserved)
            if i in self.overwritten and layer is None:
                tensor = op.Slice(tensor, op.ints([-1]), op.ints([FAR]), op.ints([0]))
            final[i] = TensorList(padded(op, tensor, reserved.count))
        return final

    def _size(self, i: int, count: int) -> list[Any]:
        """What is known of the shape of a state, for each tensor that it is made of."""
        return [self.shapes[i] if isinstance(self.arguments[i], Tensor | Complex) else None] * count

    def _state(self, tensor: Tensor, known: Sequence[int | None] | None) -> Tensor:
        """What a round begins with: of the same rank, but maybe of another size than before the loop."""
        dims = known if known is not None else None if tensor.dims is None else [None] * len(tensor.dims)
        shape = None if dims is None else ir.Shape(dims)
        value = ir.Value(name=self.op.names.value("loop"), type=tensor.value.type, shape=shape)
        return self.op.tensor(value)

    def _item(self, i: int, value: Value, states: Sequence[Value], results: Sequence[Value]) -> Tensor:
        """What a round puts to the end: at the place of a counter that begins at zero and goes up by one.

        A list of one is written to again and again: of that, the last is kept.
        """
        if not isinstance(value, Collected) or value.item is None:
            raise NotCollected
        if value.place is not None and self._is(value.place, 0) and self._is(self.arguments[i].count, 1):  # type: ignore[union-attr]
            self.overwritten.add(i)
            return value.item
        if value.place is not None and not any(
            isinstance(state, Tensor) and state.value is value.place.value and self._counts(i, state, results[i])
            for i, state in enumerate(states)
        ):
            raise NotCollected
        return value.item

    def _is(self, tensor: Tensor, number: int) -> bool:
        known = self.op.known(tensor)
        return known is not None and known.size == 1 and int(known.reshape(())) == number

    def _counts(self, i: int, state: Tensor, result: Value) -> bool:
        start = self.arguments[i]
        if not isinstance(start, Tensor) or not isinstance(result, Tensor):
            return False
        made = result.value.producer()
        while made is not None and made.op_type == "Identity" and made.inputs[0] is not None:
            made = made.inputs[0].producer()
        if not self._is(start, 0) or made is None or made.op_type != "Add":
            return False
        a, b = made.inputs
        step = b if a is state.value else a if b is state.value else None
        return step is not None and self._is(self.op.tensor(step), 1)
