"""Splits one long computation into the modules whose weights it uses, wherever that can be done exactly.

Each statement has a scope: the module its node belonged to, as far as the file tells. The statements of a scope become
the `forward` of that module if, contracted to a single call, they leave the order of computation possible. A scope for
which that fails is dissolved: its statements stay with the parent, only its weights keep their place in the tree.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property

from onward.backends.emit.expr import Call, Expr, Ref, Sequence, Var, Weight, forced, variables, walk
from onward.backends.emit.modules.loops import handed_on, loops, step_of
from onward.backends.emit.statements import Assign, Block, Scope, Statement, assigned, expressions, read
from onward.backends.emit.tree import Function, TreeNode, node_at
from onward.backends.emit.weights import Module

MAX_TRIES = 40
"""After so many scopes dissolved one by one at a level, all that stand in each other's way are."""


AsModule = Callable[[Expr, Var], Expr | None]
"""The constructor of the framework's module for a function of one variable, such as `nn.ReLU()` for `F.relu(x)`;
for the variable itself, its module that does nothing."""


def split(
    root: TreeNode, function: Function, as_module: AsModule = lambda expr, var: None, *, in_loops: bool = True
) -> None:
    """Attach a `forward` to the root and to every module below it that can have one; runs of calls become loops."""
    statements = function.block.body
    homes = _homes(root, statements)
    items = list(zip(statements, homes, strict=True))
    _Level(root, root, items, as_module, in_loops).build(function.arguments, function.results)


def _homes(root: TreeNode, statements: list[Statement]) -> list[Scope]:
    """The module in whose `forward` each statement belongs."""
    homes: list[Scope] = []
    made_at: dict[Var, int] = {}
    for i, statement in enumerate(statements):
        homes.append(_home(root, statement, [homes[made_at[v]] for v in _by_age(statement, made_at)]))
        made_at.update(dict.fromkeys(assigned(statement), i))
    # A number computed from shapes lives where it is used.
    wanted: dict[Var, Scope] = {}
    for i in range(len(statements) - 1, -1, -1):
        statement = statements[i]
        if isinstance(statement, Assign) and all(t is not None and t.kind == "host" for t in statement.targets):
            places = [wanted[t] for t in statement.targets if t in wanted]
            if places:
                homes[i] = _common(places)
        for var in read(statement):
            wanted[var] = homes[i] if var not in wanted else _common([wanted[var], homes[i]])
    return homes


def _by_age(statement: Statement, made_at: dict[Var, int]) -> list[Var]:
    """The variables a statement reads, the one made last first."""
    return sorted({v for v in read(statement) if v in made_at}, key=lambda v: -made_at[v])


def _home(root: TreeNode, statement: Statement, makers: list[Scope]) -> Scope:
    """Where a statement belongs by its own scope; failing that, by its weights; failing that, by what it reads."""
    weights = [leaf._path for expr in expressions(statement) for leaf in walk(expr) if isinstance(leaf, Weight)]
    modules = [path[:-1] for path in weights if _is_module(root, path)]
    if statement.scope is None:
        owners = modules or [_existing(root, path[:-1]) for path in weights]
        return _common(owners) if owners else _existing(root, _maker(makers))
    return _common([_existing(root, statement.scope), *modules])


def _maker(makers: list[Scope]) -> Scope:
    """The module that made what a statement reads, the newest first; a mask of the whole model says nothing."""
    others = [scope for scope in makers if scope]
    if makers and not makers[0] and len(others) > 1 and len(set(others)) == 1:
        return others[0]
    return makers[0] if makers else ()


def _existing(root: TreeNode, scope: Scope) -> Scope:
    """The part of a scope that is a module of the tree with code of its own."""
    node, depth = root, 0
    for part in scope:
        child = node.children.get(part)
        if child is None or child.leaf is not None:
            break
        node, depth = child, depth + 1
    return scope[:depth]


