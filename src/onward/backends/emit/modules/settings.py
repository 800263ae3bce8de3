"""Makes modules that differ in settings alone one class: each of them has these numbers as tensors.

So a network whose every layer is quantized with a scale of its own is one class and a list, and the scales stand in the
weights file, beside the weights that they belong to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from onward.backends.emit.expr import ATOM, Call, Expr, Ref, Var, Weight, render, walk
from onward.backends.emit.modules.outline import outline
from onward.backends.emit.parameters import unused
from onward.backends.emit.settings import Setting, Step
from onward.backends.emit.statements import Scope, assigned, expressions
from onward.backends.emit.tree import Function, TreeNode
from onward.backends.emit.weights import Module, Tensor, Weights

T = TypeVar("T", Setting, Step)
Column = tuple[float | tuple[float, ...], ...]
"""What a setting is in each module of a class."""


def hold_settings(root: TreeNode, weights: Weights) -> None:
    """Give modules that would otherwise be equal the settings by which they differ as tensors."""
    kinds: dict[Any, int] = {}
    members: dict[int, list[TreeNode]] = defaultdict(list)
    _sort(root, kinds, members)
    for nodes in members.values():
        if len(nodes) > 1 and nodes[0].forward is not None:
            _hold(nodes, weights)


def _sort(node: TreeNode, kinds: dict[Any, int], members: dict[int, list[TreeNode]]) -> int:
    """The number of the kind of a module, which it shares with those that could be of one class."""
    children = tuple((name, _sort(child, kinds, members)) for name, child in node.children.items())
    leaf = _class(node.leaf.constructor) if node.leaf is not None else ""
    tensors = tuple((name, t.parameter, t.dtype, len(t.shape)) for name, t in node.tensors.items())
    code = "" if node.forward is None or node.sequential else _code(node, node.forward)
    kind = kinds.setdefault((leaf, children, tensors, tuple(node.arrays), node.sequential, code), len(kinds))
    members[kind].append(node)
    return kind


def _class(constructor: Expr) -> str:
    """The class that a constructor makes one of, whatever its arguments are."""
    return (
        render(constructor._fn, lambda leaf: (getattr(leaf, "_name", "?"), ATOM))
        if isinstance(constructor, Call)
        else ""
    )


def _code(node: TreeNode, function: Function) -> str:
    """What a function does, with its variables numbered in the order in which they come."""
    numbers: dict[Var, int] = {}
    depth = len(node.path)

    def number(var: Var | None) -> str:
        return "_" if var is None else f"{var.kind}{numbers.setdefault(var, len(numbers))}"

    def weight(leaf: Weight) -> str:
        inside = leaf._path[:depth] == node.path
        return ".".join(leaf._path[depth:]) if inside else number(function.foreign.get(leaf._path))

    def variable(leaf: Ref) -> str:
        return number(leaf._var)

    lines = [" ".join(map(number, function.arguments))]
    for statement in function.block.body:
        made = ",".join(map(number, assigned(statement)))
        values = ";".join(outline(expr, weight, variable) for expr in expressions(statement))
        lines.append(f"{type(statement).__name__} {made} = {values}")
    lines += [outline(expr, weight, variable) for expr in function.results]
    return "\n".join(lines)


def _mentioned(function: Function | None, kind: type[T]) -> Iterator[T]:
    """The settings, or steps, in the order in which they are mentioned."""
    if function is not None:
        for statement in function.block.body:
            for expr in expressions(statement):
                yield from (leaf for leaf in walk(expr) if isinstance(leaf, kind))


def _hold(nodes: list[TreeNode], weights: Weights) -> None:
    first = nodes[0]
    names = _Names({*first.tensors, *first.children, *first.arrays})
    for steps in zip(*(_mentioned(node.forward, Step) for node in nodes), strict=True):
        column = tuple(tuple(setting._value for setting in step._settings.values()) for step in steps)
        if name := names.of(steps[0]._hint, column):
            for node, step in zip(nodes, steps, strict=True):
                _make(node, name, step, weights)
    for settings in zip(*(_mentioned(node.forward, Setting) for node in nodes), strict=True):
        if name := names.of(settings[0]._role, tuple(setting._value for setting in settings)):
            for node, setting in zip(nodes, settings, strict=True):
                _store(node, name, setting, weights)


class _Names:
    """What the attributes of a class are called; what is the same in each module of it is one attribute."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._known: dict[tuple[str, Column], str] = {}

    def of(self, role: str, column: Column) -> str:
        """The name of an attribute that differs between modules as `column` does; '' if it does not differ."""
        if len(set(column)) == 1:
            return ""
        if (role, column) not in self._known:
            self._known[role, column] = unused([role], self._taken)
            self._taken.add(self._known[role, column])
        return self._known[role, column]


def _make(node: TreeNode, name: str, step: Step, weights: Weights) -> None:
    """Give a module a step as a module of its own."""
    path = (*node.path, name)
    if name not in node.children:
        module = weights.modules[path] = Module(path, step._constructor)
        for attribute, setting in step._settings.items():
            module.tensors[attribute] = _tensor((*path, attribute), setting, weights)
        node.children[name] = TreeNode(path, leaf=module)
    step._place = Weight(path)


def _store(node: TreeNode, name: str, setting: Setting, weights: Weights) -> None:
    """Give a module a setting as a tensor."""
    path = (*node.path, name)
    if name not in node.tensors:
        node.tensors[name] = _tensor(path, setting, weights)
    setting._place = Weight(path)


def _tensor(path: Scope, setting: Setting, weights: Weights) -> Tensor:
    number = np.asarray(setting._value, dtype=setting._dtype.numpy())
    tensor = Tensor(path, lambda: number, (), setting._dtype, parameter=False, trained=False, added=True)
    weights.tensors[path] = tensor
    return tensor
