"""The discrete Fourier transform."""

import numpy as np
import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.graph.rewriter import input_of, needed, put, set_inputs, take


@downgrade("DFT", since=20)
def dft_axis(node: ir.Node, op: Older) -> None:
    x, axis = needed(node, 0), input_of(node, 2)
    where = -2 if axis is None else int(op.fixed(axis, "its axis").reshape(-1)[0])
    set_inputs(node, [x, input_of(node, 1)])
    put(node, axis=where + op.ranked(x) if where < 0 else where)


@downgrade("DFT", since=17)
def fourier_matrix(node: ir.Node, op: Older) -> None:
    """A product with the matrix of all waves, in doubles: sums that cancel would show the rounding of floats."""
    x, length = needed(node, 0), input_of(node, 1)
    axis, inverse, half = take(node, "axis", 1), take(node, "inverse", 0), take(node, "onesided", 0)
    sizes, dtype = op.sizes(x), op.typed(x)
    size = sizes[axis]
    if length is not None and int(op.fixed(length, "its length").reshape(-1)[0]) != size:
        refuse("its length is not that of the input")
    if half and inverse:
        refuse("it is inverse, of one side")
    count = size // 2 + 1 if half else size
    angle = 2 * np.pi * np.outer(np.arange(size), np.arange(count)) / size * (1 if inverse else -1)
    scale = 1 / size if inverse else 1
    cos, sin = (op.constant(f(angle) * scale) for f in (np.cos, np.sin))
    rank = len(sizes)
    perm = [*(a for a in range(rank) if a not in (axis, rank - 1)), rank - 1, axis]
    rows = op("Cast", op("Transpose", x, perm=perm), to=ir.DataType.DOUBLE)  # …, parts, time
    parts = [_part(rows, i, op) for i in range(sizes[-1])]
    real, imaginary = op("MatMul", parts[0], cos), op("MatMul", parts[0], sin)
    if len(parts) > 1:
        real = op("Sub", real, op("MatMul", parts[1], sin))
        imaginary = op("Add", imaginary, op("MatMul", parts[1], cos))
    whole = op("Cast", op("Concat", real, imaginary, axis=rank - 2), to=dtype)
    op.replace(op("Transpose", whole, perm=[perm.index(a) for a in range(rank)]))


def _part(rows: ir.Value, index: int, op: Older) -> ir.Value:
    """The real or the imaginary part."""
    size = op.ranked(rows)
    return op("Slice", rows, op.ints([index]), op.ints([index + 1]), op.ints([size - 2]))
