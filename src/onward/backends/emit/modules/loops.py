"""Runs of calls of the members of a list as a loop: `for layer in self.layers: x = layer(x, mask)`."""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from onward.backends.emit.expr import Call, Expr, Name, Ref, Sequence, Star, Var, Weight, forced, variables
from onward.backends.emit.names import singular
from onward.backends.emit.statements import Assign, Block, Compound, Do, Scope, Statement, read
from onward.backends.emit.tree import TreeNode

SHORTEST = 3
"""Two calls in a row are written out."""


@dataclass(frozen=True)
class Step:
    """`y, z = self.path(a, b)`; arguments are variables, or weights that stand elsewhere."""

    targets: list[Var]
    path: Scope
    arguments: list[Expr]


def step_of(statement: Statement) -> Step | None:
    if not isinstance(statement, Assign) or not isinstance(value := statement.value, Call):
        return None
    targets = [target for target in statement.targets if target is not None]
    arguments = [forced(argument) for argument in value._args]
    if not isinstance(value._fn, Weight) or value._kwargs or len(targets) < len(statement.targets):
        return None
    if not all(isinstance(argument, Ref | Weight) for argument in arguments):
        return None
    return Step(targets, value._fn._path, arguments)


@dataclass
class Looped:
    """The parts of a function whose runs of calls are loops."""

    body: list[Statement]
    arguments: list[Var]
    results: list[Expr]
    packed: dict[Var, list[Var]] = field(default_factory=dict)
    """Arguments that are tuples of what each time of a loop has its own of."""
    members: dict[Var, Scope] = field(default_factory=dict)
    """What each loop calls the member of its list, and the path of the first one."""


Alike = Callable[[Scope, Scope], bool]
"""Whether two members of a list can be called by the same line."""


def loops(
    node: TreeNode,
    body: list[Statement],
    arguments: list[Var],
    results: list[Expr],
    alike: Alike = lambda one, other: True,
) -> Looped:
    """Turn `x = self.layers[0](x, m); x = self.layers[1](x, m); …` into a `for` over the list.

    What each call has its own of, such as the earlier keys of a layer, is looped over as well, and what each call gives
    besides the value that goes on is collected.
    """
    reads: Counter[Var] = Counter(v for s in body for v in read(s))
    reads.update(v for e in results for v in variables(e))
    looped = Looped([], arguments, results)
    place = 0
    while place < len(body):
        run = _Run.at(node, body, place, reads, alike)
        if run is None:
            looped.body.append(body[place])
            place += 1
        else:
            run.write(node, looped, reads, body[place])
            place += len(run.steps)
    return looped


@dataclass
class _Run:
    """Calls of the members n, n + 1, … of one list, each of which gives one value to the next."""

    steps: list[Step]
    given: int
    """Which of the results goes on."""
    taken: int
    """As which of the arguments."""

    @classmethod
    def at(cls, node: TreeNode, body: list[Statement], start: int, reads: Counter[Var], alike: Alike) -> _Run | None:
        """The run that begins with a statement."""
        first = step_of(body[start])
        if first is None or len(first.path) < 2 or not first.path[-1].isdigit():
            return None
        container = _list_at(node, first.path[:-1])
        if container is None or not container.is_list:
            return None
        steps, links, made = [first], set[tuple[int, int]](), set(first.targets)
        for statement in body[start + 1 :]:
            step = step_of(statement)
            link = None if step is None else _link(steps, step, made, reads)
            if step is None or link is None or (links and link not in links) or not alike(first.path, step.path):
                break
            links.add(link)
            steps.append(step)
            made.update(step.targets)
        if len(steps) < SHORTEST:
            return None
        ((given, taken),) = links
        return cls(steps, given, taken)

    @property
    def own(self) -> list[int]:
        """The arguments that are others in each call."""
        first = self.steps[0].arguments
        return [
            k
            for k in range(len(first))
            if k != self.taken and any(not _same(step.arguments[k], first[k]) for step in self.steps)
        ]

    def write(self, node: TreeNode, looped: Looped, reads: Counter[Var], begin: Statement) -> None:
        first, last = self.steps[0], self.steps[-1]
        scope = begin.scope
        state = Var("", last.targets[self.given].kind, fixed=True)
        member = Var(singular(first.path[-2]), "object")
        looped.members[member] = first.path
        own = {k: _like(first.arguments[k]) for k in self.own}
        more = [t for t in range(len(first.targets)) if t != self.given]
        made = {t: _like(Ref(first.targets[t])) for t in more}
        start = first.arguments[self.taken]
        arguments = [
            Ref(state) if k == self.taken else Ref(own[k]) if k in own else argument
            for k, argument in enumerate(first.arguments)
        ]
        targets: list[Var | None] = [made.get(t, state) for t in range(len(first.targets))]
        inside: list[Statement] = [Assign(targets, Call(Ref(member), tuple(arguments), {}), scope)]
        members = self._members(node)
        if own:
            members = Call(Name("zip"), (members, *self._columns(node, looped, reads)), {})
        looped.body.append(Assign([state], start, scope))
        gathered = Var("gathered", "object", fixed=True)
        if more:
            looped.body.append(Assign([gathered], Sequence((), "[]"), scope))
            inside.append(Do(Ref(gathered).extend(Sequence(tuple(Ref(made[t]) for t in more))), scope))
        loop = Compound([("for", members, Block(None, inside))], member, scope, "", list(own.values()))
        looped.body += [loop, Assign([last.targets[self.given]], Ref(state), scope)]
        if more:
            self._hand_out(gathered, more, looped, reads, begin)

    def _members(self, node: TreeNode) -> Expr:
        """The list, or the part of it that is called."""
        path = self.steps[0].path
        container = _list_at(node, path[:-1])
        assert container is not None
        low, high = int(path[-1]), int(path[-1]) + len(self.steps)
        members: Expr = Weight(path[:-1])
        if (low, high) != (0, len(container.children)):
            members = members[slice(low or None, None if high == len(container.children) else high)]
        return members

    def _columns(self, node: TreeNode, looped: Looped, reads: Counter[Var]) -> list[Expr]:
        """For each argument that differs, its values; they come in as one argument where nothing else reads them."""
        own, columns = self.own, []
        for k in own:
            columns.append([step.arguments[k] for step in self.steps])
        every = [x._var for row in zip(*columns, strict=True) for x in row if isinstance(x, Ref)]
        alone = all(reads[var] == 1 and var in looped.arguments for var in every)
        if not node.path or not alone or len(set(every)) < len(every):
            return [Sequence(tuple(column)) for column in columns]
        pack = Var(_common([var.role for var in every[: len(own)]]) or "given", "object")
        looped.packed[pack] = every
        place = looped.arguments.index(every[0])
        looped.arguments[place] = pack
        looped.arguments[:] = [var for var in looped.arguments if var not in set(every)]
        if len(own) == 1:
            return [Ref(pack)]
        return [Ref(pack)[slice(i or None, None, len(own))] for i in range(len(own))]

    def _hand_out(self, gathered: Var, more: list[int], looped: Looped, reads: Counter[Var], begin: Statement) -> None:
        """What the calls gave besides goes to the results at once, or to a variable each."""
        every = [step.targets[t] for step in self.steps for t in more]
        names = [x._var if isinstance(x, Ref) else None for x in looped.results]
        place = names.index(every[0]) if every[0] in names else 0
        if names[place : place + len(every)] == every and all(reads[var] == 1 for var in every):
            looped.results = [*looped.results[:place], Star(Ref(gathered)), *looped.results[place + len(every) :]]
        else:
            looped.body.append(Assign(list(every), Ref(gathered), begin.scope))


