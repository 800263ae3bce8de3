"""What ops that move elements around say about the sizes of their inputs, see `linked_sizes`."""

from __future__ import annotations

import math

from onward.graph.slots import Dim
from onward.verification.data.linked_sizes import Dims, Rule, Shapes, View

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

LONGEST_VECTOR = 64
"""Of sizes; longer ones are data."""


def first(v: View) -> Shapes:
    """The shape of the first input."""
    return [v.dims(0)] * len(v.node.outputs)


def _transpose(v: View) -> Shapes:
    dims = v.dims(0)
    if dims is None:
        return None
    perm = v.numbers("perm") or range(len(dims))[::-1]
    return [tuple(dims[axis] for axis in perm)] if sorted(perm) == list(range(len(dims))) else None


def _concat(v: View) -> Shapes:
    shapes = [v.dims(i) for i in range(len(v.node.inputs))]
    first = shapes[0]
    if first is None or not first:
        return None
    axis = v.number("axis", 1) % len(first)
    for index in range(1, len(shapes)):
        for other in range(len(first)):
            if other != axis:
                v.equal((index, other), (0, other))
    total = v.fit.total([dims[axis] if dims is not None and len(dims) > axis else None for dims in shapes])
    return [(*first[:axis], total, *first[axis + 1 :])]


def _axes(v: View) -> list[int] | None:
    given = v.constant(1)
    return v.numbers("axes") or (None if given is None else [int(axis) for axis in given.reshape(-1)])


def _squeeze(v: View) -> Shapes:
    dims, axes = v.dims(0), _axes(v)
    v.equal((1, 0), 1)
    if dims is None or axes is None:
        if dims is not None and v.value(1) is not None:
            v.equal((0, 0), 1)
        return None
    gone = [axis % len(dims) for axis in axes]
    for axis in gone:
        v.equal((0, axis), 1)
    return [tuple(dim for axis, dim in enumerate(dims) if axis not in gone)]


def _unsqueeze(v: View) -> Shapes:
    dims, axes = v.dims(0), _axes(v)
    v.equal((1, 0), 1)
    if dims is None or axes is None:
        return None
    rank = len(dims) + len(axes)
    places = {axis % rank for axis in axes}
    rest = iter(dims)
    return [tuple(1 if axis in places else next(rest) for axis in range(rank))]


def _gather(v: View) -> Shapes:
    data, indices = v.dims(0), v.dims(1)
    if data is None or indices is None:
        return None
    axis = v.number("axis") % max(len(data), 1)
    return [(*data[:axis], *indices, *data[axis + 1 :])]


def _same_shape(v: View) -> Shapes:
    """GatherElements, ScatterElements: everything as large as the data."""
    for index in range(1, len(v.node.inputs)):
        v.fit.same(v.dims(index), v.dims(0))
    return [v.dims(1 if v.node.op_type == "GatherElements" else 0)]


def _gather_nd(v: View) -> Shapes:
    batch = v.number("batch_dims")
    v.equal((1, -1), 1)
    for axis in range(batch):
        v.equal((1, axis), (0, axis))
    return None


def _scatter_nd(v: View) -> Shapes:
    data, indices, updates = v.dims(0), v.dims(1), v.dims(2)
    if data is not None and indices is not None and updates is not None:
        picked = len(indices) - 1 + len(data) - len(updates)
        v.equal((1, -1), picked)
        for axis in range(len(indices) - 1):
            v.equal((2, axis), (1, axis))
        for axis in range(picked, len(data)):
            v.equal((2, len(indices) - 1 + axis - picked), (0, axis))
    return [data]


def _per_rank(v: View, index: int = 1, times: int = 1) -> Shapes:
    """A vector with a number for each axis of the first input."""
    rank = v.rank()
    v.equal((index, 0), None if rank is None else rank * times)
    return None


def _pad(v: View) -> Shapes:
    v.equal((2, 0), 1)
    if v.value(3) is None:
        return _per_rank(v, 1, times=2)
    axes = _constant_length(v, 3) or v.rank()
    v.equal((3, 0), axes)
    v.equal((1, 0), axes and 2 * axes)
    return None


def _constant_length(v: View, index: int) -> int | None:
    found = v.constant(index)
    return None if found is None else int(found.size)


