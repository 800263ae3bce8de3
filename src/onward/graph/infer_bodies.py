"""Types of what nodes with graphs inside give: If, Loop, Scan, SequenceMap."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import onnx_ir as ir

Dims = tuple[int | str | None, ...]


class Kind(NamedTuple):
    """A type and the shape of its tensors; nothing is known where both are None."""

    type: ir.TypeProtocol | None
    dims: Dims | None

    def without_shape(self) -> "Kind":
        return Kind(self.type, None)


UNKNOWN = Kind(None, None)
COUNTER = Kind(ir.TensorType(ir.DataType.INT64), ())
FLAG = Kind(ir.TensorType(ir.DataType.BOOL), ())

TAKEN = "onward.branch_taken"
"""Where an If keeps whether its condition is known to be true or false, because it follows from shapes."""

DEEPEST = 2
"""Loops inside more loops than this are taken to change every shape, so that time stays linear in nesting."""


class Inner(Protocol):
    """What an inference of the model does for these."""

    depth: int

    def inside(self, graph: ir.Graph, inputs: Sequence[Kind]) -> list[Kind]:
        """The kinds of a body's outputs, given those of its inputs."""
        ...

    def decided(self, condition: ir.Value | None) -> bool | None:
        """The one value that a condition can have, or None."""
        ...


def kind_of(value: ir.Value | None) -> Kind:
    if value is None or value.type is None:
        return UNKNOWN
    dims = None if value.shape is None else tuple([d if isinstance(d, int) else d.value for d in value.shape])
    return Kind(value.type, dims)


def join(a: Kind, b: Kind) -> Kind:
    """What is true of both."""
    if a.type is None or a.type != b.type:
        return UNKNOWN
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return Kind(a.type, None)
    return Kind(a.type, tuple(m if m == n else None for m, n in zip(a.dims, b.dims, strict=True)))


def _if(inner: Inner, node: ir.Node) -> list[Kind]:
    branches = [inner.inside(node.attributes[name].as_graph(), []) for name in ("then_branch", "else_branch")]
    taken = node.meta[TAKEN] = inner.decided(node.inputs[0])
    if taken is not None:
        return branches[0 if taken else 1]
    return [join(a, b) for a, b in zip(*branches, strict=False)]


def _repeated(
    inner: Inner, body: ir.Graph, states: list[Kind], inputs: Callable[[list[Kind]], list[Kind]], skip: int
) -> tuple[list[Kind], list[Kind]]:
    """States and other outputs of a body that is run many times: shapes that change on the way are not known.

    `inputs` gives the body's inputs for given states; `skip` outputs come before the states.
    """
    if inner.depth >= DEEPEST:
        states = [state.without_shape() for state in states]
    for _ in range(3):
        outputs = inner.inside(body, inputs(states))[skip:]
        wider = [_widened(old, new) for old, new in zip(states, outputs, strict=False)]
        if wider == states:
            return states, outputs[len(states) :]
        states = wider
    states = [state.without_shape() for state in states]
    outputs = inner.inside(body, inputs(states))[skip:]
    return states, outputs[len(states) :]


def _widened(state: Kind, after: Kind) -> Kind:
    """What is true before and after a round; the element type cannot change."""
    if state.type is None:
        return after.without_shape()
    return join(state, after) if after.type == state.type else state.without_shape()


def _loop(inner: Inner, node: ir.Node) -> list[Kind]:
    states = [kind_of(value) for value in node.inputs[2:]]
    body = node.attributes["body"].as_graph()
    states, rows = _repeated(inner, body, states, lambda states: [COUNTER, FLAG, *states], skip=1)
    return [*states, *(_stacked(row, 0, None) for row in rows)]


def _stacked(row: Kind, axis: int, length: int | str | None) -> Kind:
    if row.dims is None:
        return row
    at = axis if axis >= 0 else axis + len(row.dims) + 1
    return Kind(row.type, (*row.dims[:at], length, *row.dims[at:]))


def _scan(inner: Inner, node: ir.Node) -> list[Kind]:
    body, count = node.attributes["body"].as_graph(), node.attributes["num_scan_inputs"].as_int()
    operands = [kind_of(value) for value in node.inputs]
    split = len(operands) - count
    rows, length = [], None
    for kind, axis in zip(operands[split:], _ints(node, "scan_input_axes", count), strict=False):
        if kind.dims is None:
            rows.append(kind)
            continue
        at = axis % len(kind.dims)
        length = kind.dims[at]
        rows.append(Kind(kind.type, (*kind.dims[:at], *kind.dims[at + 1 :])))
    states, made = _repeated(inner, body, operands[:split], lambda states: [*states, *rows], skip=0)
    axes = _ints(node, "scan_output_axes", len(made))
    return [*states, *(_stacked(row, axis, length) for row, axis in zip(made, axes, strict=False))]


def _ints(node: ir.Node, name: str, count: int) -> Sequence[int]:
    attribute = node.attributes.get(name)
    return [0] * count if attribute is None else attribute.as_ints()


def _sequence_map(inner: Inner, node: ir.Node) -> list[Kind]:
    inputs = [_element(kind_of(value)) for value in node.inputs]
    outputs = inner.inside(node.attributes["body"].as_graph(), inputs)
    return [UNKNOWN if k.type is None else Kind(ir.SequenceType(k.type), k.dims) for k in outputs]


def _element(kind: Kind) -> Kind:
    type_: Any = kind.type
    return Kind(type_.elem_type, kind.dims) if isinstance(type_, ir.SequenceType) else kind


BODIES: dict[str, Callable[[Inner, ir.Node], list[Kind]]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