def handed_on(body: list[Statement], results: list[Expr]) -> list[Expr]:
    """The results, where those of a call that only become results are one list: `x, *present = self.model(…)`."""
    reads: Counter[Var] = Counter(v for s in body for v in read(s))
    reads.update(v for e in results for v in variables(e))
    for statement in body:
        if not isinstance(statement, Assign) or not _calls_module(statement.value):
            continue
        targets = [target for target in statement.targets if target is not None]
        names = [x._var if isinstance(x, Ref) else None for x in results]
        tail = [var for var in targets if reads[var] == 1 and var in names]
        first = len(statement.targets) - len(tail)
        place = names.index(tail[0]) if tail else 0
        if len(tail) < SHORTEST or not first or statement.targets[first:] != tail:
            continue
        if names[place : place + len(tail)] != tail:
            continue
        rest = Var(_common([var.hint for var in tail]) or "rest", "object")
        statement.targets[first:], statement.rest = [rest], True
        results = [*results[:place], Star(Ref(rest)), *results[place + len(tail) :]]
    return results


def _calls_module(value: Expr) -> bool:
    return isinstance(value, Call) and isinstance(value._fn, Weight)


def _common(names: list[str]) -> str:
    """What names begin with: `present` of `present.0.key` and `present.1.value`."""
    return os.path.commonprefix(names).strip("._/0123456789")  # noqa: RUF071


def _list_at(node: TreeNode, path: Scope) -> TreeNode | None:
    for part in path[len(node.path) :]:
        if part not in node.children:
            return None
        node = node.children[part]
    return node


def _link(steps: list[Step], step: Step, made: set[Var], reads: Counter[Var]) -> tuple[int, int] | None:
    """Which result of the last step is which argument of the next one, if that is all it reads of the run."""
    first, before = steps[0], steps[-1]
    member = (*first.path[:-1], str(int(first.path[-1]) + len(steps)))
    if step.path != member or len(step.arguments) != len(first.arguments) or len(step.targets) != len(first.targets):
        return None
    found = [(a, x._var) for a, x in enumerate(step.arguments) if isinstance(x, Ref) and x._var in made]
    if len(found) != 1 or found[0][1] not in before.targets or reads[found[0][1]] != 1:
        return None
    taken, var = found[0]
    rest = [(x, y) for a, (x, y) in enumerate(zip(first.arguments, step.arguments, strict=True)) if a != taken]
    if not isinstance(first.arguments[taken], Ref) or not all(_same(x, y) or _alike(x, y) for x, y in rest):
        return None
    return before.targets.index(var), taken


def _same(x: Expr, y: Expr) -> bool:
    if isinstance(x, Weight) and isinstance(y, Weight):
        return x._path == y._path
    return isinstance(x, Ref) and isinstance(y, Ref) and x._var is y._var


def _alike(x: Expr, y: Expr) -> bool:
    """Whether one variable of a loop can stand for both."""
    return isinstance(x, Ref) and isinstance(y, Ref) and (x._var.kind, x._var.role) == (y._var.kind, y._var.role)


def _like(x: Expr) -> Var:
    assert isinstance(x, Ref)
    var = Var(x._var.role, x._var.kind)
    var.role = x._var.role
    return var