def _slice(v: View) -> Shapes:
    lengths = [_constant_length(v, index) for index in range(1, 5)]
    length = next((n for n in lengths if n), None) or v.rank()
    for index in range(1, 5):
        v.equal((index, 0), length)
    dims, axes = v.dims(0), v.constant(3)
    if dims is None or axes is None:
        return None
    cut = {int(axis) % len(dims) for axis in axes.reshape(-1)}
    return [tuple(None if axis in cut else dim for axis, dim in enumerate(dims))]


def _resize(v: View) -> Shapes:
    rank = v.rank()
    axes = len(v.numbers("axes")) or rank
    late = 1 if len(v.node.inputs) > 2 else 0
    v.equal((late, 0), axes and 2 * axes if late else axes)
    for index in range(late + 1, 4):
        v.equal((index, 0), axes)
    return [(*([None] * rank),)] if rank else None


def _reduce(v: View) -> Shapes:
    rank, axes = v.rank(), _axes(v)
    v.equal((1, 0), 1)
    dims = v.dims(0)
    if dims is None or rank is None or axes is None or not axes:
        return None
    gone = {axis % rank for axis in axes}
    if v.number("keepdims", 1):
        return [tuple(1 if axis in gone else dim for axis, dim in enumerate(dims))]
    return [tuple(dim for axis, dim in enumerate(dims) if axis not in gone)]


