"""Ops that move elements about: most have as inputs what were attributes once."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.graph.rewriter import dims, input_of, needed, put, rank, set_inputs, take

TO_THE_END = 2**31 - 1


def counted(axis: int, x: ir.Value, op: Older, extra: int = 0) -> int:
    """`axis` from the front: one that counts from the back needs a rank."""
    return axis + op.ranked(x) + extra if axis < 0 else axis


@downgrade("Squeeze", since=13)
def squeeze_axes(node: ir.Node, op: Older) -> None:
    x, axes = needed(node, 0), input_of(node, 1)
    if axes is None:
        return
    known = op.read(axes)
    if known is None:
        op.replace(op("Reshape", x, _without(x, axes, op), allowzero=1))
        return
    set_inputs(node, [x])
    put(node, axes=[int(a) for a in known.reshape(-1)])


def _without(x: ir.Value, axes: ir.Value, op: Older) -> ir.Value:
    """The shape of `x` but for the axes, which are computed when the model runs."""
    size = op.ranked(x)
    places = op("Where", op("Less", axes, op.ints(0)), op("Add", axes, op.ints(size)), axes)
    column = op("Unsqueeze", places, op.ints([1]))
    hit = op("Cast", op("Equal", column, op.ints(list(range(size)))), to=ir.DataType.INT64)
    kept = op("Equal", op("ReduceSum", hit, op.ints([0]), keepdims=0), op.ints(0))
    return op("Compress", op("Shape", x), kept, axis=0)


@downgrade("Unsqueeze", since=13)
def unsqueeze_axes(node: ir.Node, op: Older) -> None:
    known = op.fixed(input_of(node, 1), "axes")
    set_inputs(node, [needed(node, 0)])
    put(node, axes=[int(a) for a in known.reshape(-1)])


@downgrade("Squeeze", "Unsqueeze", since=11)
def axes_from_front(node: ir.Node, op: Older) -> None:
    axes = take(node, "axes")
    if axes is not None:
        extra = len(axes) if node.op_type == "Unsqueeze" else 0
        put(node, axes=sorted(counted(a, needed(node, 0), op, extra) for a in axes))


@downgrade("Concat", "Split", "Flatten", "Compress", since=11)
def axis_from_front(node: ir.Node, op: Older) -> None:
    axis = take(node, "axis")
    if axis is not None:
        put(node, axis=counted(axis, needed(node, 0), op))


@downgrade("Split", since=18)
def split_count(node: ir.Node, op: Older) -> None:
    """`num_outputs` may leave a smaller part for the end; parts of one size need no lengths."""
    x, count = needed(node, 0), take(node, "num_outputs")
    if count is None:
        return
    axis = node.attributes.get_int("axis", 0)
    known = dims(x)
    size = None if known is None else known[axis]
    if size is not None:
        if size % count:
            part = -(-size // count)
            set_inputs(node, [x, op.ints([part] * (count - 1) + [size - part * (count - 1)])])
        return
    whole = op("Gather", op("Shape", x), op.ints([axis]))
    part = op("Div", op("Add", whole, op.ints([count - 1])), op.ints([count]))
    last = op("Sub", whole, op("Mul", part, op.ints([count - 1])))
    set_inputs(node, [x, op("Concat", *[part] * (count - 1), last, axis=0)])


@downgrade("Split", since=13)
def split_lengths(node: ir.Node, op: Older) -> None:
    x, lengths = needed(node, 0), input_of(node, 1)
    if lengths is None:
        return
    known = op.read(lengths)
    if known is not None:
        set_inputs(node, [x])
        put(node, split=[int(n) for n in known])
        return
    axis, begin, parts = op.ints([node.attributes.get_int("axis", 0)]), op.ints([0]), []
    for index in range(len(node.outputs)):
        end = op("Add", begin, op("Gather", lengths, op.ints([index])))
        parts.append(op("Slice", x, begin, end, axis))
        begin = end
    op.replace(*parts)


@downgrade("Slice", since=11)
def slice_from_front(node: ir.Node, op: Older) -> None:
    """Version 10 does not say that axes may count from the back."""
    axes = op.read(input_of(node, 3))
    if axes is not None and (axes < 0).any():
        fixed = np.array([counted(int(a), needed(node, 0), op) for a in axes], axes.dtype)
        node.replace_input_with(3, op.constant(fixed))


@downgrade("Slice", since=10)
def slice_ranges(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    starts, ends = (op.fixed(input_of(node, i), what) for i, what in ((1, "starts"), (2, "ends")))
    axes, steps = input_of(node, 3), input_of(node, 4)
    if steps is not None and (op.fixed(steps, "steps") != 1).any():
        refuse("its steps are not 1")
    along = range(len(starts)) if axes is None else op.fixed(axes, "axes")
    set_inputs(node, [x])
    put(node, starts=[int(s) for s in starts], ends=[int(e) for e in ends], axes=[int(a) for a in along])


@downgrade("Pad", since=18)
def pad_axes(node: ir.Node, op: Older) -> None:
    """Before, paddings were given for all axes."""
    x, pads, axes = needed(node, 0), needed(node, 1), input_of(node, 3)
    if axes is None:
        return
    size = op.ranked(x)
    along = [counted(int(a), x, op) for a in op.fixed(axes, "axes")]
    known = op.read(pads)
    if known is not None:
        full = np.zeros(2 * size, np.int64)
        full[[*along, *(a + size for a in along)]] = known
        pads = op.constant(full)
    else:
        zeros = op.constant(np.zeros(2 * size, np.int64))
        pads = op("ScatterElements", zeros, op.ints([*along, *(a + size for a in along)]), pads, axis=0)
    set_inputs(node, [x, pads, input_of(node, 2)])


@downgrade("Pad", since=19)
def pad_wrap(node: ir.Node, op: Older) -> None:
    """`wrap` goes on at the other end: with slices, one axis after the other."""
    if node.attributes.get_string("mode", "constant") != "wrap":
        return
    x, pads, axes = needed(node, 0), op.fixed(input_of(node, 1), "the number of wrapped elements"), input_of(node, 3)
    size = len(pads) // 2
    along = range(size) if axes is None else [int(a) for a in op.fixed(axes, "axes")]
    known = dims(x)
    y = x
    for axis, before, after in zip(along, pads[:size], pads[size:], strict=True):
        length = None if known is None else known[axis]
        if min(before, after) < 0 or (max(before, after) > 0 and (length is None or max(before, after) > length)):
            refuse("it wraps by more elements than the axis is known to have")
        where = op.ints([axis])
        head = [op("Slice", y, op.ints([-int(before)]), op.ints([TO_THE_END]), where)] if before else []
        tail = [op("Slice", y, op.ints([0]), op.ints([int(after)]), where)] if after else []
        if head or tail:
            y = op("Concat", *head, y, *tail, axis=axis)
    op.replace(y)


@downgrade("Pad", since=11)
def pad_inputs(node: ir.Node, op: Older) -> None:
    pads, value = op.fixed(input_of(node, 1), "pads"), input_of(node, 2)
    fill = 0.0 if value is None else float(op.fixed(value, "the padding value").reshape(-1)[0])
    set_inputs(node, [needed(node, 0)])
    put(node, pads=[int(p) for p in pads])
    if fill:
        put(node, value=fill)


@downgrade("Reshape", since=14)
def reshape_zero(node: ir.Node, op: Older) -> None:
    """With `allowzero` a 0 is a dimension without elements; without, it copies one of the input.

    A shape that has a 0 gives no elements. There -1 stands for the 0: of no elements, and other dimensions that are
    not 0, it makes 0.
    """
    if not take(node, "allowzero", 0):
        return
    x, shape = needed(node, 0), needed(node, 1)
    known = op.read(shape)
    if known is not None:
        if 0 in known:
            if -1 in known:
                refuse("its shape has a 0 and a -1")
            if (known == 0).sum() > 1:
                refuse("its shape has several dimensions without elements")
            node.replace_input_with(1, op.constant(np.where(known == 0, -1, known)))
        return
    given, made = dims(x), node.outputs[0].shape
    if _has_elements(x) or (given is not None and made is not None and _zeros_stay(x.shape, made)):
        return
    no_elements = op("Cast", op("Equal", shape, op.ints([0])), to=ir.DataType.INT64)
    node.replace_input_with(1, op("Sub", shape, no_elements))


def _has_elements(x: ir.Value) -> bool:
    return x.shape is not None and all(isinstance(d, int) and d > 0 for d in x.shape)


def _zeros_stay(given: ir.Shape | None, made: ir.Shape) -> bool:
    """Whether each dimension that could be 0 is the one of the input at its place, which 0 copies."""
    pairs = [(d, given[i] if given is not None and i < len(given) else None) for i, d in enumerate(made)]
    return all((isinstance(d, int) and d > 0) or (_name(d) is not None and _name(d) == _name(g)) for d, g in pairs)


def _name(dim: int | ir.SymbolicDim | None) -> str | None:
    return dim.value if isinstance(dim, ir.SymbolicDim) else None


@downgrade("Shape", since=15)
def shape_part(node: ir.Node, op: Older) -> None:
    start, end = take(node, "start", 0), take(node, "end")
    if start or end is not None:
        whole = op("Shape", needed(node, 0))
        op.replace(op("Slice", whole, op.ints([start]), op.ints([TO_THE_END if end is None else end]), op.ints([0])))


@downgrade("TopK", since=11)
def topk_order(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    take(node, "sorted")
    if take(node, "largest", 1):
        return
    if not op.typed(x).is_floating_point():
        refuse("it takes the smallest of integers")
    values, places = op.many(2, "TopK", op("Neg", x), needed(node, 1), axis=node.attributes.get_int("axis", -1))
    op.replace(op("Neg", values), places)


@downgrade("TopK", since=10)
def topk_count(node: ir.Node, op: Older) -> None:
    count = int(op.fixed(input_of(node, 1), "k").reshape(-1)[0])
    if count < 1:
        refuse("it takes none of the elements")
    set_inputs(node, [needed(node, 0)])
    put(node, k=count)


@downgrade("DepthToSpace", since=11)
def columns_first(node: ir.Node, op: Older) -> None:
    if take(node, "mode", "DCR") == "DCR":
        return
    x, block = needed(node, 0), node.attributes.get_int("blocksize")
    n, c, h, w = op.sizes(x) if op.ranked(x) == 4 else refuse("its input is no image")
    parts = op("Reshape", x, op.ints([n, c // block**2, block, block, h, w]))
    turned = op("Transpose", parts, perm=[0, 1, 4, 2, 5, 3])
    op.replace(op("Reshape", turned, op.ints([n, c // block**2, h * block, w * block])))


@downgrade("ConstantOfShape", since=9)
def filled(node: ir.Node, op: Older) -> None:
    value = take(node, "value")
    fill = np.zeros(1, np.float32) if value is None else value.numpy()
    shape = op.read(needed(node, 0))
    if shape is not None and shape.prod() <= 2**20:
        op.replace(op.constant(np.full(tuple(shape), fill[0])))
    else:
        op.replace(op("Expand", op.constant(fill.reshape(())), needed(node, 0)))


@downgrade("Expand", since=8)
def expanded(node: ir.Node, op: Older) -> None:
    x, shape = needed(node, 0), op.fixed(input_of(node, 1), "its shape")
    sizes = op.sizes(x)
    sizes = [1] * (len(shape) - len(sizes)) + sizes
    wanted = [1] * (len(sizes) - len(shape)) + [int(n) for n in shape]
    repeats = [n if size == 1 else 1 for size, n in zip(sizes, wanted, strict=True)]
    op.replace(op("Tile", op("Reshape", x, op.ints(sizes)), op.ints(repeats)))


@downgrade("Trilu", since=14)
def triangle(node: ir.Node, op: Older) -> None:
    x, shift = needed(node, 0), input_of(node, 1)
    rows, columns = (op("Range", op.ints(0), _length(x, axis, op), op.ints(1)) for axis in (-2, -1))
    rows = op("Unsqueeze", rows, op.ints([1]))
    if shift is not None:
        rows = op("Add", rows, op("Reshape", shift, op.ints([1])))
    outside = op("Less", columns, rows) if take(node, "upper", 1) else op("Greater", columns, rows)
    dtype = op.typed(x)
    if dtype == ir.DataType.BOOL:
        op.replace(op("And", op("Not", outside), x))
    else:
        op.replace(op("Where", outside, op.constant(np.zeros((), dtype.numpy())), x))


def _length(x: ir.Value, axis: int, op: Older) -> ir.Value:
    known = dims(x)
    if known is not None and known[axis] is not None:
        return op.ints(known[axis] or 0)
    shape = op("Shape", x)
    size = op("Slice", shape, op.ints([axis]), op.ints([axis + 1 or TO_THE_END]))
    return op("Squeeze", size, op.ints([0]))


@downgrade("CumSum", since=11)
def running_sum(node: ir.Node, op: Older) -> None:
    """A product with a triangle of ones."""
    x = needed(node, 0)
    axis = counted(int(op.fixed(input_of(node, 1), "the axis").reshape(-1)[0]), x, op)
    length, size = op.sizes(x)[axis], op.ranked(x)
    if not op.typed(x).is_floating_point():
        refuse("it adds up integers")
    exclusive, reverse = take(node, "exclusive", 0), take(node, "reverse", 0)
    ones = np.triu(np.ones((length, length)), 1 if exclusive else 0)
    matrix = op.constant((ones.T if reverse else ones).astype(op.typed(x).numpy()))
    perm = [*(a for a in range(size) if a != axis), axis]
    summed = op("MatMul", op("Transpose", x, perm=perm), matrix)
    op.replace(op("Transpose", summed, perm=[perm.index(a) for a in range(size)]))


@downgrade("EyeLike", since=9)
def unit_matrix(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    rows, columns = op.sizes(x) if rank(x) == 2 else refuse("its input is no matrix")
    dtype = take(node, "dtype")
    kind = op.typed(x) if dtype is None else ir.DataType(dtype)
    op.replace(op.constant(np.eye(rows, columns, take(node, "k", 0)).astype(kind.numpy())))
