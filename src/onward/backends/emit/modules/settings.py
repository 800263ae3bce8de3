"""Makes modules that differ in settings alone one class: each of them has these numbers as tensors.

So a network whose every layer is quantized with a scale of its own is one class and a list, and the scales stand in the
weights file, beside the weights that they belong to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onward.backends.emit.expr import Ref, Var, Weight, walk
from onward.backends.emit.modules.outline import class_of, outline
from onward.backends.emit.parameters import unused
from onward.backends.emit.settings import Setting
from onward.backends.emit.statements import assigned, expressions
from onward.backends.emit.tree import Function, TreeNode
from onward.backends.emit.weights import Array, Tensor, Weights

Column = tuple[float, ...]
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
    leaf = class_of(node.leaf.constructor) if node.leaf is not None else ""
    tensors = tuple((name, t.parameter, t.dtype, len(t.shape)) for name, t in node.tensors.items())
    code = "" if node.forward is None or node.sequential else _code(node, node.forward)
    kind = kinds.setdefault((leaf, children, tensors, tuple(node.arrays), node.sequential, code), len(kinds))
    members[kind].append(node)
    return kind


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


def _settings(function: Function | None) -> Iterator[Setting]:
    """The settings in the order in which they are mentioned."""
    if function is not None:
        for statement in function.block.body:
            for expr in expressions(statement):
                yield from (leaf for leaf in walk(expr) if isinstance(leaf, Setting))


def _hold(nodes: list[TreeNode], weights: Weights) -> None:
    first = nodes[0]
    taken = {*first.tensors, *first.children, *first.arrays}
    names: dict[tuple[str, Column], str] = {}
    for row in zip(*(_settings(node.forward) for node in nodes), strict=True):
        column = tuple(setting._value for setting in row)
        if len(set(column)) == 1:
            continue
        role = row[0]._role
        if (role, column) not in names:
            names[role, column] = unused([role], taken)
            taken.add(names[role, column])
        for node, setting in zip(nodes, row, strict=True):
            _store(node, names[role, column], setting, weights)


def _store(node: TreeNode, name: str, setting: Setting, weights: Weights) -> None:
    path = (*node.path, name)
    if name not in node.tensors:
        number = np.asarray(setting._value, dtype=setting._dtype.numpy())
        tensor = Tensor(path, _reader(number), (), setting._dtype, parameter=False, trained=False, added=True)
        node.tensors[name] = weights.tensors[path] = tensor
    setting._place = Weight(path)


def _reader(number: Array) -> Callable[[], Array]:
    return lambda: number
