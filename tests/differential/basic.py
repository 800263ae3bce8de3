"""Templates of nodes: elementwise ops, and moving elements."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from differential.builder import Graph, Rejected, Value

Template = Callable[[Graph], object]
TEMPLATES: list[Template] = []


def template(weight: int = 1) -> Callable[[Template], Template]:
    def register(fn: Template) -> Template:
        TEMPLATES.extend([fn] * weight)
        return fn

    return register


def has_nan(x: Value) -> bool:
    return x.is_float and bool(np.isnan(x.data.astype(np.float64)).any())


@template(5)
def arithmetic(g: Graph) -> None:
    op = g.choose(["Add", "Sub", "Mul", "Add", "Mul", "Div"])
    a = g.pick("fi")
    if op == "Div" and not a.is_float:
        data = g.array(a.dtype, g.choose([a.shape, a.shape[-1:], ()]))
        b = g.given(np.where((data == 0) | (data == -1), 3, data).astype(a.dtype))
    else:
        b = g.partner(a)
    if op == "Div" and not b.exact:
        raise Rejected("division by an inexact number")
    g.node(op, [b, a] if g.chance(0.4) and op != "Div" else [a, b], loss=1.0 if not (a.exact and b.exact) else 0.0)


@template(2)
def exact_unary(g: Graph) -> None:
    op = g.choose(["Neg", "Abs", "Relu", "Sign", "Floor", "Ceil", "Round", "IsNaN", "IsInf", "Identity"])
    x = g.pick(
        "fi" if op in ("Neg", "Abs", "Relu", "Sign", "Identity") else "f", exact=op not in ("Neg", "Abs", "Identity")
    )
    if op == "Sign" and has_nan(x):
        raise Rejected("ONNX Runtime has several answers")
    attributes = {"detect_negative": g.integer(0, 1), "detect_positive": g.integer(0, 1)} if op == "IsInf" else {}
    g.node(op, [x], loss=None, **attributes)


@template(2)
def smooth_unary(g: Graph) -> None:
    ops = [
        "Exp",
        "Sqrt",
        "Log",
        "Tanh",
        "Sigmoid",
        "Erf",
        "Sin",
        "Cos",
        "Atan",
        "Sinh",
        "Asinh",
        "Softplus",
        "Softsign",
        "Reciprocal",
    ]
    op = g.choose([*ops, "Tan", "Gelu", "Mish", "HardSwish"])
    x = g.pick("f", exact=op in ("Sqrt", "Log", "Reciprocal", "Tan", "Exp", "Sinh"))
    if op == "Tan":
        x = g.node("Atan", [x], loss=4.0)
    g.node(op, [x], loss=20.0)


@template(2)
def activation(g: Graph) -> None:
    op = g.choose(["LeakyRelu", "Elu", "Selu", "HardSigmoid", "Celu", "ThresholdedRelu", "Shrink", "PRelu"])
    x = g.pick("f", exact=op in ("ThresholdedRelu", "Shrink"))
    if op == "Shrink" and x.dtype == np.float64:
        raise Rejected("computed in single precision")
    attributes = {
        "LeakyRelu": {"alpha": 0.3},
        "Elu": {"alpha": 1.3},
        "Selu": {"alpha": 1.5, "gamma": 0.7},
        "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
        "Celu": {"alpha": 0.6},
        "ThresholdedRelu": {"alpha": 0.5},
        "Shrink": {"lambd": 0.5, "bias": 0.25},
        "PRelu": {},
    }[op]
    if g.chance(0.4):
        attributes = {}
    g.node(op, [x, g.partner(x)] if op == "PRelu" else [x], loss=4.0, **attributes)


@template()
def power(g: Graph) -> None:
    x = g.pick("fi", exact=True)
    kinds = [x.dtype] if g.opset < 12 else [x.dtype, np.float32, np.int64, np.int32]
    of = np.dtype(g.choose(kinds))
    exponent = np.asarray(g.choose([0, 1, 2, 3, [2], *([] if of.kind == "u" else [0.5, -1])]), dtype=of)
    if not x.is_float and (np.any(exponent < 0) or np.abs(x.data.astype(np.float64)).max(initial=0) > 100):
        raise Rejected("powers of integers that overflow")
    g.node("Pow", [x, g.given(exponent)], loss=8.0 if x.is_float else 0.0)


@template(2)
def extreme(g: Graph) -> None:
    op = g.choose(["Min", "Max", "Sum", "Mean"])
    a = g.pick("fi" if op in ("Min", "Max") else "f")
    parts = [a, *(g.partner(a) for _ in range(g.integer(0, 2)))]
    g.node(op, parts, loss=None if op in ("Min", "Max") else 4.0)


@template(2)
def clip(g: Graph) -> None:
    x = g.pick("fi")
    low, high = sorted(g.array(x.dtype, (2,), special=0.0).tolist())
    if g.chance(0.1):
        low, high = high, low
    if g.since("Clip") < 11:
        if x.is_float and np.isinf(x.data).any():
            raise Rejected("bounds that are not given are the largest numbers there")
        g.node(
            "Clip",
            [x],
            loss=None,
            **({"min": float(low)} if g.chance(0.8) else {}),
            **({"max": float(high)} if g.chance(0.8) else {}),
        )
        return
    bounds = [g.given(np.asarray(b, x.dtype)) if g.chance(0.8) else None for b in (low, high)]
    if None in bounds and x.is_float and np.isinf(x.data).any():
        raise Rejected("ONNX Runtime takes the largest number for a bound that is not given")
    while bounds and bounds[-1] is None:
        bounds.pop()
    g.node("Clip", [x, *bounds], loss=None)


@template(2)
def modulo(g: Graph) -> None:
    a = g.pick("fi", exact=True)
    data = g.array(a.dtype, g.choose([a.shape, a.shape[-1:], (), (1,)]))
    b = g.given(np.where((data == 0) | (data == -1), 3, data).astype(a.dtype))
    small = a.is_float or np.abs(a.data.astype(np.float64)).max(initial=0) < 2**53  # ONNX Runtime goes through doubles
    g.node("Mod", [a, b], fmod=1 if a.is_float else g.integer(0, 1) if small else 0)


@template(2)
def comparison(g: Graph) -> None:
    op = g.choose(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
    a = g.pick("fib" if op == "Equal" else "fi", exact=True)
    g.node(op, [a, g.partner(a, exact=True)])


@template()
def logic(g: Graph) -> None:
    op = g.choose(["And", "Or", "Xor", "Not", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"])
    a = g.pick("i" if op.startswith("Bit") else "b")
    if op == "BitShift":
        amount = g.given(g.rng.integers(0, 8, g.choose([a.shape, ()])).astype(a.dtype))
        g.node(op, [a, amount], direction=g.choose(["LEFT", "RIGHT"]))
        return
    g.node(op, [a] if op.endswith("Not") else [a, g.partner(a)])


@template(2)
def where(g: Graph) -> None:
    a = g.pick("fib")
    b = g.partner(a)
    shape = np.broadcast_shapes(a.shape, b.shape)
    test = g.given(g.array(np.bool_, g.choose([shape, shape[-1:], (), (1,)])))
    if g.chance(0.4):
        test = g.pick("b", where=lambda v: v.rank <= len(shape))
    g.node("Where", [test, a, b], loss=None)


CASTS = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.FLOAT16: np.float16,
    TensorProto.INT64: np.int64,
    TensorProto.INT32: np.int32,
    TensorProto.INT8: np.int8,
    TensorProto.UINT8: np.uint8,
    TensorProto.INT16: np.int16,
    TensorProto.UINT16: np.uint16,
    TensorProto.UINT32: np.uint32,
    TensorProto.UINT64: np.uint64,
    TensorProto.BOOL: np.bool_,
}


@template(3)
def cast(g: Graph) -> None:
    x = g.pick("fib")
    to = g.choose(list(CASTS))
    kind = np.dtype(CASTS[to]).kind
    if x.is_float and kind != "f":
        if not x.exact:
            raise Rejected("inexact")
        if kind != "b":
            limits = np.iinfo(CASTS[to])
            wide = x.data.astype(np.float64)
            if not np.all(np.isfinite(wide) & (wide > limits.min - 1) & (wide < limits.max)):
                raise Rejected("not defined")
    if x.is_float and kind == "f" and np.any(np.abs(x.data.astype(np.float64)) > 6e4):
        raise Rejected("not defined")
    if g.chance(0.2) and g.opset >= 15:
        g.node("CastLike", [x, g.given(np.zeros(1, CASTS[to]))], loss=0.0 if x.exact else 1.0)
    else:
        g.node("Cast", [x], to=to, loss=0.0 if x.exact else 1.0)


# Moving


@template(3)
def reshape(g: Graph) -> None:
    x = g.pick()
    size = math.prod(x.shape)
    dims: list[int] = []
    rest = size
    while rest > 1 and len(dims) < 4:
        factor = g.choose([f for f in range(1, rest + 1) if rest % f == 0])
        dims.append(factor)
        rest //= factor
    dims.insert(g.integer(0, len(dims)), rest)
    if size and g.chance(0.5):
        dims[g.integer(0, len(dims) - 1)] = -1
    dims = [0 if i < x.rank and d == x.shape[i] and g.chance(0.4) else d for i, d in enumerate(dims)]
    if g.chance(0.1) and size == 1:
        dims = []
    g.node("Reshape", [x, g.ints(*dims)], loss=None)


@template()
def flatten(g: Graph) -> None:
    x = g.pick()
    g.node(
        "Flatten",
        [x],
        axis=g.integer(0, x.rank) if g.opset < 11 or not x.rank else g.integer(-x.rank, x.rank),
        loss=None,
    )


@template(2)
def transpose(g: Graph) -> None:
    x = g.pick()
    g.node(
        "Transpose",
        [x],
        loss=None,
        **({"perm": g.rng.permutation(x.rank).tolist()} if x.rank and g.chance(0.8) else {}),
    )


@template(2)
def squeeze(g: Graph) -> None:
    if g.chance(0.5):
        x = g.pick(most=3)
        rank = x.rank + 2
        axes = sorted(set(g.rng.integers(0, rank, 2).tolist()))
        rank = x.rank + len(axes)
        axes = [a % rank for a in axes]
        axes = [a - rank if g.opset >= 11 and g.chance(0.4) else a for a in axes]
        if len({a % rank for a in axes}) != len(axes):
            raise Rejected("an axis twice")
        _with_axes(g, "Unsqueeze", x, axes)
        return
    x = g.pick(where=lambda v: 1 in v.shape)
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    chosen = [i for i in ones if g.chance(0.6)]
    if not chosen or g.chance(0.3):
        g.node("Squeeze", [x], loss=None)
    else:
        _with_axes(g, "Squeeze", x, [a - x.rank if g.opset >= 11 and g.chance(0.4) else a for a in chosen])


def _with_axes(g: Graph, op: str, x: Value, axes: list[int]) -> None:
    if g.since(op) < 13:
        g.node(op, [x], axes=axes, loss=None)
    else:
        g.node(op, [x, g.ints(*axes)], loss=None)


@template(2)
def expand(g: Graph) -> None:
    x = g.pick(most=4)
    shape = [d if d != 1 else g.integer(1, 3) for d in x.shape]
    shape = [1 if g.chance(0.3) else d for d in shape]
    if g.chance(0.3):
        shape = shape[g.integer(0, len(shape)) :]
    elif g.chance(0.3):
        shape = [g.integer(1, 2), *shape]
    g.node("Expand", [x, g.ints(*shape)], loss=None)


@template()
def tile(g: Graph) -> None:
    x = g.pick(least=1)
    g.node("Tile", [x, g.ints(*(g.integer(0 if g.chance(0.1) else 1, 2) for _ in x.shape))], loss=None)


@template(2)
def concat(g: Graph) -> None:
    x = g.pick(least=1)
    axis = g.axis(x) if g.opset >= 11 else g.integer(0, x.rank - 1)
    parts = [x]
    for _ in range(g.integer(0, 3)):
        shape = list(x.shape)
        shape[axis] = g.integer(0, 3)
        parts.append(x if g.chance(0.3) else g.given(g.array(x.dtype, shape)))
    parts = [parts[i] for i in g.rng.permutation(len(parts))]
    g.node("Concat", parts, axis=axis, loss=None)


@template(2)
def split(g: Graph) -> None:
    x = g.pick(least=1)
    axis = g.axis(x) if g.opset >= 11 else g.integer(0, x.rank - 1)
    size, count = x.shape[axis], g.integer(1, 4)
    cuts = sorted(g.integer(0, size) for _ in range(count - 1))
    sizes = np.diff([0, *cuts, size]).tolist()
    even = g.chance(0.4)
    if g.since("Split") < 13:
        g.node("Split", [x], count, axis=axis, loss=None, **({} if even else {"split": sizes}))
    elif even:
        g.node("Split", [x], count, axis=axis, loss=None, **({"num_outputs": count} if g.opset >= 18 else {}))
    else:
        g.node("Split", [x, g.ints(*sizes)], count, axis=axis, loss=None)


FAR = [2**63 - 1, -(2**63), 2**31 - 1, -(2**31), 1000, -1000]


@template(4)
def slices(g: Graph) -> None:
    x = g.pick(least=1)
    axes = g.rng.permutation(x.rank)[: g.integer(1, x.rank)].tolist()
    bounds = [
        [g.choose(FAR) if g.chance(0.15) else g.integer(-x.shape[a] - 2, x.shape[a] + 2) for a in axes]
        for _ in range(2)
    ]
    if g.since("Slice") < 10:
        g.node(
            "Slice",
            [x],
            loss=None,
            starts=bounds[0],
            ends=bounds[1],
            **({"axes": axes} if axes != sorted(axes) or axes[0] or g.chance(0.8) else {}),
        )
        return
    dtype = g.choose([np.int64, np.int64, np.int32])
    if dtype == np.int32:
        bounds = [[max(min(n, 2**31 - 1), -(2**31)) for n in row] for row in bounds]
    steps = [g.choose([1, 1, 2, 3, -1, -1, -2, -3]) for _ in axes] if g.chance(0.6) else []
    # ONNX Runtime takes the largest number to mean the end in both directions, ONNX only forwards.
    bounds[1] = [n if s > 0 or n < 2**31 - 1 else 3 for n, s in zip(bounds[1], steps or [1] * len(axes), strict=True)]
    inputs: list[Value | None] = [g.ints(*row, dtype=dtype) for row in bounds]
    inputs.append(g.ints(*(a - x.rank if g.opset >= 11 and g.chance(0.3) else a for a in axes), dtype=dtype))
    if steps:
        inputs.append(g.ints(*steps, dtype=dtype))
    g.node("Slice", [x, *inputs], loss=None)


@template(2)
def pad(g: Graph) -> None:
    mode = g.choose(["constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else [])])
    x = g.pick("f" if g.opset < 13 else "fib", least=1)
    low = -1 if mode == "constant" or g.chance(0.2) else 0
    axes = list(range(x.rank))
    if g.opset >= 18 and g.chance(0.4):
        axes = g.rng.permutation(x.rank)[: g.integer(1, x.rank)].tolist()
    pads = [g.integer(low, 2) if g.chance(0.6) else 0 for _ in range(2 * len(axes))]
    if mode == "reflect" and any(p >= x.shape[axes[i % len(axes)]] for i, p in enumerate(pads)):
        raise Rejected("not defined")
    if any(p < 0 for p in pads) and (0 in x.shape or mode != "constant"):
        raise Rejected("not defined")
    if mode != "constant" and 0 in x.shape:
        raise Rejected("not defined")
    if g.since("Pad") < 11:
        g.node("Pad", [x], mode=mode, pads=pads, loss=None, **({"value": 1.25} if g.chance(0.5) else {}))
        return
    inputs: list[Value | None] = [x, g.ints(*pads)]
    if mode == "constant" and g.chance(0.6):
        inputs.append(g.given(g.array(x.dtype, ()), kinds=("initializer", "constant", "input")))
    if len(axes) != x.rank or axes != sorted(axes):
        inputs += [None] * (3 - len(inputs)) + [g.ints(*(a - x.rank if g.chance(0.3) else a for a in axes))]
    g.node("Pad", inputs, mode=mode, loss=None)


@template()
def trilu(g: Graph) -> None:
    x = g.pick(least=2)
    inputs = [x, g.given(g.integer(-3, 3), np.int64)] if g.chance(0.6) else [x]
    g.node("Trilu", inputs, upper=g.integer(0, 1), loss=None)


@template()
def depth(g: Graph) -> None:
    if g.chance(0.5):
        x = g.given(g.array(np.float32, (g.integer(1, 2), 8, g.integer(1, 3), g.integer(1, 3))))
        g.node(
            "DepthToSpace", [x], blocksize=2, loss=None, **({"mode": g.choose(["DCR", "CRD"])} if g.opset >= 11 else {})
        )
    else:
        x = g.given(g.array(np.float32, (g.integer(1, 2), 2, 2 * g.integer(1, 3), 2 * g.integer(1, 3))))
        g.node("SpaceToDepth", [x], blocksize=2, loss=None)
