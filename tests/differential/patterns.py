"""Templates of several nodes: what looks like a layer written out but may not be one, and arithmetic on shapes."""

from __future__ import annotations

import math

import numpy as np

from differential.basic import template
from differential.builder import Graph, Rejected, Value
from differential.layers import floats, weights


def number(g: Graph, value: float, dtype: object = np.float32) -> Value:
    """A scalar in one of the forms that files have it in."""
    shape = g.choose([(), (), (1,), (1, 1), (1, 1, 1, 1)]) if g.chance(0.3) else ()
    return g.given(np.full(shape, value), dtype, ("initializer", "constant", "constant"))


def either(g: Graph, op: str, a: Value, b: Value, **options: object) -> Value:
    """A commutative op with its operands in either order."""
    return g.node(op, [b, a] if g.chance(0.4) else [a, b], **options)


def leak(g: Graph, *values: Value) -> None:
    """At times what is inside a pattern is read from outside, too."""
    for value in values:
        if g.chance(0.12):
            g.outputs.append(value.name)


def mean(g: Graph, x: Value, axes: list[int], keepdims: int = 1) -> Value:
    if g.opset < 18:
        return g.node("ReduceMean", [x], axes=axes, keepdims=keepdims, loss=20.0)
    return g.node("ReduceMean", [x, g.ints(*axes, constant=True)], keepdims=keepdims, loss=20.0)


@template(2)
def layer_norm(g: Graph) -> None:
    x = floats(
        g,
        *(g.choose([2, 3, 3, 4]) for _ in range(g.integer(2, 4))),
        dtype=g.choose([np.float32, np.float32, np.float64]),
    )
    axes = g.choose([[-1], [-1], [x.rank - 1], [-2], [-2, -1], [1], [0]])
    if g.opset < 11:
        axes = [a % x.rank for a in axes]
    other = axes if g.chance(0.85) else [0]
    centred = x
    if g.chance(0.7):
        average = mean(g, x, axes)
        centred = g.node("Sub", [x, average] if g.chance(0.9) else [average, x], loss=4.0)
    base = centred if g.chance(0.85) else x
    square = (
        g.node("Mul", [base, base], loss=4.0)
        if g.chance(0.5)
        else g.node("Pow", [base, number(g, g.choose([2, 2, 2, 3]), x.dtype)], loss=4.0)
    )
    variance = mean(g, square, other)
    if np.any(variance.data < 0.05):
        raise Rejected("badly conditioned")
    epsilon = number(g, g.choose([1e-5, 1e-6, 0.1]), x.dtype)
    leak(g, centred, square, variance)
    form = g.choose(["div", "div", "after", "reciprocal", "pow", "none"])
    if form == "after":
        root = either(g, "Add", g.node("Sqrt", [variance], loss=4.0), epsilon, loss=4.0)
    elif form == "none":
        root = g.node("Sqrt", [variance], loss=4.0)
    else:
        shifted = either(g, "Add", variance, epsilon, loss=4.0)
        if form == "pow":
            inverse = g.node("Pow", [shifted, number(g, g.choose([-0.5, -0.5, -1.0]), x.dtype)], loss=8.0)
        root = g.node("Sqrt", [shifted], loss=4.0)
        if form == "reciprocal":
            inverse = g.node("Reciprocal", [root], loss=4.0)
    if form in ("pow", "reciprocal"):
        y = either(g, "Mul", centred, inverse, loss=4.0)
    else:
        y = g.node("Div", [centred, root], loss=4.0)
    leak(g, y)
    for op in ("Mul", "Add"):
        if g.chance(0.8):
            shape = g.choose(
                [
                    y.shape[-1:],
                    y.shape[-1:],
                    y.shape[-2:],
                    (1,),
                    (),
                    y.shape[:1] + (1,) * (y.rank - 1),
                    (1, *y.shape[-1:]),
                ]
            )
            y = either(g, op, y, weights(g, *shape, dtype=x.dtype.type), loss=4.0)


