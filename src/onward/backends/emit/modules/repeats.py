"""Finds blocks of a computation that repeat, in files whose names say nothing about modules.

Where the same sequence of statements comes again and again, each time fed by the time before, its statements and
weights are given the scopes `blocks.0`, `blocks.1`, …; splitting into modules then makes one class of them, and a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from onward.backends.emit.expr import Expr, Ref, Var, Weight, walk
from onward.backends.emit.modules.outline import class_of, outline
from onward.backends.emit.statements import Assign, Scope, Statement, assigned, expressions, read
from onward.backends.emit.weights import Weights

LONGEST = 300
"""Statements of a block: a longer one would not be found."""
LEAST = 12
"""Statements that a list of blocks must cover to be worth a class."""


@dataclass(frozen=True)
class Run:
    """`count` blocks of `length` statements each, from statement `start` on."""

    start: int
    length: int
    count: int

    @property
    def stop(self) -> int:
        return self.start + self.length * self.count

    def block(self, index: int) -> range:
        first = self.start + index * self.length
        return range(first, first + self.length)


def name_repeats(statements: list[Statement], results: Iterable[Expr], weights: Weights) -> None:
    """Give repeating blocks of statements without a scope, and their weights, scopes of their own."""
    finder = _Finder(statements, results, weights)
    number = 0
    while (run := finder.best()) is not None:
        number += 1
        finder.take(run, finder.free_name(number))


class _Finder:
    def __init__(self, statements: list[Statement], results: Iterable[Expr], weights: Weights) -> None:
        self.statements = statements
        self.weights = weights
        self.free = np.array([s.scope is None and isinstance(s, Assign) for s in statements], dtype=bool)
        self.made_at = {var: i for i, s in enumerate(statements) for var in assigned(s)}
        self.read_at: dict[Var, list[int]] = {}
        for i, statement in enumerate(statements):
            for var in read(statement):
                self.read_at.setdefault(var, []).append(i)
        for expr in results:
            for leaf in walk(expr):
                if isinstance(leaf, Ref):
                    self.read_at.setdefault(leaf._var, []).append(len(statements))
        self.paths = [_weights_of(s) for s in statements]
        self.users = Counter(path for paths in self.paths for path in set(paths))
        shapes: dict[str, int] = {}
        self.tokens = np.array([shapes.setdefault(self._shape(s), len(shapes)) for s in statements])

    def _shape(self, statement: Statement) -> str:
        """What a statement does, whatever it does it to: equal for statements that could be the same line of code."""
        if not isinstance(statement, Assign):
            return f"statement {id(statement)}"
        outlined = outline(statement.value, self._weight, lambda ref: f"var {ref._var.kind}")
        return f"{len(statement.targets)} {outlined}"

    def _weight(self, weight: Weight) -> str:
        module = self.weights.modules.get(weight._path)
        return "tensor" if module is None else class_of(module.constructor)

    def best(self) -> Run | None:
        """The run of blocks that covers most statements, of those whose flow of values is that of a chain."""
        count = len(self.statements)
        found: list[Run] = []
        for length in range(2, min(LONGEST, count // 2) + 1):
            equal = (self.tokens[:-length] == self.tokens[length:]) & self.free[:-length] & self.free[length:]
            if not equal.any():
                continue
            edges = np.flatnonzero(np.diff(np.concatenate([[False], equal, [False]]).astype(np.int8)))
            for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                if last - first >= length and (last - first) // length * length + length >= LEAST:
                    found.append(Run(first, length, (last - first) // length + 1))
        found.sort(key=lambda r: (-r.length * r.count, r.length))
        for run in found[:50]:
            shifted = [self._at(run, shift) for shift in range(run.length)]
            good = [r for r in shifted if r is not None and self._is_chain(r)]
            if good:
                return max(good, key=lambda r: (r.count, self._starts_well(r), -r.start))
        return None

    def _at(self, run: Run, shift: int) -> Run | None:
        """The same repetition cut at another statement, dropping what no longer makes a whole block."""
        count = (run.stop - run.start - shift) // run.length
        return Run(run.start + shift, run.length, count) if count >= 2 and count * run.length >= LEAST else None

    def _starts_well(self, run: Run) -> bool:
        """Whether a block begins with a layer rather than with the normalisation or activation of the one before."""
        modules = [self.weights.modules[p] for p in self.paths[run.start] if p in self.weights.modules]
        return any(class_of(m.constructor).startswith(("nn.Conv", "nn.Linear", "Dynamic", "Int8")) for m in modules)

    def _is_chain(self, run: Run) -> bool:
        """Whether each block gives one value to the next, in the same place, and else reads what all of them read."""
        flows = [flow for index in range(run.count) if (flow := self._flow(run, index)) is not None]
        if len(flows) < run.count:
            return False
        (reads, given), second, *rest = flows
        return given == second[1] and all(flow == second for flow in rest) and self._first_fits(reads, second[0])

    def _flow(self, run: Run, index: int) -> tuple[tuple[tuple[str, object], ...], int] | None:
        """What a block reads, and which of its statements makes the one value it gives; None if it is no block."""
        block = run.block(index)
        paths = [path for i in block for path in self.paths[i]]
        if any(self.users[path] > 1 or not self._movable(path) for path in paths):
            return None
        given = [i - block.start for i in block if self._is_read_outside(i, block)]
        reads = [self._source(run, index, var) for i in block for var in read(self.statements[i])]
        if len(given) != 1 or any(source is None for source in reads):
            return None
        return tuple(source for source in reads if source is not None), given[0]

    def _is_read_outside(self, index: int, block: range) -> bool:
        made = assigned(self.statements[index])
        return any(reader not in block for var in made for reader in self.read_at.get(var, ()))

    def _first_fits(self, first: tuple[tuple[str, object], ...], second: tuple[tuple[str, object], ...]) -> bool:
        """The first block reads one value from outside where the others read from the block before them."""
        differing = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
        carried = {a[1] for a, b in differing if a[0] == "outside" and b[0] == "previous"}
        return len(carried) == 1 and all(a[0] == "outside" and b[0] == "previous" for a, b in differing)

    def _source(self, run: Run, index: int, var: Var) -> tuple[str, object] | None:
        """Where a block gets a value from: itself, the block before, or outside of the run."""
        at = self.made_at.get(var)
        if at is None or at < run.start:
            return "outside", var
        block = run.block(index)
        if at in block:
            return "inside", at - block.start
        if index and at in run.block(index - 1):
            return "previous", at - run.block(index - 1).start
        return None

    def _movable(self, path: Scope) -> bool:
        """Whether a weight stands at the root, under a name that we made up."""
        if len(path) != 1 or path in self.weights.ties or path in self.weights.ties.values():
            return False
        return path not in self.weights.named_paths and (path in self.weights.modules or path in self.weights.tensors)

    def free_name(self, number: int) -> str:
        taken = {path[0] for path in [*self.weights.tensors, *self.weights.modules, *self.weights.arrays]}
        name = "blocks" if number == 1 else f"blocks{number}"
        while name in taken:
            name += "_"
        return name

    def take(self, run: Run, name: str) -> None:
        """Give the blocks of a run their scopes and paths."""
        for index in range(run.count):
            scope = (name, str(index))
            moved: dict[Scope, Scope] = {}
            used: Counter[str] = Counter()
            for i in run.block(index):
                self.statements[i].scope = scope
                for expr in expressions(self.statements[i]):
                    for leaf in walk(expr):
                        if isinstance(leaf, Weight) and leaf._path[0] != name:
                            if leaf._path not in moved:
                                base = leaf._path[0].rstrip("0123456789").rstrip("_") or "part"
                                used[base] += 1
                                own = base if used[base] == 1 else f"{base}{used[base]}"
                                moved[leaf._path] = (*scope, own)
                            leaf._path = moved[leaf._path]
            for old, new in moved.items():
                self.weights.move(old, new)
        self.free[run.start : run.stop] = False


def _weights_of(statement: Statement) -> list[Scope]:
    return [leaf._path for expr in expressions(statement) for leaf in walk(expr) if isinstance(leaf, Weight)]
