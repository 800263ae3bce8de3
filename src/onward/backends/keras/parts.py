"""Cuts a computation into calls of Keras' layers and parts between them, each of which becomes a layer of its own."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import onnx_ir as ir

from onward.backends.emit.expr import Attr, Call, Ref, Var, Weight, variables, walk
from onward.backends.emit.statements import Assign, Block, Scope, Statement, assigned, expressions, read
from onward.backends.emit.tree import Function
from onward.backends.emit.weights import Weights
from onward.backends.keras.target import LayerCall
from onward.backends.tensorflow.target import tf
from onward.errors import UnsupportedError


@dataclass
class Piece:
    """A call of one of Keras' layers, or statements that a layer of our own holds."""

    statements: list[Statement]
    inputs: list[Var] = field(default_factory=list)
    outputs: list[Var | None] = field(default_factory=list)
    function: Function | None = None
    """What a layer of our own computes."""

    @property
    def call(self) -> LayerCall | None:
        """The call, where it is Keras' own layer."""
        first = self.statements[0]
        return first.value if isinstance(first, Assign) and isinstance(first.value, LayerCall) else None


SHAPES = frozenset({"Flatten", "Permute", "Reshape"})
"""Layers that only rearrange: they belong to what is before or after them."""


class Tangled(Exception):
    """What cannot pass from layer to layer, such as a list, would have to."""


def cut(function: Function, weights: Weights) -> list[Piece]:
    """The pieces in an order in which they can be computed; `Tangled` where there is none.

    Numbers computed from shapes are computed anew in each piece that needs them.
    """
    pieces = _ordered(_Cut(function).pieces(), function)
    wanted = Counter(var for expr in function.results for var in set(variables(expr)))
    for piece in pieces:
        wanted.update({var for s in piece.statements for var in read(s)})
    for piece in pieces:
        _connect(piece, wanted, function)
    _share_weights(pieces, weights)
    return pieces


class _Cut:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.hosts: dict[Var, Statement] = {}
        self.others: list[Statement] = []
        for statement in function.block.body:
            if _is_host(statement):
                self.hosts.update(dict.fromkeys(assigned(statement), statement))
            else:
                self.others.append(statement)
        self.place = {id(s): i for i, s in enumerate(function.block.body)}
        self.made_by = {var: i for i, s in enumerate(self.others) for var in assigned(s)}
        self.needed = [self._needed(s) for s in self.others]
        self.parents = list(range(len(self.others)))

    def pieces(self) -> list[Piece]:
        for i in range(len(self.others)):
            for var in self._tensors(i):
                if var.kind != "tensor" and var in self.made_by:
                    self._join(i, self.made_by[var])
        stages = self._stages()
        for i in range(len(self.others)):
            if self._is_layer(i):
                continue
            for var in self._tensors(i):
                j = self.made_by.get(var)
                if j is not None and not self._is_layer(j) and stages[self._root(i)] == stages[self._root(j)]:
                    self._join(i, j)
        groups: dict[int, list[int]] = defaultdict(list)
        for i in range(len(self.others)):
            groups[self._root(i)].append(i)
        return [Piece(self._statements(members)) for members in groups.values()]

    def _statements(self, members: list[int]) -> list[Statement]:
        found = {id(s): s for i in members for s in (*self.needed[i], self.others[i])}
        return sorted(found.values(), key=lambda s: self.place[id(s)])

    def _needed(self, statement: Statement) -> list[Statement]:
        """The numbers that a statement needs."""
        found: dict[int, Statement] = {}
        queue = [statement]
        while queue:
            for var in read(queue.pop()):
                host = self.hosts.get(var)
                if host is not None and id(host) not in found:
                    found[id(host)] = host
                    queue.append(host)
        return list(found.values())

    def _tensors(self, i: int) -> list[Var]:
        """What a statement reads, also by way of numbers."""
        return [var for s in (self.others[i], *self.needed[i]) for var in read(s) if var not in self.hosts]

    def _is_layer(self, i: int) -> bool:
        statement = self.others[i]
        return isinstance(statement, Assign) and isinstance(statement.value, LayerCall)

    def _root(self, i: int) -> int:
        while self.parents[i] != i:
            self.parents[i] = self.parents[self.parents[i]]
            i = self.parents[i]
        return i

    def _join(self, i: int, j: int) -> None:
        if self._is_layer(i) or self._is_layer(j):
            raise Tangled
        self.parents[self._root(i)] = self._root(j)

    def _stages(self) -> dict[int, int]:
        """A number for each group of statements: groups of one number have no layer of Keras between them."""
        members: dict[int, list[int]] = defaultdict(list)
        for i in range(len(self.others)):
            members[self._root(i)].append(i)
        before: dict[int, set[int]] = {root: set() for root in members}
        after: dict[int, set[int]] = {root: set() for root in members}
        for root, inside in members.items():
            for i in inside:
                makers = {self._root(self.made_by[var]) for var in self._tensors(i) if var in self.made_by}
                before[root] |= makers - {root}
        for root, makers in before.items():
            for maker in makers:
                after[maker].add(root)
        stages: dict[int, int] = {}
        waiting = {root: len(makers) for root, makers in before.items()}
        ready = [root for root, count in waiting.items() if not count]
        while ready:
            root = ready.pop()
            layer = self._is_layer(root)
            stages[root] = max((stages[m] + (self._is_layer(m) != layer) for m in before[root]), default=0)
            for other in after[root]:
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
        if len(stages) < len(members):
            raise Tangled
        return stages