@template(2)
def gelu(g: Graph) -> None:
    dtype = g.choose([np.float32, np.float32, np.float64, np.float16])
    x = floats(g, *g.sizes(g.integer(0, 3)), dtype=dtype)
    x = g.node("Identity", [x], loss=None) if g.chance(0.3) else x
    y = x if g.chance(0.9) else floats(g, *x.shape, dtype=dtype)
    if g.chance(0.5):
        scaled = (
            g.node("Div", [x, number(g, g.choose([math.sqrt(2)] * 3 + [1.5]), dtype)], loss=4.0)
            if g.chance(0.6)
            else g.node("Mul", [x, number(g, math.sqrt(0.5), dtype)], loss=4.0)
        )
        inner = g.node("Erf", [scaled], loss=8.0)
    else:
        cube = (
            g.node("Pow", [x, number(g, 3, dtype)], loss=8.0)
            if g.chance(0.5)
            else g.node("Mul", [g.node("Mul", [x, x], loss=4.0), x], loss=4.0)
        )
        third = either(g, "Mul", cube, number(g, g.choose([0.044715, 0.044715, 0.05]), dtype), loss=4.0)
        total = either(g, "Add", x, third, loss=4.0)
        inner = g.node(
            "Tanh",
            [
                either(
                    g,
                    "Mul",
                    total,
                    number(g, g.choose([math.sqrt(2 / math.pi), math.sqrt(2 / math.pi), 0.8]), dtype),
                    loss=4.0,
                )
            ],
            loss=8.0,
        )
    one = either(g, "Add", inner, number(g, g.choose([1, 1, 1, 1, 1.5]), dtype), loss=4.0)
    leak(g, inner, one)
    half = number(g, g.choose([0.5, 0.5, 0.5, 0.25]), dtype)
    if g.chance(0.5):
        either(g, "Mul", either(g, "Mul", y, one, loss=4.0), half, loss=4.0)
    else:
        either(g, "Mul", either(g, "Mul", y, half, loss=4.0), one, loss=4.0)


@template(2)
def gated(g: Graph) -> None:
    x = floats(g, *g.sizes(g.integer(0, 3)), dtype=g.choose([np.float32, np.float32, np.float64]))
    of = x.dtype
    y = x if g.chance(0.85) else floats(g, *x.shape, dtype=of.type)
    kind = g.choose(["silu", "hard", "relu6", "mish"])
    if kind == "silu":
        inner = x if g.chance(0.5) else either(g, "Mul", x, number(g, 1.702, of), loss=4.0)
        gate = g.node("Sigmoid", [inner], loss=8.0)
    elif kind == "hard":
        gate = g.node(
            "HardSigmoid",
            [x],
            loss=4.0,
            **g.choose([{"alpha": 1 / 6}, {"alpha": 1 / 6, "beta": 0.5}, {}, {"alpha": 1 / 6, "beta": 0.4}]),
        )
    elif kind == "relu6":
        shifted = either(g, "Add", x, number(g, g.choose([3, 3, 2]), of), loss=4.0)
        low, high = 0.0, g.choose([6.0, 6.0, 5.0])
        gate = (
            g.node("Clip", [shifted], min=low, max=high, loss=4.0)
            if g.opset < 11
            else g.node("Clip", [shifted, g.given(low, of), g.given(high, of)], loss=4.0)
        )
    else:
        gate = g.node("Tanh", [g.node("Softplus", [x], loss=8.0)], loss=8.0)
    leak(g, gate)
    product = either(g, "Mul", y, gate, loss=4.0)
    if kind == "relu6":
        g.node("Div", [product, number(g, g.choose([6, 6, 5]), of)], loss=4.0)


