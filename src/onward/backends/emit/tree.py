"""The module tree: weights and framework modules by path, and which part of the computation each module holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onward.backends.emit.expr import Expr, Var
from onward.backends.emit.statements import Block, Scope
from onward.backends.emit.weights import Module, Tensor, Weights


@dataclass
class Function:
    """A computation with parameters and results, before it is printed."""

    block: Block
    arguments: list[Var]
    results: list[Expr]
    foreign: dict[Scope, Var] = field(default_factory=dict)
    """Tensors that stand elsewhere in the tree, and the arguments by which they come in."""
    packed: dict[Var, list[Var]] = field(default_factory=dict)
    """Arguments that are tuples of several variables of the caller."""


@dataclass
class TreeNode:
    """A module of the generated model: a framework's own (`leaf`), or one with children and perhaps a `forward`."""

    path: Scope
    children: dict[str, TreeNode] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    leaf: Module | None = None
    forward: Function | None = None
    class_hint: str = ""
    sequential: bool = False
    """Whether `forward` only passes one value through the children: an `nn.Sequential`."""

    @property
    def is_numbered(self) -> bool:
        """Whether the children are 0, 1, 2, …"""
        return bool(self.children) and all(str(i) in self.children for i in range(len(self.children)))

    @property
    def is_list(self) -> bool:
        """Whether the children are 0, 1, 2, … and nothing else is here."""
        return self.is_numbered and not (self.tensors or self.arrays or self.forward or self.leaf)

    @property
    def is_wrapper(self) -> bool:
        """Whether it only calls the one module that it has, which has a name."""
        return bool(self.path) and self.sequential and not all(part.isdigit() for part in self.children)

    @property
    def is_container(self) -> bool:
        """Whether it only holds modules: a list, dictionary or sequence rather than a class of its own."""
        return (
            bool(self.path)
            and bool(self.children)
            and (self.is_wrapper or all(part.isdigit() for part in self.children))
            and not (self.tensors or self.arrays or self.leaf)
            and (self.forward is None or self.sequential)
        )

    @property
    def is_parameter_list(self) -> bool:
        """Whether it only holds parameters 0, 1, 2, … in this order."""
        tensors = self.tensors.values()
        others = self.children or self.arrays or self.leaf or self.forward
        numbered = list(self.tensors) == [str(i) for i in range(len(tensors))]
        return bool(tensors) and numbered and all(t.parameter for t in tensors) and not others

    def walk(self) -> Iterator[TreeNode]:
        yield self
        for child in self.children.values():
            yield from child.walk()


def build_tree(weights: Weights) -> TreeNode:
    """The tree of all weights; computations are attached afterwards."""
    root = TreeNode(())
    owned = {(*m.path, a) for m in weights.modules.values() for a in m.tensors}
    for path, module in weights.modules.items():
        node_at(root, path).leaf = module
    for path, tensor in weights.tensors.items():
        if path not in owned:
            node_at(root, path[:-1]).tensors[path[-1]] = tensor
    for path, array in weights.arrays.items():
        node_at(root, path[:-1]).arrays[path[-1]] = array
    return root


def node_at(root: TreeNode, path: Scope) -> TreeNode:
    """The node at `path`, made if need be."""
    node = root
    for i, part in enumerate(path):
        node = node.children.setdefault(part, TreeNode(path[: i + 1]))
    return node
