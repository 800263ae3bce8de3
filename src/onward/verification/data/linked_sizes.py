"""Which sizes of a model's inputs belong together, read off the nodes that consume them.

Each value gets the sizes of its axes in terms of the dimensions of the inputs: a number, the name of a dynamic
dimension, or None where that is not known. On the way, the nodes say which names are equal (the terms of a sum), and
which are a number (the channels of a Conv with known weights). What they say is enough for a model to run, not always
needed: an axis of 1 would be broadcast, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import onnx_ir as ir

from onward.graph.slots import Dim

Dims = tuple[Dim | None, ...]
Array = np.ndarray[Any, np.dtype[Any]]

DEEPEST = 8
"""Of products of products."""
LARGEST_CONSTANT = 4096
"""Elements of a constant that is looked into."""


@dataclass
class Fit:
    """The names of dimensions in groups of equal size, the sizes of some, and the axes of every value."""

    parents: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Of the first name of a group."""
    made: dict[str, tuple[int, tuple[Dim, ...]]] = field(default_factory=dict)
    """The first name of a group to a number and the parts by whose sum it is multiplied: `3 heads`, `past + new`."""
    least: dict[str, int] = field(default_factory=dict)
    """How large a dimension has to be, by its own name."""
    dims: dict[int, Dims] = field(default_factory=dict)
    """By the id of an `ir.Value`."""
    vectors: dict[int, Dims] = field(default_factory=dict)
    """The contents of vectors that hold sizes, by the id of an `ir.Value`."""
    meetings: list[tuple[str, ir.Value, int]] = field(default_factory=list)
    """A dimension of an input, and a value that has its size on an axis of which nothing is known before it is run."""
    loose: bool = False
    """Whether dimensions of different names are left apart."""

    def first(self, name: str) -> str:
        """The name that stands for the group of `name`."""
        while (parent := self.parents.get(name, name)) != name:
            name = parent
        return name

    def length(self, dim: Dim | None, sizes: Mapping[str, int], depth: int = 0) -> int | None:
        """A size as a number, given the sizes of dynamic dimensions."""
        if not isinstance(dim, str):
            return dim
        name = self.first(dim)
        for known in (sizes.get(dim), self.sizes.get(name), sizes.get(name)):
            if known is not None:
                return known
        if name not in self.made:
            return None
        number, parts = self.made[name]
        found = [self.length(part, sizes, depth + 1) for part in parts] if depth < DEEPEST else []
        return number * sum(size for size in found if size is not None) if found and None not in found else None

    def size(self, dim: Dim | None) -> int | None:
        return self.length(dim, {})

    def variables(self, dim: Dim | None, depth: int = 0) -> list[str]:
        """The names that decide about a size."""
        if not isinstance(dim, str) or self.size(dim) is not None:
            return []
        name = self.first(dim)
        if name not in self.made or depth >= DEEPEST:
            return [name]
        return [variable for part in self.made[name][1] for variable in self.variables(part, depth + 1)]

    def equal(self, a: Dim | None, b: Dim | None) -> None:
        """Two axes have one size, unless it is known that they have not."""
        if a is None or b is None or a == b:
            return
        size, other_size = self.size(a), self.size(b)
        if size is not None or other_size is not None:
            if size is None and isinstance(a, str) and other_size is not None:
                self._fix(self.first(a), other_size)
            if other_size is None and isinstance(b, str) and size is not None:
                self._fix(self.first(b), size)
            return
        if not self.loose:
            self._join(self.first(str(a)), self.first(str(b)))

    def _join(self, a: str, b: str) -> None:
        if a == b:
            return
        if a in self.made and b in self.made:
            (number, parts), (other, other_parts) = self.made[a], self.made[b]
            if number == other and len(parts) == len(other_parts):
                self.same(parts, other_parts)
            return
        if b in self.made:
            a, b = b, a
        if b not in self.variables(a):
            self.parents[b] = a

    def _fix(self, name: str, size: int) -> None:
        """A size of 0 is left alone: nothing could be seen to differ."""
        if size <= 0:
            return
        number, parts = self.made.get(name, (1, ()))
        open_parts = [part for part in parts if self.size(part) is None]
        rest = size // number - sum(self.size(part) or 0 for part in parts)
        if parts and (size % number or rest <= 0):
            return
        self.sizes[name] = size
        if len(open_parts) == 1:
            self._fix(self.first(str(open_parts[0])), rest)

    def split(self, dim: Dim | None, number: int) -> Dim | None:
        """The size of an axis divided by a number, of which it is a multiple."""
        if (size := self.size(dim)) is not None:
            return size // number if number and size % number == 0 else None
        if not isinstance(dim, str) or number < 1:
            return None
        name = self.first(dim)
        known, parts = self.made.setdefault(name, (number, (f"{name}/{number}",)))
        return parts[0] if known == number and len(parts) == 1 else None

    def at_least(self, dim: Dim | None, size: int) -> None:
        if isinstance(dim, str):
            self.least[dim] = max(size, self.least.get(dim, 1))

    def total(self, dims: Sequence[Dim | None]) -> Dim | None:
        """The sum of some sizes."""
        parts = tuple(dim for dim in dims if dim is not None)
        if len(parts) < len(dims):
            return None
        sizes = [size for part in parts if (size := self.size(part)) is not None]
        if len(sizes) == len(parts):
            return sum(sizes)
        name = " + ".join(map(str, parts))
        self.made.setdefault(name, (1, parts))
        return name

    def given(self, sizes: Mapping[str, int]) -> Fit:
        """The same, some sizes being given."""
        found = replace(self, sizes=dict(self.sizes))
        for name, size in sizes.items():
            found._fix(found.first(name), size)
            found.sizes[found.first(name)] = size
        return found

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
        if all(dims == known[0] for dims in known):
            return known[0]
        result: list[Dim | None] = []
        for place in range(1, max((len(dims) for dims in known if dims is not None), default=0) + 1):
            axes = [dims[-place] for dims in known if dims is not None and len(dims) >= place]
            wide = [axis for axis in axes if self.size(axis) != 1]
            named = [axis for axis in wide if axis is not None]
            for axis in named[1:]:
                self.equal(named[0], axis)
            result.append(named[0] if named else None if wide else 1)
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

    def vector(self, value: ir.Value | None) -> Dims | None:
        """The contents of a vector of sizes, as far as they are known."""
        if value is None or id(value) in self.vectors:
            return None if value is None else self.vectors[id(value)]
        found = constant(value)
        if found is None or found.ndim > 1 or found.dtype.kind != "i":
            return None
        return tuple(int(size) for size in found.reshape(-1))

    def shape(self, value: ir.Value | None, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
        """The axes of a value as numbers, given the sizes of dynamic dimensions; None unless all are known."""
        dims = self.of(value)
        found = [self.length(dim, sizes) for dim in dims or ()]
        return None if dims is None or None in found else tuple(size for size in found if size is not None)


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
        if isinstance(b, tuple):
            self.meet(a, b)

    def meet(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        """Note where the size of one (input, axis) is known only once the other is computed."""
        for one, other in ((a, b), (b, a)):
            name, value = self.axis(*one), self.value(other[0])
            if (
                isinstance(name, str)
                and value is not None
                and self.axis(*other) is None
                and self.fit.size(name) is None
            ):
                self.fit.meetings.append((name, value, other[1]))

    def fix(self, index: int, *sizes: int | None) -> None:
        """The sizes of the axes of an input, as far as they are given, if it has that many."""
        if self.rank(index) == len(sizes):
            for axis, size in enumerate(sizes):
                self.equal((index, axis), size)

    def reach(self, kernel: Sequence[int], index: int = 0) -> None:
        """A window of the size of `kernel` has to fit into the axes after the second."""
        rank = len(kernel)
        dilations, pads = self.numbers("dilations") or [1] * rank, self.numbers("pads") or [0] * 2 * rank
        if len(dilations) == rank and len(pads) == 2 * rank:
            for axis, (size, dilation) in enumerate(zip(kernel, dilations, strict=True)):
                padded = pads[axis] + pads[axis + rank]
                self.fit.at_least(self.axis(index, axis + 2), dilation * (size - 1) + 1 - padded)

    def number(self, name: str, default: int = 0) -> int:
        return int(self.node.attributes.get_int(name, default))

    def numbers(self, name: str) -> list[int]:
        return [int(item) for item in self.node.attributes.get_ints(name, ())]

    def text(self, name: str, default: str = "") -> str:
        return str(self.node.attributes.get_string(name, default))

    def constant(self, index: int) -> Array | None:
        return constant(self.value(index))


Shapes = Sequence[Dims | None] | None
Rule = Callable[[View], Shapes]
"""Says which sizes belong together, and returns the shapes of the first outputs, as far as they are known."""


def constant(value: ir.Value | None) -> Array | None:
    """The contents of a small constant, whether an initializer or the result of a Constant node."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.size > LARGEST_CONSTANT else tensor.numpy()


Found = TypeVar("Found")


def rule_of(rules: Mapping[str, Found], node: ir.Node) -> Found | None:
    """The rule of an op, `com.microsoft::Attention`, or that of the ops of its name in all domains."""
    return rules.get(f"{node.domain}::{node.op_type}") or rules.get(node.op_type)


def walk(fit: Fit, graph: ir.Graph, rules: Mapping[str, Rule]) -> Fit:
    """Let every node of a graph, and of the graphs inside it, say what it knows."""
    for node in graph:
        view = View(fit, node)
        rule = rule_of(rules, node)
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
