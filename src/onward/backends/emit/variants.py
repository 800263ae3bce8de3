"""Modules that do without a part that others of their class have: a block with or without a downsampling shortcut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from onward.backends.emit.expr import Call, Ref, Var, Weight, forced, variables, walk
from onward.backends.emit.statements import Assign, Block, Scope, Statement, expressions, read
from onward.backends.emit.tree import Function, TreeNode


@dataclass(frozen=True)
class Variant:
    """A module, and what is left of it where one of its children only hands on what it is given."""

    node: TreeNode
    part: str
    """The name of that child."""
    whole: Function
    rest: Function
    calls: list[Assign]
    """How it is called in the whole: by one call, or by those of the modules in it."""


def variants_of(node: TreeNode, *, in_steps: bool = False) -> Iterator[Variant]:
    """What a module would be without each of its children that it could do without.

    A child is one call, or, `in_steps`, several: one for each module in it.
    """
    if node.forward is None or node.sequential:
        return
    for name, child in node.children.items():
        calls = _calls(node.forward, child.path) if name.isidentifier() else []
        if calls and (in_steps or [_called(call) for call in calls] == [child.path]):
            yield Variant(node, name, node.forward, _without(node.forward, calls), calls)


def variants_by_height(
    root: TreeNode, levels: Mapping[int, list[TreeNode]], names: Mapping[Scope, str], *, in_steps: bool = False
) -> dict[int, list[Variant]]:
    """What modules with a name would be without one of their children, by the height that they would have then."""
    found: dict[int, list[Variant]] = defaultdict(list)
    height = {node.path: n for n, nodes in levels.items() for node in nodes}
    for node in root.walk():
        if node is not root and names.get(node.path):
            for variant in variants_of(node, in_steps=in_steps):
                others = [height[child.path] for name, child in node.children.items() if name != variant.part]
                found[1 + max(others, default=0)].append(variant)
    return found


def _calls(function: Function, path: Scope) -> list[Assign]:
    """The calls of modules at or below `path`, each with what the one before gave; [] if it is used otherwise."""
    found: list[Assign] = []
    others: list[Var] = [var for result in function.results for var in variables(result)]
    for statement in function.block.body:
        paths = [leaf._path for expr in expressions(statement) for leaf in walk(expr) if isinstance(leaf, Weight)]
        if not any(used[: len(path)] == path for used in paths):
            others += read(statement)
            continue
        if not isinstance(statement, Assign) or len(statement.targets) != 1 or paths != [_called(statement)]:
            return []
        source = _source(statement)
        if source is None or (found and source is not found[-1].targets[0]):
            return []
        found.append(statement)
    between = {call.targets[0] for call in found[:-1]}
    return found if between.isdisjoint(others) else []


def _without(function: Function, calls: list[Assign]) -> Function:
    """A function in which what the last of some calls gives is what the first one gets."""
    source = _source(calls[0])
    assert source is not None
    body: list[Statement] = []
    for statement in function.block.body:
        if statement is calls[-1]:
            body.append(replace(calls[-1], value=Ref(source), reads=None))
        elif not any(statement is call for call in calls):
            body.append(statement)
    return replace(function, block=Block(function.block.parent, body))


def _called(statement: Assign) -> Scope | None:
    """The module that a statement calls."""
    value = forced(statement.value)
    return value._fn._path if isinstance(value, Call) and isinstance(value._fn, Weight) else None


def _source(statement: Assign) -> Var | None:
    """The variable that a call gets and that is all it gets."""
    value = forced(statement.value)
    assert isinstance(value, Call)
    argument = forced(value._args[0]) if len(value._args) == 1 and not value._kwargs else None
    return argument._var if isinstance(argument, Ref) else None