def _is_module(root: TreeNode, path: Scope) -> bool:
    node: TreeNode | None = root
    for part in path:
        node = node.children.get(part) if node is not None else None
    return node is not None and node.leaf is not None


def _common(paths: Iterable[Scope]) -> Scope:
    first, *rest = paths
    for path in rest:
        n = 0
        while n < min(len(first), len(path)) and first[n] == path[n]:
            n += 1
        first = first[:n]
    return first


class _Unit:
    """A statement of this level, or all statements of a module below it."""

    def __init__(self, key: Scope | None) -> None:
        self.key = key
        self.items: list[tuple[Statement, Scope]] = []

    @cached_property
    def reads(self) -> list[Var]:
        return [var for statement, _ in self.items for var in read(statement)]

    @cached_property
    def assigns(self) -> list[Var]:
        return [var for statement, _ in self.items for var in assigned(statement)]


class _Level:
    """The statements of one module, those of the modules below it included."""

    def __init__(
        self, root: TreeNode, node: TreeNode, items: list[tuple[Statement, Scope]], as_module: AsModule, in_loops: bool
    ) -> None:
        self.as_module = as_module
        self.in_loops = in_loops
        self.root = root
        self.node = node
        self.items = items
        self.dissolved: set[Scope] = set()

    def build(self, arguments: list[Var], results: list[Expr]) -> None:
        while True:
            units = self._ordered()
            body: list[Statement] = []
            foreign: dict[Scope, Var] = {}
            redo = False
            live = _live_after(units, results)
            for i, unit in enumerate(units):
                if unit.key is None:
                    body.append(unit.items[0][0])
                    continue
                call = self._call(unit, live[i])
                if call is None:
                    self.dissolved.add(unit.key)
                    redo = True
                    break
                body.append(call)
            if not redo:
                break
        members = chain(self.node, body, arguments, results, self.as_module)
        packed: dict[Var, list[Var]] = {}
        if members is not None:
            self.node.children = members
            self.node.sequential = True
        elif self.in_loops:
            looped = loops(self.node, body, arguments, results)
            body, arguments, results = looped.body, looped.arguments, looped.results
            packed = looped.packed
            results = handed_on(body, results)
        self.node.forward = Function(Block(None, body), arguments, results, foreign, packed)
        self._take_foreign(body)

    def _take_foreign(self, body: list[Statement]) -> None:
        """Tensors that stand elsewhere in the tree come in as arguments."""
        function = self.node.forward
        assert function is not None
        depth = len(self.node.path)
        for statement in body:
            for expr in expressions(statement):
                for leaf in walk(expr):
                    if not isinstance(leaf, Weight) or leaf._path in function.foreign:
                        continue
                    if leaf._path[:depth] != self.node.path:
                        var = function.foreign[leaf._path] = Var(leaf._path[-1], "tensor")
                        var.role = leaf._path[-1] if leaf._path[-1].replace("_", "").isalpha() else ""
                        function.arguments.append(var)

    def _call(self, unit: _Unit, live: set[Var]) -> Statement | None:
        """Make the unit's module and return the statement that calls it, or None if it must be dissolved."""
        assert unit.key is not None
        node = node_at(self.root, unit.key)
        inside = set(unit.assigns)
        arguments = list(dict.fromkeys(v for v in unit.reads if v not in inside))
        arguments.sort(key=lambda v: v.kind != "tensor")
        outputs = list(dict.fromkeys(v for v in unit.assigns if v in live))
        outputs.sort(key=lambda v: bool(v.role))  # what goes on from layer to layer comes first
        if not outputs:
            return None
        _Level(self.root, node, unit.items, self.as_module, self.in_loops).build(
            list(arguments), [Ref(v) for v in outputs]
        )
        assert node.forward is not None
        is_container = bool(node.children) and all(p.isdigit() for p in node.children) and not node.tensors
        if is_container and not node.sequential:
            node.forward = None
            return None
        own = node.forward.arguments[: len(node.forward.arguments) - len(node.forward.foreign)]
        packed = {var: Sequence(tuple(map(Ref, held))) for var, held in node.forward.packed.items()}
        passed = [packed[v] if v in packed else Ref(v) for v in own] + [Weight(p) for p in node.forward.foreign]
        value = Call(Weight(node.path), tuple(passed), {})
        origins = {statement.origin for statement, _ in unit.items}
        return Assign(list(outputs), value, node.path, origins.pop() if len(origins) == 1 else "")

    def _ordered(self) -> list[_Unit]:
        """Units in an order of computation, after dissolving what makes one impossible."""
        for attempt in range(MAX_TRIES + len(self.items)):
            units = self._units()
            edges = _edges(units)
            cycles = [c for c in _components(len(units), edges) if len(c) > 1]
            if not cycles:
                return [units[i] for i in _topological(len(units), edges)]
            for cycle in cycles:
                groups = [units[i] for i in cycle if units[i].key is not None]
                if not groups:
                    raise ValueError("the graph has a cycle")
                if attempt < MAX_TRIES:
                    groups = [min(groups, key=lambda u: len(u.items))]
                self.dissolved.update(u.key for u in groups if u.key is not None)
        raise AssertionError("every scope was dissolved and there is still a cycle")

    def _units(self) -> list[_Unit]:
        units: list[_Unit] = []
        groups: dict[Scope, _Unit] = {}
        for statement, home in self.items:
            key = self._key(home)
            if key is None:
                unit = _Unit(None)
                units.append(unit)
            elif key in groups:
                unit = groups[key]
            else:
                unit = groups[key] = _Unit(key)
                units.append(unit)
            unit.items.append((statement, home))
        return units

    def _key(self, home: Scope) -> Scope | None:
        for n in range(len(self.node.path) + 1, len(home) + 1):
            if home[:n] not in self.dissolved:
                return home[:n]
        return None