def _split(v: View) -> Shapes:
    v.equal((1, 0), len(v.node.outputs))
    axis, parts = v.number("axis"), v.number("num_outputs") or len(v.node.outputs)
    dim = v.axis(0, axis)
    explicit = v.numbers("split")
    given = v.constant(1)
    explicit = explicit or ([int(size) for size in given.reshape(-1)] if given is not None else [])
    v.equal((0, axis), sum(explicit) if explicit else 2 * parts)
    dims = v.dims(0)
    if dims is None or not isinstance(dim, int | str):
        return None
    total = v.fit.size(dim)
    sizes: list[int | None] = list(explicit) if explicit else [total // parts if total else None] * parts
    place = axis % len(dims)
    return [(*dims[:place], size, *dims[place + 1 :]) for size in sizes]


def _shape(v: View) -> Shapes:
    dims = v.dims(0)
    if dims is None:
        return None
    end = v.number("end", len(dims))
    v.fit.vectors[id(v.node.outputs[0])] = found = dims[v.number("start") : end]
    return [(len(found),)]


def _kept(v: View) -> None:
    """The contents of a vector of sizes, through an op that keeps them."""
    found = v.fit.vector(v.value(0))
    if found is not None:
        v.fit.vectors[id(v.node.outputs[0])] = found


def _joined(v: View) -> None:
    """The contents of vectors of sizes, one after the other; what is not known of them stays so."""
    found: list[Dim | None] = []
    for index, value in enumerate(v.node.inputs):
        part = v.fit.vector(value)
        if part is None and v.rank(index) == 1 and (length := v.size(index, 0)) is not None:
            part = (None,) * length
        if part is None or len(found) > LONGEST_VECTOR:
            return
        found += part
    v.fit.vectors[id(v.node.outputs[0])] = tuple(found)


def _picked(v: View) -> None:
    """One or several elements of a vector of sizes."""
    found, places = v.fit.vector(v.value(0)), v.constant(1)
    if found is not None and places is not None and all(-len(found) <= place < len(found) for place in places.flat):
        v.fit.vectors[id(v.node.outputs[0])] = tuple(found[int(place)] for place in places.flat)


def _cut(v: View) -> None:
    """A part of a vector of sizes."""
    found, limits = v.fit.vector(v.value(0)), [v.constant(index) for index in (1, 2, 4)]
    start, end, step = (None if limit is None or limit.size != 1 else int(limit.reshape(-1)[0]) for limit in limits)
    if found is not None and v.rank() == 1 and start is not None and end is not None:
        v.fit.vectors[id(v.node.outputs[0])] = found[start : end : step or 1]


def _reshape(v: View) -> Shapes:
    """Axes that stay, and then one that becomes several: its size is their product."""
    dims, target = v.dims(0), v.fit.vector(v.value(1))
    if target is None:
        target = tuple(v.numbers("shape")) or None
    if dims is None or target is None:
        return None if target is None else [tuple(None if size in (0, -1) else size for size in target)]
    _keep(v, dims, target)
    kept = 0
    while kept < min(len(dims), len(target)) and _stays(v, dims[kept], target[kept]):
        kept += 1
    old, new = dims[kept:], list(target[kept:])
    numbers = [size for size in new if isinstance(size, int) and size > 0]
    rest = [size for size in new if not isinstance(size, int) or size <= 0]
    if old and not rest and len(new) >= len(old) and all(v.fit.size(dim) is None for dim in old):
        last = len(old) - 1
        v.fit.same(old, (*numbers[:last], math.prod(numbers[last:])))
    elif len(old) == 1 and rest == [-1]:
        new[new.index(-1)] = v.fit.split(old[0], math.prod(numbers))
    elif new == [-1] and (size := _product(v, old)) is not None:
        new = [size]
    return [(*dims[:kept], *(None if isinstance(size, int) and size <= 0 else size for size in new))]


def _keep(v: View, dims: Dims, target: Dims) -> None:
    """A first axis that is taken from another value is the same in both; so are all before one that is split."""
    if not target or not isinstance(target[0], str):
        return
    split = len(target) == len(dims) + 1 and target[-1] == -1 and isinstance(target[-2], int)
    for axis in range(len(dims) - 1 if split else min(len(dims), 1)):
        if isinstance(target[axis], str):
            v.fit.equal(dims[axis], target[axis])


def _stays(v: View, old: Dim | None, new: Dim | None) -> bool:
    if new == 0:
        return True
    same_name = isinstance(old, str) and isinstance(new, str) and v.fit.first(old) == v.fit.first(new)
    return same_name or (isinstance(new, int) and new > 0 and v.fit.size(old) == new)


def _product(v: View, dims: Dims) -> int | None:
    sizes = [v.fit.size(dim) for dim in dims]
    return math.prod(size for size in sizes if size is not None) if None not in sizes else None


def _flatten(v: View) -> Shapes:
    dims = v.dims(0)
    if dims is None:
        return None
    axis = v.number("axis", 1)
    first, second = dims[:axis], dims[axis:]
    return [
        (first[0] if len(first) == 1 else _product(v, first), second[0] if len(second) == 1 else _product(v, second))
    ]


def _filled(v: View) -> Shapes:
    shape = v.fit.vector(v.value(0))
    return None if shape is None else [shape]


def _expand(v: View) -> Shapes:
    target = v.fit.vector(v.value(1))
    return None if target is None else [v.fit.broadcast([v.dims(0), target])]


def _pool(v: View) -> Shapes:
    dims = v.dims(0)
    v.reach(v.numbers("kernel_shape"))
    return None if dims is None else [(*dims[:2], *[None] * len(dims[2:]))]


def _global(v: View) -> Shapes:
    dims = v.dims(0)
    return None if dims is None else [(*dims[:2], *[1] * len(dims[2:]))]


def _both(*rules: Rule) -> Rule:
    """Several rules; the last says the shape."""

    def rule(v: View) -> Shapes:
        for other in rules[:-1]:
            other(v)
        return rules[-1](v)

    return rule


TABLE: dict[str, Rule] = {
    "Transpose": _transpose,
    "Concat": _both(_joined, _concat),
    "Squeeze": _both(_kept, _squeeze),
    "Unsqueeze": _both(_kept, _unsqueeze),
    "Gather": _both(_picked, _gather),
    "GatherElements": _same_shape,
    "ScatterElements": _same_shape,
    "Scatter": _same_shape,
    "GatherND": _gather_nd,
    "ScatterND": _scatter_nd,
    "Tile": _per_rank,
    "Upsample": _per_rank,
    "Pad": _pad,
    "Slice": _both(_cut, _slice),
    "Resize": _resize,
    "Split": _split,
    "Shape": _shape,
    "Cast": _both(_kept, first),
    "Identity": _both(_kept, first),
    "Reshape": _reshape,
    "Flatten": _flatten,
    "ConstantOfShape": _filled,
    "Expand": _expand,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), _global),
    **{f"Reduce{kind}": _reduce for kind in REDUCTIONS},
}
