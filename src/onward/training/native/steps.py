"""What a step of a Scan does: products with matrices from outside, and phases of elementwise ops between them.

A phase is one loop over units as wide as all widths have in common. A value that is wider is several variables of that
loop, so that splitting and joining values costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onward.training.native.expressions import PRINTED, UnprintableError, constant
from onward.training.native.regions import Dims, dims_of

MOST_PIECES = 16
"""Units in a value: more variables would not stay in registers."""
LARGEST = 1 << 18
"""Elements of a matrix that stays in a core's cache from step to step."""
PRODUCTS = ("MatMul", "Gemm")
PARTING = ("Split", "Concat")


@dataclass
class Phase:
    """Elementwise ops, and the products that can be computed behind them."""

    known: list[ir.Value] = field(default_factory=list)
    """Values that are there when it begins, and were not before."""
    nodes: list[ir.Node] = field(default_factory=list)
    products: list[ir.Node] = field(default_factory=list)


class Steps:
    """A Scan over rows [time, batch, width] with states [batch, width]. Others raise `UnprintableError`."""

    def __init__(self, scan: ir.Node, before: Sequence[ir.Node] = ()) -> None:
        """`before`: nodes that compute its rows, see `feeding`; they become part of each step."""
        self._body = body = scan.attributes["body"].as_graph()
        count = len(scan.inputs) - scan.attributes["num_scan_inputs"].as_int()
        outer = [given(value) for value in scan.inputs]
        self.states = list(body.inputs)[:count]
        self._outer = dict(zip(list(body.inputs)[count:], outer[count:], strict=True))
        """The rows that the body has a step of."""
        self.outputs = [self._outer.get(value, value) for value in body.outputs]
        self.backwards = _is_backwards(scan)
        made = {output for node in before for output in node.outputs}
        read = [*self._outer.values(), *(value for node in before for value in node.inputs)]
        self.rows = list(dict.fromkeys(value for value in read if value and value not in made and _is_row(value)))
        self.outside: dict[ir.Value, Sequence[int]] = {}
        """Matrices and vectors that all steps read, and their sizes."""
        self.widths: dict[ir.Value, int] = {}
        self.phases = [Phase()]
        self._levels: dict[ir.Value, int] = {}
        self._looped: list[ir.Value] = []
        """Values that are more than operands of products."""
        if not {value for node in body for value in node.inputs}.isdisjoint((*made, *self.rows)):
            raise UnprintableError("steps that read all rows")
        self._begin(outer[:count])
        for node in (*before, *body):
            if node.op_type in PRODUCTS:
                self._multiply(node)
            elif node.op_type != "Constant":
                self._compute(node)
        if any(self._inside(value).dtype != ir.DataType.FLOAT for value in self.outputs):
            raise UnprintableError("an output that is not of floats")
        if any(self.widths[old] != self.widths[new] for old, new in zip(self.states, self.outputs, strict=False)):
            raise UnprintableError("a state that changes its width")
        looped = [self.widths[value] for value in (*self._looped, *self.outputs)]
        self.unit = math.gcd(*looped)
        if max(looped) > MOST_PIECES * self.unit:
            raise UnprintableError("widths have little in common")
        self.inputs = [*outer[:count], *self.rows, *self.outside]
        """Of the kernel."""

    def read(self, node: ir.Node) -> list[ir.Value | None]:
        """The inputs of a node; rows as they are outside of the Scan."""
        return [None if value is None else self._outer.get(value, value) for value in node.inputs]

    def _begin(self, initial: Sequence[ir.Value]) -> None:
        leading = None
        for value in self.rows:
            *dims, width = _dims(value, 3)
            self._know(value, _number(width), 0)
            leading = leading or dims
            if dims != leading:
                raise UnprintableError("rows of several batches or times")
        for state, value in zip(self.states, initial, strict=True):
            batch, width = _dims(value, 2)
            self._know(state, _number(width), 0)
            if leading is None or batch != leading[1]:
                raise UnprintableError("states of several batches")
        self.phases[0].known += [*self.states, *self.rows]

    def _know(self, value: ir.Value, width: int, level: int) -> None:
        self.widths[value], self._levels[value] = width, level

    def _inside(self, value: ir.Value | None) -> ir.Value:
        """A value that steps compute or are given."""
        if value is None or value not in self.widths or value in self.outside:
            raise UnprintableError("a value that no step computes")
        return value

    def _fetch(self, value: ir.Value, rank: int) -> Sequence[int]:
        """A tensor from outside: its sizes."""
        if value.graph is self._body:
            raise UnprintableError(f"{value.name} is not from outside")
        self.outside[value] = [_number(dim) for dim in _dims(value, rank)]
        return self.outside[value]

    def _multiply(self, node: ir.Node) -> None:
        rows, matrix, *added = self.read(node)
        operands = [self._inside(value) for value in (rows, *added)]
        if matrix in self.widths:
            raise UnprintableError("a product of what steps compute")
        depth, columns = self._fetch(given(matrix), 2)
        if [self.widths[value] for value in operands] != [depth, *[columns] * len(added)]:
            raise UnprintableError("a product of other shapes")
        factors = [node.attributes.get_float(key, 1.0) for key in ("alpha", "beta")]
        if factors != [1, 1] or any(node.attributes.get_int(key, 0) for key in ("transA", "transB")):
            raise UnprintableError("a product in another form")
        level = max(self._levels[value] for value in operands)
        self.phases[level].products.append(node)
        if len(self.phases) == level + 1:
            self.phases.append(Phase())
        self.phases[level + 1].known.append(node.outputs[0])
        self._know(node.outputs[0], columns, level + 1)

    def _compute(self, node: ir.Node) -> None:
        values = [value for value in self.read(node) if value is not None]
        if node.op_type in PARTING:
            results = self._parted(node)
        else:
            for value in values:
                if value not in self.widths and constant(value) is None:
                    self._know(value, self._fetch(value, 1)[0], 0)
            results = list({self.widths[value] for value in values if value in self.widths})
        if len(results) != len(node.outputs):
            raise UnprintableError(f"a {node.op_type} of several widths or outputs")
        level = max(self._levels[value] for value in values if value in self._levels)
        for output, width in zip(node.outputs, results, strict=True):
            self._know(output, width, level)
        self._looped += [value for value in (*values, *node.outputs) if value in self.widths]
        self.phases[level].nodes.append(node)

    def _parted(self, node: ir.Node) -> Sequence[int]:
        """The widths of what a Split or Concat gives."""
        first, *others = self.read(node)
        rank = _rank(node.outputs[0])
        axis = node.attributes.get_int("axis", 0)
        if rank is None or axis not in (rank - 1, -1):
            raise UnprintableError(f"a {node.op_type} of sequences")
        whole = self.widths[self._inside(first)]
        if node.op_type == "Concat":
            return [whole + sum(self.widths[self._inside(value)] for value in others)]
        count = len(node.outputs)
        if not others:
            if whole % count:
                raise UnprintableError("parts of several widths")
            return [whole // count] * count
        sizes = ir.convenience.get_const_tensor(given(others[0]))
        if sizes is None:
            raise UnprintableError("parts of widths that are computed")
        return [int(size) for size in sizes.numpy()]

    def lasting(self) -> Iterator[ir.Value]:
        """Values that have to be in memory: what products read and give, and what later phases read."""
        for level, phase in enumerate(self.phases):
            for node in phase.products:
                yield from (value for value in (*self.read(node), *node.outputs) if value in self._levels)
            for node in phase.nodes:
                yield from (value for value in self.read(node) if value and self._levels.get(value, level) < level)


def feeding(graph: ir.Graph, scan: ir.Node) -> list[ir.Node]:
    """Nodes that compute rows of a Scan, and nothing else, row by row."""
    found: list[ir.Node] = []
    for node in reversed(list(graph)):
        users = {user for output in node.outputs for user, _ in output.uses()}
        if (
            node.domain
            or not users
            or not users <= {scan, *found}
            or any(output.is_graph_output() for output in node.outputs)
        ):
            continue
        if _rank(node.outputs[0]) == 3 and (_is_small(node) or node.op_type == "Concat" or node.op_type in PRINTED):
            found.insert(0, node)
    return found


def _is_small(node: ir.Node) -> bool:
    """Whether a node is a product that can as well be computed step by step."""
    dims = None if node.op_type != "MatMul" or node.inputs[1] is None else dims_of(node.inputs[1])
    sizes = [dim for dim in dims or () if isinstance(dim, int)]
    return len(sizes) == 2 and math.prod(sizes) <= LARGEST


def given(value: ir.Value | None) -> ir.Value:
    if value is None:
        raise UnprintableError("an input is left out")
    return value


def _rank(value: ir.Value | None) -> int | None:
    return None if value is None or value.shape is None else value.shape.rank()


def _is_row(value: ir.Value) -> bool:
    return _rank(value) == 3 and constant(value) is None


def _dims(value: ir.Value, rank: int) -> Dims:
    dims = dims_of(value)
    if dims is None or len(dims) != rank or value.dtype != ir.DataType.FLOAT:
        raise UnprintableError(f"{value.name} is not known to be floats of rank {rank}")
    return dims


def _number(dim: int | str) -> int:
    if not isinstance(dim, int) or dim < 1:
        raise UnprintableError(f"a width of {dim}")
    return dim


def _is_backwards(scan: ir.Node) -> bool:
    """Whether all rows go from the last to the first, or else all from the first to the last."""
    if any(axis for key in ("scan_input_axes", "scan_output_axes") for axis in scan.attributes.get_ints(key, ())):
        raise UnprintableError("time is not the first axis")
    ways = {way for kind in ("input", "output") for way in scan.attributes.get_ints(f"scan_{kind}_directions", (0,))}
    if len(ways) != 1:
        raise UnprintableError("rows of several directions")
    return bool(ways.pop())
