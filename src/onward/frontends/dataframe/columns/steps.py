"""Choices among constants by where one number lies: one node finds the interval, and a table has what is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.dataframe.tensors import bins, lookup
from onward.graph.build import Builder, Tensor

Array = npt.NDArray[Any]
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **COMPARISONS,
    "And": np.logical_and,
    "IsNaN": np.isnan,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Where": np.where,
    "Xor": np.logical_xor,
}


LOGICAL = ("And", "Not", "Or", "Xor", "Where")
WORTH = 8
"""What the nodes of a choice must take at least in all, where a comparison takes 1 and `Where` 3."""


@dataclass(frozen=True)
class Source:
    """What a value depends on alone: where a number lies, and whether a mask holds."""

    number: ir.Value | None
    mask: ir.Value | None = None


def join_steps(op: Builder) -> None:
    """Join `Where` of `Where` whose conditions compare one number with constants, in the graph of a builder.

    A mask may take part, if where it holds (or where it does not) always the same is chosen. Exact for every value:
    what the nodes choose is computed at each constant, between any two of them, and for NaN.
    """
    sources = _sources(op.graph)
    chosen: dict[ir.Value, list[ir.Value]] = {}
    for node in op.graph:
        value = node.outputs[0]
        number = sources[value].number if value in sources else None
        if number is not None and _leaves(value, sources) and _is_worth(node, sources):
            chosen.setdefault(number, []).append(value)
    for number, values in chosen.items():
        if any(value.dtype != ir.DataType.BOOL for value in values):
            _joined(op, number, {value: sources[value].mask for value in values})


def _sources(graph: ir.Graph) -> dict[ir.Value, Source]:
    found: dict[ir.Value, Source] = {}
    for node in graph:
        if node.op_type in FUNCTIONS and len(node.outputs) == 1:
            given = [value for value in node.inputs if value is not None and _constant(value) is None]
            of = [found[value] if value in found else _source(value, node) for value in given]
            numbers = {source.number for source in of if source is not None} - {None}
            masks = {source.mask for source in of if source is not None} - {None}
            if None not in of and len(numbers) <= 1 and len(masks) <= 1 and numbers | masks:
                found[node.outputs[0]] = Source(next(iter(numbers), None), next(iter(masks), None))
    return found


def _source(value: ir.Value, node: ir.Node) -> Source | None:
    """What a node reads that nothing is known of, as the number or the mask that its result depends on."""
    is_test = node.op_type in COMPARISONS or node.op_type == "IsNaN"
    if is_test and len({each for each in node.inputs if each is not None and _constant(each) is None}) == 1:
        return Source(value) if _is_number(value, node) else None
    return Source(None, value) if value.dtype == ir.DataType.BOOL and node.op_type in LOGICAL else None


def _is_number(source: ir.Value, node: ir.Node) -> bool:
    """Whether it is a column of numbers whose side of the constants beside it a float can tell."""
    if source.shape is None or source.shape.rank() != 2 or source.shape[1] != 1:
        return False
    if source.dtype == ir.DataType.DOUBLE:
        return True
    beside = [number for value in node.inputs if value is not None and (number := _constant(value)) is not None]
    return source.dtype == ir.DataType.INT64 and all(abs(int(number)) < bins.EXACT - 1 for number in beside)


def _constant(value: ir.Value) -> Any:
    """The single element of a constant; None of anything else."""
    tensor = value.const_value
    if tensor is None or tensor.size != 1 or value.is_graph_input():
        return None
    return tensor.numpy().reshape(-1)[0]


def _leaves(value: ir.Value, sources: dict[ir.Value, Source]) -> bool:
    """Whether something reads it that depends on more."""
    return value.is_graph_output() or any(use.node.outputs[0] not in sources for use in value.uses())


def _is_worth(node: ir.Node, sources: dict[ir.Value, Source]) -> bool:
    """Whether the nodes behind it take longer than a table."""
    seen: set[ir.Node] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            made = [value.producer() for value in each.inputs if value is not None and value in sources]
            waiting += [other for other in made if other is not None]
    return sum(3 if each.op_type == "Where" else 1 for each in seen) >= WORTH


def _joined(op: Builder, number: ir.Value, masks: dict[ir.Value, ir.Value | None]) -> None:
    """Replace values that depend on one number, and each on a mask."""
    assert number.dtype is not None
    edges = np.unique(np.asarray(sorted(_edges(number, list(masks))), number.dtype.numpy()))
    if not len(edges):
        return
    tops, points = _intervals(edges)
    rows: dict[ir.Value, Array] = {}
    others: dict[ir.Value, tuple[bool, Any]] = {}
    for value, mask in masks.items():
        if mask is None:
            rows[value] = _computed(value, {number: points})
        else:
            sides = [_computed(value, {number: points, mask: np.full(len(points), truth)}) for truth in (False, True)]
            constant = [all(_same([cell], [side[0]]) for cell in side) for side in sides]
            if not any(constant):
                return
            # Where the mask has this truth, it is always the same; the number decides where it has not.
            truth = constant[1]
            rows[value], others[value] = sides[not truth], (truth, sides[truth][0])
    columns = list(zip(*rows.values(), strict=True))
    nan = columns.pop() if points.dtype.kind == "f" else columns[-1]
    if not _same(nan, columns[0]) and not _same(nan, columns[-1]):
        tops, columns = [*tops, np.inf], [*columns, nan]
    kept = [place for place in range(len(columns) - 1) if not _same(columns[place], columns[place + 1])]
    borders = np.asarray([tops[place] for place in kept], points.dtype)
    tables = [_array(cells) for cells in zip(*[columns[place] for place in [*kept, -1]], strict=True)]
    is_low = _same(nan, columns[0]) and not _same(nan, columns[-1])
    x = op.tensor(number)
    if len(rows) == 1 and _is_plain(tables[0]):
        made = [bins.steps(x, borders, tables[0].astype(np.float64), right=True, nan_is_low=is_low)]
    else:
        place = bins.steps(x, borders, np.arange(len(kept) + 1.0), right=True, nan_is_low=is_low)
        made = [look_up(place, table) for table in tables]
    for value, tensor in zip(rows, made, strict=True):
        assert value.dtype is not None
        tensor, mask = tensor.cast(value.dtype), masks[value]
        if mask is not None:
            tensor = _unless(op.tensor(mask), *others[value], tensor)
        value.replace_all_uses_with(tensor.value, replace_graph_outputs=True)


def _unless(mask: Tensor, truth: bool, other: Any, tensor: Tensor) -> Tensor:
    """A tensor, and a constant where a mask is true, or where it is false."""
    op = tensor.op
    if tensor.dtype == ir.DataType.BOOL:
        if other:
            return op.Or(tensor, mask if truth else op.Not(mask))
        return op.And(tensor, op.Not(mask) if truth else mask)
    if isinstance(other, bytes):
        constant = op.strings(np.asarray([[other]], object))
    else:
        constant = op.constant(np.asarray([[other]]), tensor.dtype)
    return op.Where(mask, constant, tensor) if truth else op.Where(mask, tensor, constant)


def _array(cells: Sequence[Any]) -> Array:
    return np.asarray(cells, object if isinstance(cells[0], bytes) else None)


def look_up(place: Tensor, table: Array) -> Tensor:
    """What a table has at a place, which is a float; numbers other than int64 come as float64."""
    if table.dtype != np.int64 and table.dtype.kind in "biuf":
        table = table.astype(np.float64)
    return lookup.encoded(place, list(np.arange(float(len(table)))), table, table[0])


def _is_plain(table: Array) -> bool:
    """Whether a sum of floats that starts from 0 has each of its numbers: all but -0.0 and large integers."""
    if table.dtype.kind in "iu":
        return all(abs(int(number)) < bins.EXACT for number in table)
    return table.dtype.kind == "b" or (table.dtype.kind == "f" and not (np.signbit(table) & (table == 0)).any())


def _edges(source: ir.Value, values: Sequence[ir.Value]) -> set[Any]:
    """The constants with which a number is compared."""
    found: set[Any] = set()
    seen: set[ir.Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        node = value.producer()
        if value in seen or value is source or node is None:
            continue
        seen.add(value)
        inputs = [each for each in node.inputs if each is not None]
        if source in inputs:
            found |= {number for each in inputs if (number := _constant(each)) is not None and number == number}
        waiting += inputs
    return found


def _intervals(edges: Array) -> tuple[list[Any], Array]:
    """The highest number of each interval but the last, and a number of each; then NaN of floats."""
    is_float = edges.dtype.kind == "f"
    tops: list[Any] = []
    for edge in edges:
        below = np.nextafter(edge, -np.inf) if is_float else edge - 1
        if below < edge and (not tops or below > tops[-1]):
            tops.append(below)
        tops.append(edge)
    if is_float:
        return tops, np.asarray([*tops, np.inf, np.nan])
    return tops, np.asarray([*tops, edges[-1] + 1], edges.dtype)


def _computed(value: ir.Value, given: Mapping[ir.Value, Array]) -> Array:
    """What a value is where those that it depends on have given values."""
    known = dict(given)
    count = len(next(iter(given.values())))

    def found(value: ir.Value) -> Array:
        if value not in known:
            tensor, node = value.const_value, value.producer()
            if node is None:
                assert tensor is not None
                known[value] = np.repeat(tensor.numpy().reshape(-1), count)
            else:
                known[value] = FUNCTIONS[node.op_type](*[found(each) for each in node.inputs if each is not None])
        return known[value]

    return found(value)


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether all are the same, to the sign of 0; NaN is NaN."""
    return all(x == y if isinstance(x, bytes) else x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))