def _is_host(statement: Statement) -> bool:
    return isinstance(statement, Assign) and all(t is not None and t.kind == "host" for t in statement.targets)


def _ordered(pieces: list[Piece], function: Function) -> list[Piece]:
    """Each after those that it reads from; apart from that, in the order of the original."""
    place = {id(s): i for i, s in enumerate(function.block.body)}
    made_by = {var: k for k, p in enumerate(pieces) for s in p.statements if not _is_host(s) for var in assigned(s)}
    before = [{made_by[v] for s in p.statements for v in read(s) if v in made_by} - {k} for k, p in enumerate(pieces)]
    after: dict[int, list[int]] = defaultdict(list)
    for k, makers in enumerate(before):
        for maker in makers:
            after[maker].append(k)
    first = [max(place[id(s)] for s in p.statements) for p in pieces]
    waiting = [len(makers) for makers in before]
    ready = [(first[k], k) for k, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    out: list[Piece] = []
    while ready:
        _, k = heapq.heappop(ready)
        out.append(pieces[k])
        for other in after[k]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, (first[other], other))
    if len(out) < len(pieces):
        raise Tangled
    return out


def _connect(piece: Piece, wanted: Counter[Var], function: Function) -> None:
    """Find what a piece takes from others, and what others take from it; `wanted` counts the pieces that read it."""
    if piece.call is not None:
        assert isinstance(piece.statements[0], Assign)
        piece.inputs = list(dict.fromkeys(read(piece.statements[0])))
        piece.outputs = piece.statements[0].targets
        return
    reads = dict.fromkeys(var for s in piece.statements for var in read(s))
    inside = dict.fromkeys(var for s in piece.statements for var in assigned(s))
    outer = [var for var in reads if var not in inside]
    piece.inputs = [var for var in outer if var.kind != "flag"]
    if not piece.inputs:
        piece.inputs = _any_input(function)  # a layer must be called with something
    results = [var for var in inside if var.kind != "host" and wanted[var] > (var in reads)]
    piece.outputs = list(results)
    flags = [var for var in outer if var.kind == "flag"]
    piece.function = Function(Block(body=list(piece.statements)), [*piece.inputs, *flags], list(map(Ref, results)))


def _any_input(function: Function) -> list[Var]:
    tensors = [var for var in function.arguments if var.kind != "flag"]
    if not tensors:
        raise UnsupportedError("a Keras model has inputs, and this one has none")
    return tensors[:1]


def _share_weights(pieces: list[Piece], weights: Weights) -> None:
    """A parameter that several of our layers use is owned by the first, which hands it to the others."""
    carriers: dict[Scope, tuple[Piece, Var]] = {}
    for piece in pieces:
        if piece.function is None:
            continue
        for path in weights_of(piece):
            tensor = weights.tensors.get(path)
            if tensor is None or not tensor.parameter or path[:-1] in weights.modules:
                continue
            if path not in carriers:
                carriers[path] = piece, Var("", "tensor")
                continue
            owner, var = carriers[path]
            assert owner.function is not None
            if var not in owner.outputs:
                owner.outputs.append(var)
                owner.function.results.append(tf.identity(Weight(path)))
            piece.inputs.append(var)
            at = len(piece.inputs) - 1
            piece.function.arguments.insert(at, var)
            piece.function.foreign[path] = var


def weights_of(piece: Piece) -> list[Scope]:
    """The paths of the weights that a piece reads, in the order in which it does."""
    return list(
        dict.fromkeys(
            leaf._path
            for s in piece.statements
            for expr in expressions(s)
            for leaf in walk(expr)
            if isinstance(leaf, Weight)
        )
    )


def absorbed(pieces: list[Piece]) -> set[ir.Node]:
    """Nodes that need no layer of Keras, since they stand among layers of our own, which can do it by the way."""
    maker = {var: piece for piece in pieces for var in piece.outputs}
    readers: dict[int, list[Piece]] = defaultdict(list)
    for piece in pieces:
        for var in piece.inputs:
            if var in maker:
                readers[id(maker[var])].append(piece)
    found: set[ir.Node] = set()
    for piece in pieces:
        if piece.call is None or not isinstance(piece.call._fn, Call):
            continue
        before = [maker[var].call is None for var in piece.inputs if var in maker]
        after = [reader.call is None for reader in readers[id(piece)]]
        sides = [bool(side) and all(side) for side in (before, after)]
        constructor = piece.call._fn._fn
        assert isinstance(constructor, Attr)
        if any(sides) if constructor._name in SHAPES else all(sides):
            found.add(piece.call._node)
    return found