@template(3)
def attention(g: Graph) -> None:
    dtype = g.choose([np.float32, np.float32, np.float64])
    batch, heads, rows, columns, width = (
        g.integer(1, 2),
        g.integer(1, 2),
        g.integer(1, 4),
        g.integer(1, 4),
        g.integer(1, 4),
    )
    if g.chance(0.3):
        columns = rows
    lead = g.choose([(batch, heads), (batch, heads), (batch,), ()])
    thin = tuple(1 if g.chance(0.15) else d for d in lead)
    q, k = floats(g, *lead, rows, width, dtype=dtype), floats(g, *thin, columns, width, dtype=dtype)
    v = floats(g, *g.choose([lead, lead, thin]), columns, g.choose([width, width, 3]), dtype=dtype)
    perm = [*range(len(lead)), len(lead) + 1, len(lead)]
    scale = g.choose([1 / math.sqrt(width), 1 / math.sqrt(width), 0.3, width**-0.25])
    where = g.choose(["product", "product", "query", "both", "none"])
    if where in ("query", "both"):
        q = either(g, "Mul", q, number(g, scale, dtype), loss=4.0)
    keys = g.node("Transpose", [k], perm=perm, loss=None)
    if where == "both":
        keys = either(g, "Mul", keys, number(g, scale, dtype), loss=4.0)
    scores = g.node("MatMul", [q, keys], loss=20.0)
    if where == "product":
        scores = (
            either(g, "Mul", scores, number(g, scale, dtype), loss=4.0)
            if g.chance(0.5)
            else g.node("Div", [scores, number(g, math.sqrt(width), dtype)], loss=4.0)
        )
    leak(g, scores)
    kind = g.choose(["none", "add", "causal", "where", "input"])
    if kind == "add":
        shape = g.choose(
            [
                (rows, columns),
                (columns,),
                (*lead[:1], *[1] * (len(lead) - 1), rows, columns),
                (1,) * len(lead) + (1, columns),
                (rows, 1),
                (2, *[1] * len(lead), columns),
                (),
            ]
        )
        mask = g.choose([0.0, -10000.0, -1e9, 1.0]) * (g.rng.random(shape) < 0.4)
        scores = (
            either(g, "Add", scores, g.given(mask, dtype), loss=4.0) if np.abs(mask).max(initial=0) < 100 else scores
        )
    elif kind == "causal" and g.opset >= 9:
        shift = g.choose([0, 0, 0, 1, -1])
        test = g.given(
            np.tril(np.ones((rows, columns), bool), shift)
            if g.chance(0.7)
            else np.triu(np.ones((rows, columns), bool), 1)
        )
        far = number(g, g.choose([-1e30, -np.inf, -1e9, -100.0]), dtype)
        if g.chance(0.5):
            bias = g.node("Where", [test, g.given(0.0, dtype), far])
            if np.isinf(bias.data).any() or np.abs(bias.data).max(initial=0) > 500:
                raise Rejected("not compared")
            scores = either(g, "Add", scores, bias, loss=4.0)
        else:
            chosen = [test, scores, far] if g.chance(0.8) else [test, far, scores]
            if np.abs(far.data).max() > 500:
                raise Rejected("not compared")
            scores = g.node("Where", chosen, loss=4.0)
    elif kind == "input":
        scores = either(
            g, "Add", scores, g.given(g.array(dtype, (rows, columns), special=0), kinds=("input",)), loss=4.0
        )
    softmax = g.node(
        "Softmax", [scores], axis=g.choose([scores.rank - 1] * 4 + [0] + ([-1, -2] if g.opset >= 11 else [])), loss=20.0
    )
    leak(g, softmax)
    g.node("MatMul", [softmax, v], loss=30.0)


# Arithmetic on shapes


def length(g: Graph, x: Value, axis: int) -> Value:
    """A dimension as a scalar or in a list, as different exporters take it."""
    shape = g.node("Shape", [x])
    place = axis - x.rank if g.chance(0.3) and g.opset >= 11 else axis
    if g.chance(0.3) and g.opset >= 10:
        ends = place + 1 if place != -1 else 2**63 - 1
        cut = [g.ints(place, constant=True), g.ints(ends, constant=True)] + (
            [g.ints(0, constant=True)] if g.chance(0.5) else []
        )
        return g.node("Slice", [shape, *cut])
    return g.node("Gather", [shape, g.given(g.choose([place, [place]]), np.int64, ("initializer", "constant"))], axis=0)


def listed(g: Graph, n: Value) -> Value:
    if n.rank:
        return n
    return g.node("Unsqueeze", [n], axes=[0]) if g.opset < 13 else g.node("Unsqueeze", [n, g.ints(0, constant=True)])


