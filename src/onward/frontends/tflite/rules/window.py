"""Numbers put between others, and reductions over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.lax.pad import pad, spread
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.registry import rule
from onward.graph.build import Tensor

FUNCTIONS = {1: "ADD", 2: "MUL", 3: "MINIMUM", 4: "MAXIMUM", 5: "ALL", 6: "ANY"}
REDUCTIONS = {
    "ADD": ("ReduceSum", "Add"),
    "MUL": ("ReduceProd", "Mul"),
    "MINIMUM": ("ReduceMin", "Min"),
    "MAXIMUM": ("ReduceMax", "Max"),
    "ALL": ("ReduceMin", "Min"),
    "ANY": ("ReduceMax", "Max"),
}


def sizes_of(x: Tensor) -> list[int]:
    if x.sizes is None:
        raise UnsupportedError("the size of what windows move over is not known")
    return x.sizes


def reduced_windows(
    op: Writer, x: Tensor, start: Tensor, windows: Sequence[int], steps: Sequence[int], apart: Sequence[int], kind: str
) -> Tensor:
    """What a function makes of all that each window holds, and of `start`."""
    sizes = sizes_of(x)
    axes: list[int] = []
    dtype = x.dtype
    if dtype == ir.DataType.BOOL:
        x, start = x.cast(ir.DataType.INT32), start.cast(ir.DataType.INT32)
    for axis in reversed(range(len(sizes))):
        reach = (windows[axis] - 1) * apart[axis] + 1
        count = (sizes[axis] - reach) // steps[axis] + 1 if sizes[axis] >= reach else 0
        places = np.arange(count)[:, None] * steps[axis] + np.arange(windows[axis])[None] * apart[axis]
        x = op.Gather(x, op.constant(places.astype(np.int64)), axis=axis)
        axes = [axis + 1, *(a + 1 for a in axes)]
    reduction, pair = REDUCTIONS[kind]
    found = op.reduced(reduction, x, axes, keepdims=False)
    return op.many(pair, 1, found, op.Reshape(start, op.ints([])))[0].cast(dtype)


@rule("DILATE")
def dilate(op: Writer, x: Tensor, factors: Tensor, filler: Tensor) -> Tensor:
    return spread(op, x, [n - 1 for n in op.numbers(factors, "how far numbers are moved apart")], filler)


@rule("REDUCE_WINDOW")
def reduce_window(op: Writer, x: Tensor, start: Tensor, window: Tensor, steps: Tensor, apart: Tensor) -> Tensor:
    kind = FUNCTIONS.get(op.operation.options.reduceFunction)
    if kind is None:
        raise UnsupportedError("a function of windows that the schema does not name is not supported")
    windows, moves, gaps = (op.numbers(part, "a window") for part in (window, steps, apart))
    return reduced_windows(op, x, start, windows, moves, gaps, kind)


@rule("STABLEHLO_PAD")
def stablehlo_pad(op: Writer, x: Tensor, filler: Tensor) -> Tensor:
    options = op.operation.options
    parts = (options.edgePaddingLow, options.edgePaddingHigh, options.interiorPadding)
    before, after, between = ([int(n) for n in part] for part in parts)
    return pad(op, x, filler, before, after, between)


@rule("STABLEHLO_REDUCE_WINDOW")
def stablehlo_reduce_window(op: Writer, x: Tensor, start: Tensor) -> Tensor:
    options = op.operation.options
    kind = body_kind(op, options.bodySubgraphIndex)
    windows = [int(n) for n in options.windowDimensions]
    steps, base, apart = (
        [1] * len(windows) if part is None or not len(part) else [int(n) for n in part]
        for part in (options.windowStrides, options.baseDilations, options.windowDilations)
    )
    pads = [0] * 2 * len(windows) if options.padding is None else [int(n) for n in options.padding]
    wide = pad(op, x, start, pads[::2], pads[1::2], [n - 1 for n in base])
    return reduced_windows(op, wide, start, windows, steps, apart, kind)


def body_kind(op: Writer, number: int) -> str:
    """What a graph of the file does with two numbers; '' for the second of them."""
    walk: Any = op.operation.graph
    graph = walk.lite.graphs[number]
    kinds: list[str] = [walk.lite.op_type(operator).removeprefix("STABLEHLO_") for operator in graph.operators or ()]
    names = {"MULTIPLY": "MUL", "AND": "ALL", "OR": "ANY", "LOGICAL_AND": "ALL", "LOGICAL_OR": "ANY"}
    if not kinds and int(graph.outputs[0]) == int(graph.inputs[1]):
        return ""
    if len(kinds) != 1 or names.get(kinds[0], kinds[0]) not in REDUCTIONS:
        raise UnsupportedError(f"a reduction by {', '.join(kinds) or 'its first argument'} is not supported")
    return names.get(kinds[0], kinds[0])
