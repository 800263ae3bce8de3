"""Templates of nodes: picking elements, reducing them, making them up."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from differential.basic import has_nan, template
from differential.builder import Graph, Rejected


@template(3)
def gather(g: Graph) -> None:
    x = g.pick(least=1)
    axis = g.axis(x) if g.opset >= 11 else g.integer(0, x.rank - 1)
    size = x.shape[axis]
    shape = g.sizes(g.integer(0, 2))
    if not size and math.prod(shape):
        raise Rejected("nothing to pick")
    low = -size if g.opset >= 11 else 0
    indices = g.rng.integers(low, max(size, low + 1), shape)
    g.node("Gather", [x, g.given(indices, g.choose([np.int64, np.int64, np.int32]))], axis=axis, loss=None)


@template()
def gather_elements(g: Graph) -> None:
    x = g.pick(least=1, where=lambda v: 0 not in v.shape)
    axis = g.axis(x)
    shape = [g.integer(0 if g.chance(0.1) else 1, d) for d in x.shape]
    shape[axis] = g.integer(1, 4)
    indices = g.rng.integers(-x.shape[axis], x.shape[axis], shape)
    g.node("GatherElements", [x, g.given(indices, g.choose([np.int64, np.int32]))], axis=axis, loss=None)


@template()
def scatter_elements(g: Graph) -> None:
    x = g.pick(least=1, where=lambda v: 0 not in v.shape)
    axis = g.axis(x)
    shape = [g.integer(1, d) for d in x.shape]
    reductions = ["none"] + (["add", "mul"] if g.opset >= 16 and x.dtype.kind != "b" else [])
    reduction = g.choose(reductions + (["min", "max"] if g.opset >= 18 and x.dtype.kind != "b" else []))
    if reduction == "none":
        size = x.shape[axis]
        indices = np.argsort(g.rng.random([size if i == axis % x.rank else d for i, d in enumerate(shape)]), axis=axis)
        indices = np.take(indices, range(shape[axis]), axis=axis)
    else:
        indices = g.rng.integers(-x.shape[axis], x.shape[axis], shape)
    updates = g.given(g.array(x.dtype, shape, special=0))
    attributes = {"reduction": reduction} if reduction != "none" else {}
    g.node(
        "ScatterElements",
        [x, g.given(indices, np.int64), updates],
        axis=axis,
        loss=4.0 if attributes and x.is_float else 0.0 if x.exact else 1.0,
        **attributes,
    )


@template()
def gather_nd(g: Graph) -> None:
    x = g.pick(least=1, where=lambda v: 0 not in v.shape)
    batch = g.integer(0, x.rank - 1) if g.opset >= 12 and g.chance(0.4) else 0
    width = g.integer(1, x.rank - batch)
    outer = [*x.shape[:batch], *g.sizes(g.integer(0, 2))]
    rows = [g.rng.integers(-x.shape[batch + i], x.shape[batch + i], outer) for i in range(width)]
    g.node(
        "GatherND", [x, g.given(np.stack(rows, -1), np.int64)], loss=None, **({"batch_dims": batch} if batch else {})
    )


@template()
def scatter_nd(g: Graph) -> None:
    x = g.pick(least=1, where=lambda v: 0 not in v.shape)
    width = g.integer(1, x.rank)
    places = np.stack(np.meshgrid(*(np.arange(d) for d in x.shape[:width]), indexing="ij"), -1).reshape(-1, width)
    rows = places[g.rng.permutation(len(places))[: g.integer(1, len(places))]]
    if g.chance(0.5):
        rows = rows - np.array(x.shape[:width])
    reductions = ["none"] + (["add", "mul"] if g.opset >= 16 and x.dtype.kind != "b" else [])
    reduction = g.choose(reductions + (["min", "max"] if g.opset >= 18 and x.dtype.kind != "b" else []))
    if reduction != "none" and g.chance(0.5):
        rows = np.concatenate([rows, rows[:1]])
    updates = g.given(g.array(x.dtype, (len(rows), *x.shape[width:]), special=0))
    attributes = {"reduction": reduction} if reduction != "none" else {}
    g.node(
        "ScatterND",
        [x, g.given(rows, np.int64), updates],
        loss=4.0 if attributes and x.is_float else 0.0 if x.exact else 1.0,
        **attributes,
    )


@template()
def one_hot(g: Graph) -> None:
    depth = g.integer(1, 5)
    indices = g.given(
        g.rng.integers(-depth - 2, depth + 2, g.sizes(g.integer(0, 3))), g.choose([np.int64, np.int32, np.float32])
    )
    values = g.given(g.choose([[0, 1], [2, 5], [1, 0], [0.5, -1]]), g.choose([np.float32, np.int64, np.int32]))
    axis = g.axis(indices, 1)
    g.node("OneHot", [indices, g.given(g.choose([depth, [depth]]), np.int64), values], axis=axis)


@template()
def counting(g: Graph) -> None:
    op = g.choose(["NonZero", "Compress", "Unique", "EyeLike", "ReverseSequence"])
    x = g.pick(exact=True, least=1)
    if op == "NonZero":
        g.node(op, [x])
    elif op == "Compress":
        axis = None if g.chance(0.3) else g.axis(x) if g.opset >= 11 else g.integer(0, x.rank - 1)
        size = math.prod(x.shape) if axis is None else x.shape[axis]
        kept = g.given(g.array(np.bool_, (g.integer(0, size),)))
        g.node(op, [x, kept], **({} if axis is None else {"axis": axis}))
    elif op == "Unique":
        if has_nan(x):
            raise Rejected("not defined")
        g.node(op, [x], g.integer(1, 4), sorted=g.integer(0, 1), **({"axis": g.axis(x)} if g.chance(0.5) else {}))
    elif op == "EyeLike":
        x = g.pick("fi", least=2, most=2)
        g.node(op, [x], k=g.integer(-2, 2), **({"dtype": g.choose([1, 7, 11])} if g.chance(0.5) else {}))
    else:
        x = g.pick("fi", least=2, where=lambda v: 0 not in v.shape)
        batch = g.integer(0, 1)
        lengths = g.given(g.rng.integers(1, x.shape[1 - batch] + 1, x.shape[batch]), np.int64)
        g.node(op, [x, lengths], batch_axis=batch, time_axis=1 - batch, loss=None)


# Reducing


@template(4)
def reduction(g: Graph) -> None:
    op = g.choose(["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"])
    x = g.pick("f" if op.startswith("Log") else "fi", exact=op in ("LogSum", "Prod"))
    name = f"Reduce{op}"
    exact = op in ("Max", "Min") or not x.is_float
    if op in ("Max", "Min") and has_nan(x):
        raise Rejected("ONNX Runtime has several answers")
    if op not in ("Max", "Min") and not x.is_float and np.abs(x.data.astype(float)).max(initial=0) > 100:
        raise Rejected("ONNX Runtime sums large integers in floating point")
    axes = g.rng.permutation(x.rank)[: g.integer(1, x.rank)].tolist() if x.rank and g.chance(0.8) else None
    if (g.opset < 18 or op == "Mean") and 0 in x.shape:
        raise Rejected("not defined")
    if axes and 0 not in x.shape:  # of nothing, ONNX Runtime forgets axes counted from the end
        axes = [a - x.rank if g.opset >= 11 and g.chance(0.4) else a for a in axes]
    options = {"keepdims": g.integer(0, 1)}
    loss = None if exact else 20.0
    if g.since(name) < (13 if op == "Sum" else 18):
        g.node(name, [x], loss=loss, **options, **({} if axes is None else {"axes": axes}))
        return
    if g.chance(0.3):
        options["noop_with_empty_axes"] = 1
    if axes is None and g.chance(0.3):
        axes = []
    g.node(name, [x] if axes is None else [x, g.ints(*axes)], loss=loss, **options)


@template(2)
def arg_extreme(g: Graph) -> None:
    x = g.pick("fi", least=1, exact=True, where=lambda v: 0 not in v.shape and not has_nan(v))
    axis = g.axis(x) if g.opset >= 11 else g.integer(0, x.rank - 1)
    extra = {"select_last_index": g.integer(0, 1)} if g.opset >= 12 else {}
    g.node(g.choose(["ArgMax", "ArgMin"]), [x], axis=axis, keepdims=g.integer(0, 1), **extra)


@template(2)
def top_k(g: Graph) -> None:
    x = g.pick("fi", least=1, exact=True, where=lambda v: not has_nan(v))
    axis = g.axis(x) if g.opset >= 11 else g.integer(0, x.rank - 1)
    k = g.integer(0, x.shape[axis])
    if g.since("TopK") < 10:
        g.node("TopK", [x], 2, axis=axis, k=max(k, 1))
        return
    options = {"largest": g.integer(0, 1)} if g.opset >= 11 else {}
    g.node("TopK", [x, g.ints(k)], 2, axis=axis, **options)


@template()
def running_sum(g: Graph) -> None:
    x = g.pick("fi", least=1)
    axis = g.given(g.axis(x), g.choose([np.int64, np.int32]))
    g.node("CumSum", [x, axis], exclusive=g.integer(0, 1), reverse=g.integer(0, 1), loss=20.0 if x.is_float else 0.0)


@template()
def softmax(g: Graph) -> None:
    op = g.choose(["Softmax", "LogSoftmax", "Hardmax"])
    x = g.pick(
        "f", least=1, exact=op == "Hardmax", where=lambda v: v.data.size and np.isfinite(v.data.astype(float)).all()
    )
    axis = g.axis(x) if g.opset >= 11 else g.integer(0, x.rank - 1)
    g.node(op, [x], loss=0.0 if op == "Hardmax" else 20.0, **({"axis": axis} if g.chance(0.8) else {}))


@template()
def made_up(g: Graph) -> None:
    op = g.choose(["ConstantOfShape", "Range", "Shape", "Size"])
    if op == "ConstantOfShape":
        value = helper.make_tensor("v", TensorProto.INT64, [1], [g.integer(-2, 3)])
        if g.chance(0.5):
            value = numpy_helper.from_array(
                g.array(g.choose([np.float32, np.float64, np.float16, np.uint8, np.int32, np.bool_]), (1,))
            )
        g.node(op, [g.ints(*g.sizes(g.integer(0, 3)))], **({"value": value} if g.chance(0.8) else {}))
    elif op == "Range":
        dtype = g.choose([np.int64, np.int32, np.int16, np.float32, np.float64])
        step = g.choose([1, 2, -1, 0.5, -3]) if np.dtype(dtype).kind == "f" else g.choose([1, 2, -1, -3])
        g.node(op, [g.given(n, dtype) for n in (g.integer(-3, 4), g.integer(-3, 9), step)])
    else:
        x = g.pick()
        options = (
            {"start": g.integer(-4, 4), "end": g.integer(-4, 6)}
            if op == "Shape" and g.opset >= 15 and g.chance(0.4)
            else {}
        )
        g.node(op, [x], **options)