def _edges(units: list[_Unit]) -> list[set[int]]:
    made_by: dict[Var, set[int]] = {}
    for i, unit in enumerate(units):
        for var in unit.assigns:
            made_by.setdefault(var, set()).add(i)
    edges: list[set[int]] = [set() for _ in units]
    for i, unit in enumerate(units):
        for var in unit.reads:
            for j in made_by.get(var, ()):
                if i != j:
                    edges[j].add(i)
    return edges


def _live_after(units: list[_Unit], results: list[Expr]) -> list[set[Var]]:
    """For each unit, the variables it makes that others read."""
    total: Counter[Var] = Counter(v for e in results for v in variables(e))
    own = [Counter(u.reads) for u in units]
    for counter in own:
        total.update(counter)
    return [{v for v in set(u.assigns) if total[v] > own[i][v]} for i, u in enumerate(units)]


def _topological(count: int, edges: list[set[int]]) -> list[int]:
    waiting = Counter(j for targets in edges for j in targets)
    ready = [i for i in range(count) if not waiting[i]]
    heapq.heapify(ready)
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in edges[i]:
            waiting[j] -= 1
            if not waiting[j]:
                heapq.heappush(ready, j)
    return order


def _components(count: int, edges: list[set[int]]) -> list[list[int]]:
    """Strongly connected components (Tarjan, without recursion)."""
    index = [-1] * count
    low = [0] * count
    on_stack = [False] * count
    stack: list[int] = []
    found: list[list[int]] = []
    counter = 0
    for start in range(count):
        if index[start] >= 0:
            continue
        work = [(start, iter(edges[start]))]
        index[start] = low[start] = counter
        counter += 1
        stack.append(start)
        on_stack[start] = True
        while work:
            node, targets = work[-1]
            advanced = False
            for target in targets:
                if index[target] < 0:
                    index[target] = low[target] = counter
                    counter += 1
                    stack.append(target)
                    on_stack[target] = True
                    work.append((target, iter(edges[target])))
                    advanced = True
                    break
                if on_stack[target]:
                    low[node] = min(low[node], index[target])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                component = []
                while True:
                    member = stack.pop()
                    on_stack[member] = False
                    component.append(member)
                    if member == node:
                        break
                found.append(component)
    return found


