"""Modules that do without a part that others of their class have: a block with or without a downsampling shortcut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from onward.backends.emit.expr import Call, Ref, Weight, forced, walk
from onward.backends.emit.statements import Assign, Block, Scope, Statement, expressions
from onward.backends.emit.tree import Function, TreeNode


@dataclass(frozen=True)
class Variant:
    """A module, and what is left of it where one of its children only hands on what it is given."""

    node: TreeNode
    part: str
    """The name of that child."""
    whole: Function
    rest: Function


def variants_of(node: TreeNode) -> Iterator[Variant]:
    """What a module would be without each of its children that it could do without."""
    if node.forward is None or node.sequential:
        return
    for name, child in node.children.items():
        rest = _without(node.forward, child.path) if name.isidentifier() else None
        if rest is not None:
            yield Variant(node, name, node.forward, rest)


def _without(function: Function, path: Scope) -> Function | None:
    """A function in which the module at `path` does nothing; None if it is more than one call with one value."""
    used = Counter(
        leaf._path
        for statement in function.block.body
        for expr in expressions(statement)
        for leaf in walk(expr)
        if isinstance(leaf, Weight) and leaf._path[: len(path)] == path
    )
    if used != Counter([path]):
        return None
    body: list[Statement] = []
    is_found = False
    for statement in function.block.body:
        value = forced(statement.value) if isinstance(statement, Assign) else None
        if isinstance(statement, Assign) and isinstance(value, Call) and _is_at(value._fn, path):
            argument = forced(value._args[0]) if len(value._args) == 1 and not value._kwargs else None
            if not isinstance(argument, Ref) or len(statement.targets) != 1:
                return None
            statement, is_found = replace(statement, value=argument, reads=None), True
        body.append(statement)
    return replace(function, block=Block(function.block.parent, body)) if is_found else None


def _is_at(function: object, path: Scope) -> bool:
    return isinstance(function, Weight) and function._path == path
