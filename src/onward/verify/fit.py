"""Which sizes of a model's inputs belong together, read off the nodes that consume them.

Each value gets the sizes of its axes in terms of the dimensions of the inputs: a number, the name of a dynamic
dimension, or None where that is not known. On the way, the nodes say which names are equal (the terms of a sum), and
which are a number (the channels of a Conv with known weights). What they say is enough for a model to run, not always
needed: an axis of 1 would be broadcast, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

Dim = int | str
"""A size, or the name of a dynamic dimension; equal names have equal sizes."""
Dims = tuple[Dim | None, ...]
Array = np.ndarray[Any, np.dtype[Any]]

LARGEST_CONSTANT = 4096
"""Elements of a constant that is looked into."""


@dataclass
class Fit:
    """The names of dimensions in groups of equal size, the sizes of some, and the axes of every value."""

    parents: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Of the first name of a group."""
    dims: dict[int, Dims] = field(default_factory=dict)
    """By the id of an `ir.Value`."""
    loose: bool = False
    """Whether dimensions of different names are left apart."""

    def first(self, name: str) -> str:
        """The name that stands for the group of `name`."""
        while (parent := self.parents.get(name, name)) != name:
            name = parent
        return name

    def size(self, dim: Dim | None) -> int | None:
        return self.sizes.get(self.first(dim)) if isinstance(dim, str) else dim

    def equal(self, a: Dim | None, b: Dim | None) -> None:
        """Two axes have one size, unless it is known that they have not."""
        if isinstance(b, str) and not isinstance(a, str):
            a, b = b, a
        if not isinstance(a, str) or b is None:
            return
        a = self.first(a)
        if isinstance(b, int):
            if b > 0:
                self.sizes.setdefault(a, b)
            return
        b = self.first(b)
        if self.loose or a == b or (a in self.sizes and b in self.sizes):
            return
        self.parents[b] = a
        if b in self.sizes:
            self.sizes[a] = self.sizes.pop(b)

    def same(self, a: Dims | None, b: Dims | None) -> None:
        """Two values of one shape."""
        if a is not None and b is not None and len(a) == len(b):
            for one, other in zip(a, b, strict=True):
                self.equal(one, other)

    def broadcast(self, shapes: Iterable[Dims | None]) -> Dims | None:
        """The shape of an element-wise result; axes that are not known to be 1 are taken to be equal."""
        known = list(shapes)
        if any(dims is None for dims in known):
            return None
        result: list[Dim | None] = []
        for place in range(1, max((len(dims) for dims in known if dims is not None), default=0) + 1):
            axes = [dims[-place] for dims in known if dims is not None and len(dims) >= place]
            wide = [axis for axis in axes if self.size(axis) != 1]
            for axis in wide[1:]:
                self.equal(wide[0], axis)
            result.append(wide[0] if wide else 1)
        return tuple(result[::-1])

    def of(self, value: ir.Value | None) -> Dims | None:
        """The axes of a value."""
        if value is None:
            return None
        if (known := self.dims.get(id(value))) is not None:
            return known
        tensor = ir.convenience.get_const_tensor(value)
        shape = tensor.shape if tensor is not None else value.shape
        return None if shape is None else tuple(dim if isinstance(dim, int) else None for dim in shape)

    def shape(self, value: ir.Value | None, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
        """The axes of a value as numbers, given the sizes of dynamic dimensions; None unless all are known."""
        dims = self.of(value)
        if dims is None:
            return None
        found = [sizes.get(dim) if isinstance(dim, str) else dim for dim in dims]
        return tuple(size for size in found if size is not None) if None not in found else None


@dataclass(frozen=True)
class View:
    """A node, as a rule sees it."""

    fit: Fit
    node: ir.Node

    def value(self, index: int) -> ir.Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def dims(self, index: int) -> Dims | None:
        return self.fit.of(self.value(index))

    def rank(self, index: int = 0) -> int | None:
        dims = self.dims(index)
        return None if dims is None else len(dims)

    def axis(self, index: int, axis: int) -> Dim | None:
        dims = self.dims(index)
        return dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None

    def size(self, index: int, axis: int) -> int | None:
        return self.fit.size(self.axis(index, axis))

    def equal(self, a: tuple[int, int], b: tuple[int, int] | int | None) -> None:
        """(input, axis) equals another, or a number."""
        self.fit.equal(self.axis(*a), self.axis(*b) if isinstance(b, tuple) else b)

    def fix(self, index: int, *sizes: int | None) -> None:
        """The sizes of the axes of an input, as far as they are given, if it has that many."""
        if self.rank(index) == len(sizes):
            for axis, size in enumerate(sizes):
                self.equal((index, axis), size)

    def number(self, name: str, default: int = 0) -> int:
        return int(self.node.attributes.get_int(name, default))

    def numbers(self, name: str) -> list[int]:
        return [int(item) for item in self.node.attributes.get_ints(name, ())]

    def text(self, name: str, default: str = "") -> str:
        return str(self.node.attributes.get_string(name, default))

    def constant(self, index: int) -> Array | None:
        return constant(self.value(index))


Rule = Callable[[View], Sequence[Dims | None] | None]
"""Says which sizes belong together, and returns the shapes of the first outputs, as far as they are known."""


def constant(value: ir.Value | None) -> Array | None:
    """The contents of a small constant, whether an initializer or the result of a Constant node."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.size > LARGEST_CONSTANT else tensor.numpy()


def walk(fit: Fit, graph: ir.Graph, rules: Mapping[str, Rule]) -> Fit:
    """Let every node of a graph, and of the graphs inside it, say what it knows."""
    for node in graph:
        view = View(fit, node)
        rule = rules.get(node.op_type)
        for value, dims in zip(node.outputs, (rule(view) if rule else None) or (), strict=False):
            if dims is not None:
                fit.dims[id(value)] = dims
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                body = attribute.as_graph()
                _enter(view, body)
                walk(fit, body, rules)
    return fit


def _enter(view: View, body: ir.Graph) -> None:
    """The inputs of a body have the shapes of what is passed to them; a Scan passes slices along the first axis."""
    op, skipped = view.node.op_type, 2 if view.node.op_type == "Loop" else 0
    if op not in ("Loop", "Scan"):
        return
    states = len(body.inputs) - view.number("num_scan_inputs") if op == "Scan" else len(body.inputs)
    for number, value in enumerate(body.inputs):
        dims = view.dims(number) if number >= skipped else None
        if dims is not None:
            view.fit.dims[id(value)] = dims[1:] if number >= states else dims
