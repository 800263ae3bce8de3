"""Ops that hold functions: branches, loops, reductions, windows, sorting; and gathering and scattering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from onward.errors import UnsupportedError
from onward.frontends.stablehlo.reader import RETURNS, Reader
from onward.frontends.stablehlo.registry import outside, rule
from onward.frontends.stablehlo.rules.linear import pairs
from onward.frontends.stablehlo.rules.shape import flag, integers
from onward.frontends.stablehlo.values import Value, as_array, as_sizes, constant

PAIRS: dict[str, Callable[..., Any]] = {
    "stablehlo.add": lax.add,
    "stablehlo.multiply": lax.mul,
    "stablehlo.maximum": lax.max,
    "stablehlo.minimum": lax.min,
    "stablehlo.and": lax.bitwise_and,
    "stablehlo.or": lax.bitwise_or,
    "stablehlo.xor": lax.bitwise_xor,
}
SCATTERS = {
    "stablehlo.add": lax.scatter_add,
    "stablehlo.multiply": lax.scatter_mul,
    "stablehlo.maximum": lax.scatter_max,
    "stablehlo.minimum": lax.scatter_min,
}


def _one(block: Any) -> str:
    """The name of the op that a block is, of its two arguments; 'second' where it gives the second of these."""
    ops = [inner.operation for inner in block.operations]
    if len(ops) == 1 and list(ops[0].operands) == [block.arguments[1]]:
        return "second"
    is_one = len(ops) == 2 and ops[1].name in RETURNS and list(ops[1].operands) == list(ops[0].results)
    return ops[0].name if is_one and set(ops[0].operands) == set(block.arguments) and len(block.arguments) == 2 else ""


# Control flow


@rule("stablehlo.while")
def while_(reader: Reader, op: Any, *given: Value) -> list[Any]:
    values = reader.values
    test, body = (reader.region(op, i, values) for i in (0, 1))
    start = [as_array(value) for value in given]
    if (rounds := _rounds(op, given)) is not None:
        return list(lax.scan(lambda state, _: (body(*state), None), start, None, length=rounds)[0])
    return list(lax.while_loop(lambda state: test(*state)[0], lambda state: body(*state), start))


def _rounds(op: Any, given: Sequence[Value]) -> int | None:
    """How often a loop runs that counts from a number by one up to another; None for others, and for very many."""
    test, body = (region.blocks[0] for region in op.regions)
    ops = [inner.operation for inner in test.operations if inner.operation.name != "stablehlo.constant"]
    if [inner.name for inner in ops] != ["stablehlo.compare", "stablehlo.return"] or _direction(ops[0]) != "LT":
        return None
    counts = [i for i, argument in enumerate(test.arguments) if argument == ops[0].operands[0]]
    limit = _number(ops[0].operands[1], op, given, test)
    start = given[counts[0]] if counts else None
    if limit is None or not isinstance(start, np.ndarray) or list(ops[1].operands) != list(ops[0].results):
        return None
    last = list(body.operations)[-1].operation.operands[counts[0]].owner
    if getattr(last, "name", "") != "stablehlo.add" or body.arguments[counts[0]] not in list(last.operands):
        return None
    steps = [_number(operand, op, given, body) for operand in last.operands]
    is_far = limit - int(start) > np.iinfo(np.int32).max
    return max(limit - int(start), 0) if 1 in steps and not is_far else None


def _number(value: Any, op: Any, given: Sequence[Value], block: Any) -> int | None:
    """A constant integer: one, or a state of a loop that begins as one and stays it."""
    owner = value.owner
    if getattr(owner, "name", "") == "stablehlo.constant":
        found = constant(owner)
        return int(found) if not found.ndim and found.dtype.kind in "iu" else None
    for i, argument in enumerate(block.arguments):
        stays = list(op.regions[1].blocks[0].operations)[-1].operation.operands[i]
        if argument == value and stays == op.regions[1].blocks[0].arguments[i] and isinstance(given[i], np.ndarray):
            return int(given[i]) if not given[i].ndim and given[i].dtype.kind in "iu" else None
    return None


@rule("stablehlo.if")
def if_(reader: Reader, op: Any, test: Value) -> list[Any]:
    yes, no = (reader.region(op, i, reader.values) for i in (0, 1))
    return list(lax.cond(as_array(test), yes, no))


@rule("stablehlo.case")
def case(reader: Reader, op: Any, index: Value) -> list[Any]:
    """What is beyond the last branch is the last; `switch` takes what is below the first for the first."""
    branches = [reader.region(op, i, reader.values) for i in range(len(op.regions))]
    place, last = as_array(index), len(branches) - 1
    return list(lax.switch(lax.select(lax.lt(place, np.int32(0)), np.int32(last), place), branches))


# Reductions


@rule("stablehlo.reduce")
def reduce(reader: Reader, op: Any, *given: Value) -> list[Any]:
    half = len(given) // 2
    arrays, starts = ([as_array(value) for value in part] for part in (given[:half], given[half:]))
    axes, one = integers(op, "dimensions"), _one(op.regions[0].blocks[0])
    if one in PAIRS:
        return [lax.reduce(arrays[0], starts[0], PAIRS[one], axes)]
    if len(arrays) == 2 and len(axes) == 1 and (found := _extreme_place(op, arrays, starts, axes[0])) is not None:
        return found
    body = reader.region(op, 0, reader.values)
    return list(lax.reduce(arrays, starts, lambda a, b: body(*a, *b), axes))


PICKS = (
    *("compare {} 0 2", "compare NE 0 0", "or 4 5", "compare EQ 0 2", "compare LT 1 3", "and 7 8", "or 6 9"),
    *("select 6 0 2", "select 10 1 3", "return 11 12"),
)
"""How JAX chooses the larger of two numbers, or NaN, or the first of equals, with its place."""


def _extreme_place(op: Any, arrays: list[Any], starts: list[Any], axis: int) -> list[Any] | None:
    """The extreme along an axis and its place, where that is what a reduction of numbers beside a count is."""
    counted = op.operands[1].owner
    if getattr(counted, "name", "") not in ("stablehlo.iota", "stablehlo.dynamic_iota"):
        return None
    known = all(isinstance(start, np.ndarray) and not start.ndim for start in starts)
    if counted.attributes["iota_dimension"].value != axis or not known or starts[1] != 0:
        return None
    dtype = starts[0].dtype
    limits = (-np.inf, np.inf) if dtype.kind not in "iu" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    kinds = (("GT", limits[0], lax.reduce_max, lax.argmax), ("LT", limits[1], lax.reduce_min, lax.argmin))
    for direction, start, extreme, place in kinds:
        if starts[0] == start and _outline(op.regions[0].blocks[0]) == [line.format(direction) for line in PICKS]:
            return [extreme(arrays[0], [axis]), place(arrays[0], axis, arrays[1].dtype)]
    return None


def _outline(block: Any) -> list[str]:
    """The ops of a block with numbers for what they read: its arguments, then each result."""
    numbers = {argument: i for i, argument in enumerate(block.arguments)}
    lines = []
    for op in (one.operation for one in block.operations):
        read = [str(numbers.get(operand)) for operand in op.operands]
        lines.append(" ".join([op.name.rpartition(".")[2], *filter(None, [_direction(op)]), *read]))
        for result in op.results:
            numbers[result] = len(numbers)
    return lines


def _direction(op: Any) -> str:
    return str(op.attributes["comparison_direction"]).split()[-1].rstrip(">") if op.name.endswith("compare") else ""


@rule("stablehlo.reduce_window")
def reduce_window(reader: Reader, op: Any, *given: Value) -> list[Any]:
    half = len(given) // 2
    window = integers(op, "window_dimensions")
    ones = [1] * len(window)
    windows = Windows(
        window,
        integers(op, "window_strides") or ones,
        pairs(op, "padding", len(window)),
        integers(op, "base_dilations") or ones,
        integers(op, "window_dilations") or ones,
    )
    body = reader.region(op, 0, reader.values)
    return windows.reduced(given[:half], given[half:], _one(op.regions[0].blocks[0]), body)


@outside("stablehlo.dynamic_reduce_window")
def dynamic_reduce_window(reader: Reader, op: Any, *given: Value) -> list[Any]:
    """Sizes, strides, dilations and padding are the last operands; the function is one of the module."""
    *rest, window, strides, base, dilations, padding = given
    half, flat = len(rest) // 2, as_sizes(padding)
    windows = Windows(
        as_sizes(window),
        as_sizes(strides),
        list(zip(flat[::2], flat[1::2], strict=True)),
        as_sizes(base),
        as_sizes(dilations),
    )
    (name,) = op.attributes["called_computations"]
    block = reader.functions[name.value].regions[0].blocks[0]

    def body(*numbers: Any) -> list[Any]:
        return [as_array(value) for value in reader.call(name.value, numbers)]

    return windows.reduced(rest[:half], rest[half:], _one(block), body)


RUNNING = {
    "stablehlo.add": (lax.cumsum, 0),
    "stablehlo.multiply": (lax.cumprod, 1),
    "stablehlo.maximum": (lax.cummax, -np.inf),
    "stablehlo.minimum": (lax.cummin, np.inf),
}
"""Functions of all that comes before, and the number that they begin with."""


@dataclass(frozen=True)
class Windows:
    """Which numbers a window reads; a number, or a pair of them, for each axis."""

    sizes: list[Any]
    strides: list[Any]
    padding: list[tuple[Any, Any]]
    base: list[Any]
    dilations: list[Any]

    def reduced(self, given: Sequence[Value], starts: Sequence[Value], one: str, body: Callable[..., Any]) -> list[Any]:
        arrays, numbers = ([as_array(value) for value in part] for part in (given, starts))
        options = (self.sizes, self.strides, self.padding, self.base, self.dilations)
        if one not in PAIRS:
            return list(lax.reduce_window(arrays, numbers, lambda a, b: body(*a, *b), *options))
        if one in RUNNING and (running := self._running(arrays[0], numbers[0], *RUNNING[one])) is not None:
            return [running]
        return [lax.reduce_window(arrays[0], numbers[0], PAIRS[one], *options)]

    def _running(self, x: Any, start: Any, function: Callable[..., Any], neutral: float) -> Any:
        """Where the window of each number along one axis is all that comes before it, or after it."""
        axes = [axis for axis, size in enumerate(self.sizes) if size != 1]
        is_plain = all(n == 1 for n in (*self.strides, *self.base, *self.dilations))
        if len(axes) != 1 or not is_plain or x.dtype.kind not in "iuf" or not isinstance(start, np.ndarray):
            return None
        (axis,) = axes
        length, others = x.shape[axis], [pair for i, pair in enumerate(self.padding) if i != axis]
        sides = [(length - 1, 0), (0, length - 1)]
        if x.dtype.kind != "f" and np.isinf(neutral):
            neutral = getattr(np.iinfo(x.dtype), "min" if neutral < 0 else "max")
        if self.sizes[axis] != length or start != neutral or self.padding[axis] not in sides or any(map(any, others)):
            return None
        return function(x, axis, reverse=self.padding[axis] == sides[1] and length != 1)


@rule("stablehlo.select_and_scatter")
def select_and_scatter(reader: Reader, op: Any, x: Value, source: Value, start: Value) -> Any:
    from jax._src.lax import windowed_reductions

    compare = op.regions[0].blocks[0].operations[0].operation
    direction = str(compare.attributes["comparison_direction"]) if compare.name == "stablehlo.compare" else ""
    primitive = lax.ge_p if "GE" in direction else lax.le_p if "LE" in direction else None
    if primitive is None or _one(op.regions[1].blocks[0]) != "stablehlo.add":
        raise UnsupportedError("a select_and_scatter by other than the largest or smallest, or that does not add")
    window = integers(op, "window_dimensions")
    strides = integers(op, "window_strides") or [1] * len(window)
    padding = pairs(op, "padding", len(window))
    data = as_array(x)
    found = windowed_reductions._select_and_scatter_add(as_array(source), data, primitive, window, strides, padding)
    return lax.add(found, lax.broadcast(as_array(start), data.shape))


# Order


@rule("stablehlo.sort")
def sort(reader: Reader, op: Any, *given: Value) -> list[Any]:
    """By the comparison that its function ends with: of pairs of keys, one after the other, up or down."""
    arrays = [as_array(value) for value in given]
    axis, keys, goes_up = op.attributes["dimension"].value, *_order(op)
    if not goes_up:
        arrays = [lax.rev(array, [axis]) for array in arrays]
    found = lax.sort(arrays, dimension=axis, is_stable=True, num_keys=keys)
    return list(found) if goes_up else [lax.rev(array, [axis]) for array in found]


def _order(op: Any) -> tuple[int, bool]:
    """How many keys a sort has, and whether they go up."""
    block = op.regions[0].blocks[0]
    places = list(block.arguments)
    of: dict[Any, set[int]] = {argument: {i} for i, argument in enumerate(places)}
    ups, read = set[bool | None](), set[int]()
    for inner in (one.operation for one in block.operations):
        from_arguments = set[int]().union(*(of.get(operand, set()) for operand in inner.operands))
        of.update(dict.fromkeys(inner.results, from_arguments))
        read |= from_arguments
        if inner.name == "stablehlo.compare":
            direction = _direction(inner)
            if (
                "compare_type" in inner.attributes
                and "TOTALORDER" in str(inner.attributes["compare_type"])
                and all(x in places for x in inner.operands)
            ):
                ups.add(None)  # JAX's own order has one zero and one NaN, and its comparison makes them so
            sides = [{i % 2 for i in of.get(operand, ())} for operand in inner.operands]
            if direction in ("LT", "GT") and sides in ([{0}, {1}], [{1}, {0}]):
                ups.add((direction == "LT") == (sides[0] == {0}))
            elif direction not in ("EQ", "NE"):
                ups.add(None)
    keys = len(read) // 2
    if ups not in ({True}, {False}) or read != set(range(2 * keys)):
        raise UnsupportedError("a sort by a comparison of its own; sort by keys, all of them up or all of them down")
    return keys, ups == {True}


# Places


@rule("stablehlo.gather")
def gather(reader: Reader, op: Any, x: Value, places: Value) -> Any:
    return _gathered(op, x, places, integers(op, "slice_sizes"))


@rule("stablehlo.dynamic_gather")
def dynamic_gather(reader: Reader, op: Any, x: Value, places: Value, sizes: Value) -> Any:
    return _gathered(op, x, places, as_sizes(sizes))


def _gathered(op: Any, x: Value, places: Value, sizes: list[Any]) -> Any:
    axes = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(axes.offset_dims),
        collapsed_slice_dims=tuple(axes.collapsed_slice_dims),
        start_index_map=tuple(axes.start_index_map),
        operand_batching_dims=tuple(axes.operand_batching_dims),
        start_indices_batching_dims=tuple(axes.start_indices_batching_dims),
    )
    index = _vectors_last(as_array(places), axes.index_vector_dim)
    return lax.gather(as_array(x), index, numbers, sizes, mode=lax.GatherScatterMode.CLIP)


def _vectors_last(index: Any, axis: int) -> Any:
    """JAX has the places of a gather along the last axis."""
    if axis == index.ndim:
        return lax.expand_dims(index, [axis])
    order = [a for a in range(index.ndim) if a != axis]
    return index if axis == index.ndim - 1 else lax.transpose(index, [*order, axis])


@rule("stablehlo.scatter")
def scatter(reader: Reader, op: Any, *given: Value) -> Any:
    if len(given) != 3:
        raise UnsupportedError("a scatter into several tensors at once; scatter into each")
    x, places, updates = map(as_array, given)
    axes = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(axes.update_window_dims),
        inserted_window_dims=tuple(axes.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(axes.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(axes.input_batching_dims),
        scatter_indices_batching_dims=tuple(axes.scatter_indices_batching_dims),
    )
    one, index = _one(op.regions[0].blocks[0]), _vectors_last(places, axes.index_vector_dim)
    options = {"mode": lax.GatherScatterMode.FILL_OR_DROP, "unique_indices": flag(op, "unique_indices")}
    if function := lax.scatter if one == "second" else SCATTERS.get(one):
        return function(x, index, updates, numbers, **options)
    body = reader.region(op, 0, reader.values)
    number = jax.ShapeDtypeStruct((), x.dtype)
    closed = jax.make_jaxpr(lambda a, b: body(a, b)[0])(number, number)
    return lax.scatter_p.bind(
        x,
        index,
        updates,
        dimension_numbers=numbers,
        indices_are_sorted=False,
        update_jaxpr=closed.jaxpr,
        update_consts=tuple(closed.consts),
        **options,
    )
