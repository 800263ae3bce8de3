"""The classes of a generated TensorFlow model."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from onward.backends.emit.classes import ClassWriter, Pieces, joined, no_leaf, plain_text
from onward.backends.emit.expr import lift, render
from onward.backends.emit.statements import Scope
from onward.backends.emit.tree import TreeNode
from onward.backends.emit.weights import Array, Tensor

RESERVED = frozenset({"self", "tf", "np", "math", "Any", "Path", "load", "Weights"})
SHORTEST_RUN = 3
"""Two equal members of a list are written out; more are a comprehension."""
PLACE = "\0"
"""Stands for the number of a list's member."""


@dataclass
class ModuleWriter(ClassWriter):
    """Writes `tf.Module`s."""

    freeze: bool | list[str] = False
    """Which variables a training step leaves alone: all, none, or those of these names."""
    reserved: frozenset[str] = RESERVED
    init_arguments: tuple[str, ...] = ("weights: Weights",)

    def base(self, node: TreeNode) -> str:
        return "tf.Module"

    def declare(self, attribute: str, tensor: Tensor) -> Pieces:
        if tensor.running:
            return [f'self.{_attribute(attribute)} = weights.variable("{attribute}", trainable=False)']
        if not tensor.parameter:
            return [f'self.{_attribute(attribute)} = weights.constant("{attribute}")']
        frozen = self.freeze if isinstance(self.freeze, bool) else ".".join(tensor.path) in self.freeze
        fixed = ", trainable=False" if frozen else ""
        return [f'self.{_attribute(attribute)} = weights.variable("{attribute}"{fixed})']

    def declare_strings(self, attribute: str, array: Array) -> Pieces:
        return [f"self.{attribute} = tf.constant({render(lift(array.tolist()), no_leaf)})"]

    def child(self, attribute: str, child: TreeNode) -> Pieces:
        return [f"self.{_attribute(attribute)} = ", *self._construct(child, attribute)]

    def annotation(self, kind: str) -> str:
        return {"tensor": "tf.Tensor", "flag": "bool"}.get(kind, "Any")

    def argument(self, name: str, kind: str, is_root: bool) -> str:
        return super().argument(name, kind, is_root) + (" = False" if kind == "flag" and is_root else "")

    def access(self, node: TreeNode, path: Scope) -> str:
        text, here = "self", node
        for part in path[len(node.path) :]:
            child = here.children.get(part)
            if part.isdigit() and here.is_container:
                text += f"[{part}]" if here.is_numbered else f'["{part}"]'
            else:
                text += f".{_attribute(part)}"
            if child is None:
                break
            here = child
        return text

    def _construct(self, node: TreeNode, place: str) -> Pieces:
        """The expression that makes a child, whose weights are at `place`."""
        if self.is_class(node):
            return self.slotted(self._constructors[node.path], _at(place))
        if not node.is_numbered:
            members = [[f'"{n}": ', *self._construct(c, f"{place}.{n}")] for n, c in node.children.items()]
            return ["{", *joined(members), "}"]
        items = [self._construct(node.children[str(i)], f"{place}.{PLACE}") for i in range(len(node.children))]
        parts: list[Pieces] = []
        for _, group in itertools.groupby(enumerate(items), key=lambda item: plain_text(item[1])):
            run = list(group)
            first, last = run[0][0], run[-1][0] + 1
            if len(run) < SHORTEST_RUN:
                parts += [_numbered(item, str(i)) for i, item in run]
                continue
            bounds = str(last) if first == 0 else f"{first}, {last}"
            made: Pieces = [*_numbered(run[0][1], "{i}"), f" for i in range({bounds})"]
            parts.append(made if len(run) == len(items) else ["*(", *made, ")"])
        return ["[", *joined(parts), "]"]


def _attribute(part: str) -> str:
    return f"p{part}" if part.isdigit() else part


def _at(place: str) -> str:
    return f'weights.at("{place}")'


def _numbered(pieces: Pieces, number: str) -> Pieces:
    """With the number of a member in its place."""
    text = [p.replace(PLACE, number) if isinstance(p, str) else p for p in pieces]
    return [p.replace('at("', 'at(f"', 1) if isinstance(p, str) and number == "{i}" else p for p in text]
