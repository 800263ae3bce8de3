"""Branches and loops of TensorFlow 1, told from the ops that they are made of.

There a branch is no op: Switch sends a tensor along one of two edges, and Merge gives on whatever arrives. A loop is
Enter, Merge, Switch, NextIteration and Exit around ops like all others. Here each branch and each loop is seen as one
op as TensorFlow 2 has it, `If` or `While`, whose functions are parts of the same graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.control_flow import SWITCHES, source
from onward.frontends.tensorflow.values import Value
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

MERGES = {"Merge", "RefMerge"}
ENTERS = {"Enter", "RefEnter"}
EXITS = {"Exit", "RefExit"}
NEXT = {"NextIteration", "RefNextIteration"}


@rule("Switch", "RefSwitch")
def switch(op: Writer, x: Value, on: Tensor) -> list[Value]:
    """Where one of its outputs is read, the other is not: both are the input."""
    return [x, x]


@rule("LoopCond")
def loop_condition(op: Writer, condition: Tensor) -> Tensor:
    return condition


@dataclass(eq=False)
class Part:
    """Some ops of a graph, as the function that computes outputs from inputs."""

    flow: Flow
    inputs: list[Any]
    outputs: list[Any]

    def get_operations(self) -> list[Any]:
        return self.flow.needed(self.outputs, {tensor.name for tensor in self.inputs})


@dataclass(eq=False)
class Whole:
    """The ops of a branch or a loop as one op of TensorFlow 2."""

    type: str
    name: str
    graph: Any
    inputs: list[Any]
    outputs: list[Any]
    functions: dict[str, str]
    """The parts that it calls, by the names of the attributes."""

    @property
    def node_def(self) -> Any:
        from tensorflow.core.framework import node_def_pb2

        node = node_def_pb2.NodeDef(name=self.name, op=self.type)
        for key, name in self.functions.items():
            node.attr[key].func.name = name
        return node

    @property
    def op_def(self) -> Any:
        from tensorflow.python.framework import op_def_registry

        return op_def_registry.get(self.type)


class Flow:
    """The branches and loops of a graph."""

    def __init__(self, graph: Any, parts: dict[str, Any]) -> None:
        self._graph = graph
        self._parts = parts
        """Where functions are looked up by their name."""
        self._order = {operation: i for i, operation in enumerate(graph.get_operations())}
        self._loops: dict[Any, Whole] = {}
        self._branches: dict[Any, Whole] = {}
        self._guards: dict[Any, dict[str, int]] = {}
        self._depths: dict[Any, int] = {}

    @staticmethod
    def is_in(graph: Any) -> bool:
        """Whether there are branches or loops of TensorFlow 1 in a graph."""
        return any(operation.type in MERGES for operation in graph.get_operations())

    def needed(self, outputs: Iterable[Any], given: Collection[str]) -> list[Any]:
        """What outputs depend on, beyond tensors that are given, in an order in which it can be computed."""
        found = self._before(outputs, lambda tensor: tensor.name in given)[0]
        for operation in found:
            if operation.type in ENTERS | NEXT | MERGES:
                raise UnsupportedError(
                    f"{operation.type} {operation.name!r}: a tensor inside a loop cannot be an output"
                )
        return found

    def check(self, outputs: Iterable[Any]) -> None:
        """Refuse outputs of the whole graph that are there only where a branch was taken."""
        for tensor in outputs:
            if self._guard_of(tensor):
                raise UnsupportedError(f"{tensor.name} is computed in one branch only: it cannot be an output")

    def _before(self, outputs: Iterable[Any], is_border: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
        """The ops before outputs, each after those that it reads, and the tensors of the border that they begin at."""
        border: dict[str, Any] = {}

        def before(operation: Any) -> list[Any]:
            if operation.type in NEXT:
                return []
            return producers(operation.inputs)

        def producers(tensors: Iterable[Any]) -> list[Any]:
            found = []
            for tensor in tensors:
                if is_border(tensor):
                    border[tensor.name] = tensor
                else:
                    found.append(self._producer(tensor))
            return found

        order: list[Any] = []
        _each_after(producers(outputs), before, order.append)
        return order, list(border.values())

    def _producer(self, tensor: Any) -> Any:
        operation = tensor.op
        if operation.type in EXITS:
            return self._loop(operation)
        if operation.type in MERGES and not _is_of_loop(operation):
            if tensor.value_index:
                raise UnsupportedError(f"Merge {operation.name!r}: which of its inputs arrived cannot be told")
            return self._branch(operation)
        return operation

    def _loop(self, exit_: Any) -> Whole:
        """The loop that an Exit is of: all that has the same condition."""
        chosen = exit_.inputs[0].op
        condition = chosen.inputs[1].op if chosen.type in SWITCHES else None
        if condition is None or condition.type != "LoopCond":
            raise UnsupportedError(f"{exit_.type} {exit_.name!r}: it is not a loop as tf.while_loop makes it")
        if condition in self._loops:
            return self._loops[condition]
        switches = [s for s in condition.outputs[0].consumers() if s.type in SWITCHES]
        more = {s.inputs[0].op for s in switches if s.inputs[0].op.type in MERGES}
        found: set[Any] = set()

        def is_border(tensor: Any) -> bool:
            return tensor.op in found or tensor.op.type in ENTERS

        while more:  # a state that only the condition reads has no Switch
            found |= more
            merges = sorted(found, key=self._order.__getitem__)
            firsts, nexts = zip(*map(_first_and_next, merges), strict=True)
            ends = [*nexts, condition.inputs[0]]
            order, border = self._before(ends, is_border)
            more = {operation for operation in order if _is_of_loop(operation)}
        begins = [merge.outputs[0] for merge in merges]
        fixed = [tensor for tensor in border if tensor.op not in found]
        exits = {s.inputs[0].op: e for s in switches for e in s.outputs[0].consumers() if e.type in EXITS}
        whole = Whole(
            "While",
            condition.name,
            self._graph,
            [*firsts, *(tensor.op.inputs[0] for tensor in fixed)],
            [exits[merge].outputs[0] if merge in exits else merge.outputs[0] for merge in merges],
            {
                "cond": self._part(condition.name, "cond", [*begins, *fixed], [condition.inputs[0]]),
                "body": self._part(condition.name, "body", [*begins, *fixed], [*nexts, *fixed]),
            },
        )
        self._loops[condition] = whole
        return whole

    def _part(self, name: str, role: str, inputs: list[Any], outputs: list[Any]) -> str:
        name = f"{id(self._graph)}/{name}/{role}"
        self._parts[name] = Part(self, inputs, outputs)
        return name

    def _branch(self, merge: Any) -> Whole:
        """The branch that a Merge is the end of, with all others that can be chosen by the same test at once."""
        if merge not in self._branches:
            test, guard, depth = self._test(merge), self._guard(merge), self._depth(merge)
            ends = [m for m in self._order if m.type in MERGES and not _is_of_loop(m)]
            alike = [m for m in ends if self._test(m) == test and self._guard(m) == guard]
            together = [m for m in alike if self._depth(m) == depth]
            self._branches |= dict.fromkeys(together, self._chosen(together, test))
        return self._branches[merge]

    def _test(self, merge: Any) -> str:
        """The name of the tensor that decides which input of a Merge arrives."""
        guards = [self._guard_of(tensor) for tensor in merge.inputs]
        one, other = guards if len(guards) == 2 else ({}, {})
        tests = [name for name in one if name in other and one[name] != other[name]]
        if not tests:
            raise UnsupportedError(f"{merge.type} {merge.name!r}: it is not a branch as tf.cond makes it")
        return tests[-1]

    def _chosen(self, merges: Sequence[Any], test: str) -> Whole:
        ends: tuple[list[Any], list[Any]] = ([], [])
        for merge in merges:
            for tensor in merge.inputs:
                ends[self._guard_of(tensor)[test]].append(tensor)
        inside = [self._before(tensors, lambda tensor: test not in self._guard(tensor.op))[1] for tensors in ends]
        border = list({tensor.name: tensor for tensors in inside for tensor in tensors}.values())
        arguments = [t.op.inputs[0] if t.op.type in SWITCHES and test in self._guard_of(t) else t for t in border]
        name = merges[0].name
        return Whole(
            "If",
            name,
            self._graph,
            [self._graph.get_tensor_by_name(test), *arguments],
            [merge.outputs[0] for merge in merges],
            {
                "then_branch": self._part(name, "then", border, ends[1]),
                "else_branch": self._part(name, "else", border, ends[0]),
            },
        )

    def _guard_of(self, tensor: Any) -> dict[str, int]:
        """The tests on the way to a tensor, from the outermost, and how each has to end for it to be computed."""
        guard = self._guard(tensor.op)
        if tensor.op.type in SWITCHES and (on := source(tensor.op.inputs[1])).op.type != "LoopCond":
            return guard | {on.name: tensor.value_index}
        return guard

    def _guard(self, operation: Any) -> dict[str, int]:
        if operation not in self._guards:
            _each_after([operation], self._around, self._see_guard, self._guards)
        return self._guards[operation]

    def _around(self, operation: Any) -> list[Any]:
        """What has to be there for an op to be computed."""
        return [tensor.op for tensor in operation.inputs if tensor.op.type not in NEXT] + list(operation.control_inputs)

    def _see_guard(self, operation: Any) -> None:
        guards = [self._guard_of(t) for t in operation.inputs if t.op.type not in NEXT]
        if operation.type in MERGES and len(guards) == 2:
            one, other = guards
            guards = [{k: v for k, v in (one | other).items() if one.get(k, v) == other.get(k, v)}]
        found: dict[str, int] = {}
        for guard in guards + [self._guards[before] for before in operation.control_inputs]:
            found |= guard
        self._guards[operation] = found

    def _depth(self, merge: Any) -> int:
        """How many branches have to be decided before one, in a row: those of one depth do not read each other."""

        def before(operation: Any) -> list[Any]:
            if operation.type in ENTERS or _is_of_loop(operation):
                return []
            if operation.type in EXITS:
                return [tensor.op for tensor in self._loop(operation).inputs]
            return [tensor.op for tensor in operation.inputs]

        def see(operation: Any) -> None:
            deepest = max((self._depths[earlier] for earlier in before(operation)), default=0)
            self._depths[operation] = deepest + (operation.type in MERGES)

        _each_after([merge], before, see, self._depths)
        return self._depths[merge]


def _first_and_next(merge: Any) -> tuple[Any, Any]:
    """What a state of a loop begins with, and what a round leaves of it."""
    enter, again = sorted(merge.inputs, key=lambda tensor: tensor.op.type in NEXT)
    if enter.op.type not in ENTERS or again.op.type not in NEXT:
        raise UnsupportedError(f"{merge.type} {merge.name!r}: it is not a loop as tf.while_loop makes it")
    return enter.op.inputs[0], again.op.inputs[0]


def _is_of_loop(merge: Any) -> bool:
    return merge.type in MERGES and any(tensor.op.type in NEXT for tensor in merge.inputs)


def _each_after(
    roots: Iterable[Any],
    before: Callable[[Any], Iterable[Any]],
    see: Callable[[Any], object],
    seen: Collection[Any] = (),
) -> None:
    """Have every op seen that roots depend on, after what it depends on itself, but for those that are seen already."""
    done: set[Any] = set()
    waiting = [(root, False) for root in reversed(list(roots))]
    while waiting:
        operation, ready = waiting.pop()
        if operation in done or operation in seen:
            continue
        if ready:
            done.add(operation)
            see(operation)
        else:
            waiting.append((operation, True))
            waiting += [(earlier, False) for earlier in before(operation) if earlier not in done]