def chain(
    node: TreeNode, body: list[Statement], arguments: list[Var], results: list[Expr], as_module: AsModule
) -> dict[str, TreeNode] | None:
    """The members of a module whose `forward` only passes one value through them in order, or None if it does more.

    Functions between the numbered children become modules too; a number that is missing, because what stood there does
    nothing any more, is an identity if a weight after it has a higher number in its name.
    """
    result = results[0] if len(results) == 1 else None
    if len(arguments) != 1 or not isinstance(result, Ref) or not node.children or node.tensors or node.arrays:
        return None
    identity = as_module(Ref(arguments[0]), arguments[0])
    if identity is None:
        return None
    if not all(part.isdigit() for part in node.children):
        return node.children if _is_wrapper(node, body, arguments[0], result._var) else None
    members: dict[int, TreeNode] = {}
    current, position = arguments[0], -1
    for statement in body:
        found = _member(node, statement, current, position, as_module)
        if found is None:
            return None
        current, position, members[found[1]] = found
    if result._var is not current or len(node.children.keys() - {str(i) for i in members}) > 0:
        return None
    last = max(int(part) for part in node.children)
    if last > MAX_MEMBERS:
        return None
    named = {str(i): members.get(i) or _made(node, i, identity) for i in range(last + 1)}
    rest = [members[i] for i in sorted(members) if i > last]
    return named | {str(i): member for i, member in enumerate(rest, last + 1)}


def _is_wrapper(node: TreeNode, body: list[Statement], argument: Var, result: Var) -> bool:
    """Whether a module has another one and only calls it."""
    step = _step(body[0]) if len(body) == 1 else None
    if step is None or len(node.children) != 1 or not node.path or any(c.is_wrapper for c in node.children.values()):
        return False
    return step == (result, (*node.path, *node.children), [argument])


MAX_MEMBERS = 1000
"""No one writes a longer `nn.Sequential`; a file with a huge number in a name does not make us fill the gap."""


def _made(node: TreeNode, index: int, constructor: Expr) -> TreeNode:
    path = (*node.path, str(index))
    return TreeNode(path, leaf=Module(path, constructor))


def _member(
    node: TreeNode, statement: Statement, current: Var, position: int, as_module: AsModule
) -> tuple[Var, int, TreeNode] | None:
    """A statement as the next member of a chain: (what it makes, its number, its module)."""
    step = _step(statement)
    if step is not None and step[1][:-1] == node.path and step[1][-1].isdigit():
        index = int(step[1][-1])
        fits = step[2] == [current] and index > position
        return (step[0], index, node.children[step[1][-1]]) if fits else None
    if not isinstance(statement, Assign) or len(statement.targets) != 1 or statement.targets[0] is None:
        return None
    constructor = as_module(forced(statement.value), current)
    depth = len(node.path)
    scope = statement.scope
    if constructor is None or scope is None or scope[:depth] != node.path or len(scope) != depth + 1:
        return None
    if not scope[depth].isdigit() or int(scope[depth]) <= position or scope[depth] in node.children:
        return None
    index = int(scope[depth])
    return statement.targets[0], index, _made(node, index, constructor)


def _step(statement: Statement) -> tuple[Var, Scope, list[Var]] | None:
    """`y = self.path(a, b)` as (y, path, [a, b])."""
    step = step_of(statement)
    if step is None or len(step.targets) != 1 or not all(isinstance(x, Ref) for x in step.arguments):
        return None
    return step.targets[0], step.path, [x._var for x in step.arguments if isinstance(x, Ref)]
