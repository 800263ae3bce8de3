"""Regions of a graph that one loop can compute: ops element by element, and sums that they use or lead to.

All of a region happens in one frame, the shape of its full values. A value that is smaller has for each of its own
dimensions the axis of the frame that it runs along, or None where its size is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onward.graph.walk import all_nodes, inner_graphs
from onward.training.native.expressions import PRINTED, TYPES, UnprintableError, constant, expression

Dims = tuple[int | str, ...]
Axes = tuple[int | None, ...]
SUMS = ("ReduceSum", "ReduceMean")
FORMS = ("Reshape", "Unsqueeze", "Squeeze")
"""Ops that leave the elements in their order."""


def dims_of(value: ir.Value) -> Dims | None:
    """The dimensions, if each is a number or has a name."""
    if value.shape is None or value.dtype not in TYPES:
        return None
    found = [d if isinstance(d, int) else d.value for d in value.shape]
    return tuple(d for d in found if d is not None) if None not in found else None


@dataclass
class Sum:
    """A sum of a full value over axes of the frame."""

    over: frozenset[int]
    axes: Axes
    """Of the result."""
    nodes: tuple[ir.Node, ...]
    """One, or two that follow each other."""

    @property
    def source(self) -> ir.Value:
        found = self.nodes[0].inputs[0]
        assert found is not None
        return found

    @property
    def result(self) -> ir.Value:
        return self.nodes[-1].outputs[0]

    @property
    def mean(self) -> bool:
        return self.nodes[0].op_type == "ReduceMean"

    @property
    def weights(self) -> ir.Value | None:
        """Factors along the last axis: a product with a column."""
        return self.nodes[0].inputs[1] if self.nodes[0].op_type == "MatMul" else None


@dataclass
class Region:
    """Nodes that become one."""

    frame: Dims
    nodes: dict[ir.Node, None] = field(default_factory=dict)
    """In the order in which they were found, as a set."""
    full: set[ir.Node] = field(default_factory=set)
    rows: dict[ir.Value, Axes] = field(default_factory=dict)
    """Values that are one number for each row: sums, and what is computed from them."""
    small: set[ir.Node] = field(default_factory=set)
    """Nodes that compute rows from rows."""
    sums: list[Sum] = field(default_factory=list)
    """Over a row each, for use inside the region or outside."""
    totals: list[Sum] = field(default_factory=list)
    """Over all rows, for use outside."""

    @property
    def over(self) -> frozenset[int] | None:
        """The axes of a row, if sums have settled them."""
        if self.sums:
            return self.sums[0].over
        return frozenset(self.long) - self.totals[0].over if self.totals else None

    @property
    def long(self) -> list[int]:
        """The axes of the frame that are not of size 1."""
        return [axis for axis, dim in enumerate(self.frame) if dim != 1]

    def spread(self, dims: Dims, onto: Axes) -> Axes | None:
        """The axes of a value of these dimensions that is broadcast onto one that runs along `onto`."""
        if len(dims) > len(onto):
            return None
        found: list[int | None] = []
        for dim, axis in zip(reversed(dims), reversed(onto), strict=False):
            if dim != 1 and (axis is None or self.frame[axis] != dim):
                return None
            found.append(None if dim == 1 else axis)
        return tuple(reversed(found))

    def whole(self) -> Axes:
        return tuple(None if dim == 1 else axis for axis, dim in enumerate(self.frame))

    def add(self, node: ir.Node) -> bool:
        """Take a node in, if it is of a kind that the region can compute; whether the graph allows it is not asked."""
        return self._add_full(node) or self._add_sum(node) or self._add_small(node)

    def _add_full(self, node: ir.Node) -> bool:
        if dims_of(node.outputs[0]) != self.frame or len(node.outputs) != 1 or not printable(node):
            return False
        if any(v is not None and not self._reads(v, self.whole()) for v in node.inputs):
            return False
        self.nodes[node] = None
        self.full.add(node)
        return True

    def _reads(self, value: ir.Value, onto: Axes) -> bool:
        """Whether a value can be read where one that runs along `onto` is computed."""
        if constant(value) is not None:
            return True
        if any(value is total.result for total in self.totals):
            return False
        dims = dims_of(value)
        axes = None if dims is None else self.spread(dims, onto)
        return axes is not None and self.rows.get(value, axes) == axes

    def _add_sum(self, node: ir.Node) -> bool:
        found = self._sum(node)
        if found is None or not found.over or any(n in self.nodes for n in found.nodes):
            return False
        long = self.long
        if len(found.over) == len(long):
            return False
        if long[-1] in found.over:
            if self.over not in (None, found.over):
                return False
            if self.totals and not self.sums and found.over != self.over:
                return False
            self.sums.append(found)
            self.rows[found.result] = found.axes
        else:
            rest = frozenset(long) - found.over
            used = any(user in self.nodes for user, _ in found.result.uses())
            if used or found.mean or max(found.over) > min(rest) or self.over not in (None, rest):
                return False
            self.totals.append(found)
        self.nodes.update(dict.fromkeys(found.nodes))
        return True

    def _sum(self, node: ir.Node) -> Sum | None:
        """What a node, or two in a row, sum of a full value."""
        if node.op_type == "MatMul" and node.domain == "":
            return self._product(node)
        if node.op_type not in SUMS or node.domain != "" or node.inputs[0] is None:
            return None
        users = [user for user, _ in node.outputs[0].uses()]
        if node.op_type == "ReduceSum" and _only_use(node.outputs[0]) and users[0].op_type == "ReduceSum":
            return self._sum(users[0]) if users[0].inputs[0] is node.outputs[0] else None
        before = node.inputs[0].producer()
        if before is not None and before.op_type == "ReduceSum" == node.op_type and _only_use(node.inputs[0]):
            first = self._reduced(before, self.whole())
            if first is None or dims_of(before.inputs[0] or node.outputs[0]) != self.frame:
                return None
            second = self._reduced(node, first[1])
            if second is None or before.inputs[0] is None:
                return None
            over = first[0] | second[0]
            return Sum(over, second[1], (before, node))
        if dims_of(node.inputs[0]) != self.frame:
            return None
        found = self._reduced(node, self.whole())
        return None if found is None else Sum(*found, (node,))

    def _reduced(self, node: ir.Node, axes: Axes) -> tuple[frozenset[int], Axes] | None:
        """The axes of the frame that a node sums over, and those of its result."""
        given = ir.convenience.get_const_tensor(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] else None
        if given is None or not given.size or node.outputs[0].dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
            return None
        gone = {int(axis) % len(axes) for axis in given.numpy().reshape(-1)}
        keep = node.attributes.get("keepdims")
        keepdims = keep is None or keep.as_int() == 1
        over = frozenset(axis for i, axis in enumerate(axes) if i in gone and axis is not None)
        left = tuple(None if i in gone else axis for i, axis in enumerate(axes) if keepdims or i not in gone)
        return over, left

    def _product(self, node: ir.Node) -> Sum | None:
        """A matrix product with one column: a weighted sum over the last axis."""
        source, column = node.inputs
        if source is None or column is None or dims_of(source) != self.frame or len(self.frame) < 2:
            return None
        last = len(self.frame) - 1
        if dims_of(column) != (self.frame[last], 1) or self.frame[last] == 1 or source.dtype != ir.DataType.FLOAT:
            return None
        return Sum(frozenset({last}), (*self.whole()[:-1], None), (node,))

    def _add_small(self, node: ir.Node) -> bool:
        """A node that computes one number for each row from others."""
        own = [value for value in node.inputs if value is not None and value in self.rows]
        dims = dims_of(node.outputs[0]) if len(node.outputs) == 1 else None
        if not own or dims is None or dims == self.frame:
            return False
        if node.op_type in FORMS and node.domain == "":
            axes = self._formed(self.rows[own[0]], dims) if own[0] is node.inputs[0] else None
        else:
            axes = self._aligned(own, dims) if printable(node) else None
            if axes is not None and any(v is not None and not self._reads(v, axes) for v in node.inputs):
                axes = None
        if axes is None:
            return False
        self.rows[node.outputs[0]] = axes
        self.nodes[node] = None
        self.small.add(node)
        return True

    def _formed(self, axes: Axes, dims: Dims) -> Axes | None:
        """The axes of the same elements in other dimensions, which differ by those of size 1."""
        left = [axis for axis in axes if axis is not None]
        if [self.frame[axis] for axis in left] != [dim for dim in dims if dim != 1]:
            return None
        rest = iter(left)
        return tuple(None if dim == 1 else next(rest) for dim in dims)

    def _aligned(self, own: Sequence[ir.Value], dims: Dims) -> Axes | None:
        """The axes of what rows are combined to: of the one that has all of them."""
        for value in own:
            if dims_of(value) == dims:
                return self.rows[value]
        return None

    def remove(self, node: ir.Node) -> None:
        """Undo the last addition, which was this node."""
        gone = {node}
        for sums in (self.sums, self.totals):
            if sums and node in sums[-1].nodes:
                gone.update(sums[-1].nodes)
                self.rows.pop(sums.pop().result, None)
                break
        self.rows.pop(node.outputs[0], None)
        for removed in gone:
            self.nodes.pop(removed, None)
        self.full -= gone
        self.small -= gone


def _only_use(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


def printable(node: ir.Node) -> bool:
    """Whether a node goes element by element, and can be printed."""
    if node.op_type not in PRINTED or node.domain != "" or any(v.dtype not in TYPES for v in node.outputs):
        return False
    try:
        expression(node, ["x"] * len(node.inputs))
    except UnprintableError:
        return False
    return True


class Reach:
    """Which nodes of a graph lead to which, as bits of numbers."""

    def __init__(self, graph: ir.Graph) -> None:
        self.nodes = list(graph)
        self.index = {node: i for i, node in enumerate(self.nodes)}
        self.before = [0] * len(self.nodes)
        self.after = [0] * len(self.nodes)
        reads = [self._reads(node) for node in self.nodes]
        for i, sources in enumerate(reads):
            for j in sources:
                self.before[i] |= self.before[j] | 1 << j
        for i in range(len(self.nodes) - 1, -1, -1):
            for j in reads[i]:
                self.after[j] |= self.after[i] | 1 << i

    def _reads(self, node: ir.Node) -> set[int]:
        inner = [value for graph in inner_graphs(node) for n in all_nodes(graph) for value in n.inputs]
        given = [value for graph in inner_graphs(node) for value in graph.outputs]
        producers = (value.producer() for value in (*node.inputs, *inner, *given) if value is not None)
        return {self.index[p] for p in producers if p is not None and p in self.index}

    def together(self, nodes: Iterable[ir.Node]) -> tuple[int, int, int]:
        """The bits of nodes, and of all before and after them."""
        own = before = after = 0
        for node in nodes:
            i = self.index[node]
            own |= 1 << i
            before |= self.before[i]
            after |= self.after[i]
        return own, before, after

    def closed(self, nodes: Iterable[ir.Node]) -> bool:
        """Whether no way leads out of the nodes and back in: they can be one node."""
        own, before, after = self.together(nodes)
        return not before & after & ~own

    def join(self, nodes: Iterable[ir.Node]) -> None:
        """From now on the nodes are one."""
        own, before, after = self.together(nodes)
        for i in range(len(self.nodes)):
            if (own | after) >> i & 1:
                self.before[i] |= (before | own) & ~(1 << i)
            if (own | before) >> i & 1:
                self.after[i] |= (after | own) & ~(1 << i)


def regions(graph: ir.Graph) -> list[Region]:
    """The regions of a graph, the last nodes first."""
    reach = Reach(graph)
    taken: set[ir.Node] = set()
    found = []
    for seed in reversed(reach.nodes):
        if seed in taken or len(seed.outputs) != 1 or not (printable(seed) or seed.op_type in SUMS):
            continue
        value = seed.inputs[0] if seed.op_type in SUMS else seed.outputs[0]
        frame = None if value is None else dims_of(value)
        if frame is None or all(dim == 1 for dim in frame):
            continue
        region = Region(frame)
        if left_to_runtime(seed) or not region.add(seed):
            continue
        grow(region, reach, taken)
        if worthwhile(region):
            taken.update(region.nodes)
            reach.join(region.nodes)
            found.append(region)
    return found


SLOW = ("Where", "Gelu", "Erf")
"""Ops whose own kernels of ONNX Runtime are slower than a loop."""


def worthwhile(region: Region) -> bool:
    """Whether a loop spares memory a pass."""
    counted = [node for node in region.nodes if node.op_type not in ("Identity", "Cast", *FORMS)]
    return len(counted) > 1 or any(node.op_type in SLOW for node in counted)


def grow(region: Region, reach: Reach, taken: set[ir.Node]) -> None:
    """Take in neighbours as long as there are some that fit."""
    refused: set[ir.Node] = set()
    changed = True
    while changed:
        changed = False
        for node in list(_neighbours(region)):
            if node in region.nodes or node in taken or node in refused or node not in reach.index:
                continue
            if left_to_runtime(node):
                refused.add(node)
                continue
            if not region.add(node):
                continue
            if reach.closed(region.nodes) and taken.isdisjoint(region.nodes) and _sound(region):
                changed = True
            else:
                region.remove(node)


def _sound(region: Region) -> bool:
    """Whether nothing in the region reads what is only known at its end, and rows are read as they were written."""
    for total in region.totals:
        if any(user in region.nodes for user, _ in total.result.uses()):
            return False
    for found in region.sums:
        if found.weights is not None and found.weights.producer() in region.nodes:
            return False
    for value, axes in region.rows.items():
        dims = dims_of(value)
        for user, _ in value.uses():
            if user in region.full and (dims is None or region.spread(dims, region.whole()) != axes):
                return False
            if user in region.small and user.op_type not in FORMS:
                onto = region.rows[user.outputs[0]]
                if dims is None or region.spread(dims, onto) != axes:
                    return False
    return True


def _neighbours(region: Region) -> Iterator[ir.Node]:
    for node in list(region.nodes):
        for value in node.outputs:
            for user, _ in value.uses():
                yield user
        for read in node.inputs:
            producer = None if read is None else read.producer()
            if producer is not None:
                yield producer
            if read is not None and dims_of(read) == region.frame:
                for user, _ in read.uses():
                    if user.op_type in SUMS:
                        yield user


HEAVY = ("Conv", "Gemm", "MatMul", "ConvTranspose")


def left_to_runtime(node: ir.Node) -> bool:
    """Whether ONNX Runtime makes one op of this node and a matrix product or convolution before it."""
    producers = [value.producer() for value in node.inputs if value is not None]
    heavy = any(producer is not None and producer.op_type in HEAVY for producer in producers)
    if node.op_type == "Relu":
        biased = next((p for p in producers if p is not None and p.op_type == "Add"), None)
        return heavy or (biased is not None and left_to_runtime(biased))
    if node.op_type == "Add" and heavy:
        return any(value is not None and value.producer() is None and _rank(value) == 1 for value in node.inputs)
    return False


def _rank(value: ir.Value) -> int | None:
    return None if value.shape is None else value.shape.rank()
