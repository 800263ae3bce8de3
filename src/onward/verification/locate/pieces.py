"""Two models, their values matched, and the places at which both can be cut; what a piece of either computes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from onward import runners
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.verification import compare
from onward.verification.locate.counterparts import counterparts
from onward.verification.locate.cut import OWN, Cutter

FLOOR = compare.floor(np.dtype(np.float32))


@dataclass(frozen=True)
class Subject:
    """A model on a runner."""

    model: Model
    runner: str
    prepare: Callable[[str, Model], Run] = field(default=runners.prepare, repr=False)


class Side:
    """A subject that can be run piece by piece. Values have the names that they have in the source."""

    def __init__(self, subject: Subject, cutter: Cutter, names: Mapping[str, str]) -> None:
        self.subject, self.cutter = subject, cutter
        self.names = names
        """Names in the source to names here."""
        self.runs = 0
        self._separate: Cutter | None = None

    def value(self, name: str) -> ir.Value | None:
        """The value that the source calls `name`, if there is one here."""
        return self.cutter.values.get(self.names.get(name, ""))

    def piece(self, outputs: Iterable[str], feeds: Mapping[str, Any]) -> Model:
        """The model that computes `outputs` from what it needs of `feeds`."""
        return self.cutter.piece([self.names[name] for name in outputs], self._renamed(feeds))

    def prepare(self, outputs: Iterable[str], feeds: Inputs) -> Run:
        """A function that computes `outputs` from `feeds`, and again from other feeds of the same shapes."""
        return self._prepare(self.cutter, {name: self.names[name] for name in outputs}, feeds)

    def prepare_separate(self, outputs: Iterable[str], feeds: Inputs) -> Run:
        """As `prepare`, but each node by itself: what it uses is fed, where the source has it."""
        if self._separate is None:
            known = set(self.names.values())
            self._separate = self.cutter.separate(lambda value: value.name in known)
        own = {name: f"{self.names[name]}{OWN}" for name in outputs}
        wanted = {name: own[name] if own[name] in self._separate.values else self.names[name] for name in own}
        return self._prepare(self._separate, wanted, feeds)

    def _prepare(self, cutter: Cutter, wanted: Mapping[str, str], feeds: Inputs) -> Run:
        constants = {name: v for name, here in wanted.items() if (v := cutter.values[here]).producer() is None}
        computed = {name: here for name, here in wanted.items() if name not in constants}
        known = {name: _contents(value) for name, value in constants.items()}
        if not computed:
            return lambda inputs: known
        piece = cutter.piece(computed.values(), self._renamed(feeds))
        used = [value.name or "" for value in piece.ir.graph.inputs]
        run = self.subject.prepare(self.subject.runner, piece)

        def again(inputs: Inputs) -> Outputs:
            self.runs += 1
            given = self._renamed(inputs)
            found = run({name: given[name] for name in used})
            return {**known, **{name: found[here] for name, here in computed.items()}}

        return again

    def _renamed(self, feeds: Mapping[str, Any]) -> Inputs:
        return {self.names[name]: value for name, value in feeds.items() if name in self.names}


def label(node: ir.Node) -> str:
    """A node's name, or that of its first result where it has none."""
    return node.name or next((value.name for value in node.outputs if value.name), "")


def _contents(value: ir.Value) -> Any:
    return value.const_value.numpy() if value.const_value is not None else None


class Pieces:
    """The source's nodes in order, and the positions in it at which both sides can be cut.

    At position p the first p nodes have run. Every value that is used later is then one that the other side has, too.
    """

    def __init__(self, source: Subject, other: Subject) -> None:
        cutter = Cutter(source.model)
        theirs = cutter if other.model is source.model else Cutter(other.model)
        names = counterparts(cutter, theirs)
        self.source = Side(source, cutter, {name: name for name in cutter.values})
        self.other = Side(other, theirs, names)
        self.nodes = cutter.nodes()
        self._made = {v.name: i for i, node in enumerate(self.nodes) for v in node.outputs if v.name}
        self._last = self._last_uses()
        self.cuts = self._cuts()

    @property
    def is_one_model(self) -> bool:
        """Whether the same file is run on two runners."""
        return self.source.cutter is self.other.cutter

    @property
    def runs(self) -> int:
        return self.source.runs + self.other.runs

    def made(self, first: int, last: int) -> list[str]:
        """The values that the nodes from `first` to before `last` make, and that are of use."""
        return [v.name for node in self.nodes[first:last] for v in node.outputs if v.name and v.name in self._last]

    def position(self, name: str) -> int:
        """The first position at which there is a value."""
        return self._made.get(name, -1) + 1

    def cuts_between(self, first: int, last: int) -> list[int]:
        """The positions from `first` to `last`, these included."""
        return self.cuts[bisect_left(self.cuts, first) : bisect_right(self.cuts, last)]

    def floor(self, first: int, last: int) -> float:
        """The error that rounding may cause in the results of these nodes: that of their coarsest float."""
        dtypes = {v.dtype for node in self.nodes[first:last] for v in node.outputs if v.dtype is not None}
        return max((compare.floor(d.numpy()) for d in dtypes if d.is_floating_point()), default=FLOOR)

    def is_foreign(self, node: ir.Node) -> bool:
        """Whether the other side has nothing of what a node makes."""
        varies = any(value in self.source.cutter.varying for value in node.outputs)
        return varies and not self.shared(v.name for v in node.outputs if v.name)

    def live(self, first: int, last: int) -> list[str]:
        """The values that the nodes from `first` to before `last` make, and that are used after them."""
        return [name for name in self.made(first, last) if self._last.get(name, -1) >= last]

    def shared(self, names: Iterable[str]) -> list[str]:
        """Those of the values that the other side has."""
        return [name for name in names if name in self.other.names]

    def _last_uses(self) -> dict[str, int]:
        """Each value's last user, as the source's node during which it is needed; one past the end for outputs."""
        cutter, theirs = self.source.cutter, self.other.cutter
        last: dict[str, int] = {}
        for index, node in enumerate(self.nodes):
            last.update((value.name, index) for value in cutter.reads(node) if value.name)
        last.update((value.name, len(self.nodes)) for value in cutter.outputs if value.name)
        if cutter is theirs:
            return last
        back = {here: name for name, here in self.other.names.items()}
        level: dict[ir.Node, int] = {}
        needed: dict[ir.Value, int] = dict.fromkeys(theirs.outputs, len(self.nodes))
        for node in reversed(theirs.nodes()):
            made = [self._made.get(back.get(v.name or "", ""), needed.get(v, 0)) for v in node.outputs]
            level[node] = max(made, default=0)
            for value in theirs.reads(node):
                needed[value] = max(needed.get(value, 0), level[node])
        for value, index in needed.items():
            name = back.get(value.name or "")
            if name is not None:
                last[name] = max(last.get(name, 0), index)
        return last

    def _cuts(self) -> list[int]:
        foreign = [0] * (len(self.nodes) + 2)
        for name, index in self._made.items():
            if name not in self.other.names and self.source.cutter.values[name] in self.source.cutter.varying:
                foreign[index + 1] += 1
                foreign[max(index, self._last.get(name, -1)) + 1] -= 1
        count, found = 0, []
        for position in range(len(self.nodes) + 1):
            count += foreign[position]
            if count == 0 or position in (0, len(self.nodes)):
                found.append(position)
        return found