@template(4)
def shape_numbers(g: Graph) -> None:
    """A chain of arithmetic on dimensions, given out or used as a shape."""
    x = g.pick(least=1)
    found = [length(g, x, g.integer(0, x.rank - 1)) for _ in range(2)]
    for _ in range(g.integer(1, 6)):
        a = g.choose(found)
        op = g.choose(
            [
                "Add",
                "Sub",
                "Mul",
                "Div",
                "Mod",
                "Min",
                "Max",
                "float",
                "Neg",
                "compare",
                "ReduceProd",
                "ReduceSum",
                "Concat",
                "Where",
                "Squeeze",
                "int32",
                "Abs",
            ]
        )
        small = g.given(g.choose([1, 2, 3, -2, 5, -1, [2]]), a.dtype, ("initializer", "constant"))
        b = g.choose([*found, small])
        if a.dtype != b.dtype:
            continue
        if op in ("Div", "Mod"):
            if np.any(small.data == -1):
                continue
            b = small
        if op == "Mod" and a.is_float:
            continue
        if op in ("Min", "Max") and g.opset < 12 and not a.is_float:
            continue
        if op == "float":
            found.append(floating(g, a))
        elif op in ("Neg", "Abs"):
            found.append(g.node(op, [a]))
        elif op == "compare":
            test = g.node(g.choose(["Equal", "Less", "Greater"]), [a, b]) if g.opset >= 9 else None
            if test is not None:
                found.append(g.node(g.choose(["Not", "Identity"]), [test]))
                found.append(g.node("Cast", [found.pop()], to=g.choose([7, 1])))
        elif op == "Where" and g.opset >= 9:
            test = g.node("Less", [a, small])
            found.append(g.node("Where", [test, a, b]))
        elif op in ("ReduceProd", "ReduceSum"):
            found.append(g.node(op, [listed(g, a)], keepdims=g.integer(0, 1)))
        elif op == "Concat":
            found.append(g.node(op, [listed(g, a), listed(g, b)], axis=0))
        elif op == "Squeeze":
            found.append(g.node(op, [a]))
        elif op == "int32":
            if not a.is_float:
                found.append(g.node("Cast", [a], to=7 if a.dtype == np.int32 else 6))
        else:
            found.append(g.node(op, [a, b] if op in ("Div", "Mod") or g.chance(0.6) else [b, a]))
    last = found[-1]
    if (
        last.dtype == np.int64
        and g.chance(0.5)
        and np.all(last.data >= 0)
        and last.data.size < 5
        and math.prod(last.data.reshape(-1).tolist()) < 500
    ):
        g.node("ConstantOfShape", [listed(g, last) if not last.rank else last])
    elif last.dtype == np.int64 and last.data.size == 1 and g.opset >= 10 and x.rank:
        g.node("Slice", [x, listed(g, last), g.ints(2**31 - 1, constant=True)], loss=None)
    g.outputs.append(g.choose(found).name)


def floating(g: Graph, n: Value) -> Value:
    """Through floating-point numbers and back, as exporters compute sizes of images."""
    x = n if n.is_float else g.node("Cast", [n], to=g.choose([1, 1, 11]))
    factor = g.given(g.choose([2, 0.5, 1.5, 0.3, -0.7, 1 / 3]), x.dtype, ("initializer", "constant"))
    x = g.node(g.choose(["Mul", "Div", "Add", "Sub"]), [x, factor])
    x = g.node(g.choose(["Floor", "Ceil", "Identity", "Sqrt" if np.all(x.data >= 0) else "Floor"]), [x])
    return g.node("Cast", [x], to=7) if g.chance(0.7) else x


@template(2)
def reshaped_by_shape(g: Graph) -> None:
    x = g.pick(least=2, where=lambda v: 0 not in v.shape)
    axis = g.integer(0, x.rank - 1)
    kept = listed(g, length(g, x, axis))
    rest = g.ints(-1, constant=True)
    moved = g.node("Transpose", [x], perm=[axis, *(i for i in range(x.rank) if i != axis)], loss=None)
    target = g.node("Concat", [kept, rest], axis=0)
    flat = g.node("Reshape", [moved, target], loss=None)
    if g.chance(0.4):
        g.node(
            "Expand",
            [flat, g.node("Concat", [g.ints(2, constant=True), kept, g.ints(1, constant=True)], axis=0)],
            loss=None,
        )
