"""Templates of nodes: layers, with windows, weights and states."""

from __future__ import annotations

import numpy as np

from differential.basic import template
from differential.builder import Graph, Rejected, Value


def weights(g: Graph, *shape: int, dtype: type = np.float32) -> Value:
    """What is mostly an initializer with a name such as `layers.0.conv.weight`."""
    data = np.round(g.rng.standard_normal(shape), 2).astype(dtype)
    if g.chance(0.7):
        block = g.choose(["layers.0", "layers.1", "blocks.0.conv", "head", "body.attn", "enc.0.0"])
        name = f"{g.prefix}{block}.{g.choose(['weight', 'bias', 'gamma'])}"
        return g.add(data, "initializer", name if name not in g.values else None)
    return g.given(data)


def floats(g: Graph, *shape: int, dtype: type = np.float32) -> Value:
    """An existing value brought into a shape, or a new one."""
    size = int(np.prod(shape))
    found = [
        v
        for v in g.values.values()
        if isinstance(v.data, np.ndarray)
        and v.data.dtype == dtype
        and v.data.size >= size > 0
        and np.isfinite(v.data).all()
    ]
    if not found or g.chance(0.5):
        return g.given(g.array(dtype, shape, special=0), kinds=("input", "input", "initializer", "constant"))
    x = g.choose(found)
    if x.shape == shape:
        return x
    flat = g.node("Reshape", [x, g.ints(-1, constant=True)], loss=None)
    if flat.data.size > size:
        if g.opset < 10:
            flat = g.node("Slice", [flat], loss=None, starts=[0], ends=[size])
        else:
            flat = g.node("Slice", [flat, g.ints(0, constant=True), g.ints(size, constant=True)], loss=None)
    return g.node("Reshape", [flat, g.ints(*shape)], loss=None)


def windows(g: Graph, rank: int, size: list[int], *, pads: bool = True, dilations: bool = True) -> dict[str, object]:
    """Random attributes of a window that slides over `rank` dimensions."""
    kernel = [g.integer(1, 3) for _ in range(rank)]
    options: dict[str, object] = {"kernel_shape": kernel}
    if g.chance(0.6):
        options["strides"] = [g.integer(1, 3) for _ in range(rank)]
    if dilations and g.chance(0.4):
        options["dilations"] = [g.integer(1, 2) for _ in range(rank)]
    chosen = g.choose(["auto", "pads", "none"])
    if chosen == "auto":
        options["auto_pad"] = g.choose(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    elif chosen == "pads" and pads:
        options["pads"] = [g.integer(0, k - 1) for k in kernel * 2]
    return options


@template(2)
def conv(g: Graph) -> None:
    rank, groups = g.choose([1, 2, 2, 3]), g.choose([1, 1, 2, 3])
    channels, outs = groups * g.integer(1, 2), groups * g.integer(1, 2)
    size = [g.integer(3, 7) for _ in range(rank)]
    x = floats(g, g.integer(1, 2), channels, *size)
    options = windows(g, rank, size)
    kernel = options["kernel_shape"]
    if g.chance(0.3):
        del options["kernel_shape"]
    transposed = g.chance(0.35)
    w = weights(g, *((channels, outs // groups) if transposed else (outs, channels // groups)), *kernel)  # type: ignore[misc]
    inputs = [x, w, weights(g, outs)] if g.chance(0.6) else [x, w]
    if transposed:
        strides = options.get("strides", [1] * rank)
        if g.chance(0.4):
            options["output_padding"] = [g.integer(0, s - 1) for s in strides]  # type: ignore[attr-defined]
        if "auto_pad" in options and options["auto_pad"] != "NOTSET" and g.opset < 11:
            raise Rejected("not defined the same way")
    g.node("ConvTranspose" if transposed else "Conv", inputs, loss=30.0, group=groups, **options)


@template(2)
def pool(g: Graph) -> None:
    rank = g.choose([1, 2, 2, 3])
    size = [g.integer(2, 7) for _ in range(rank)]
    x = floats(g, g.integer(1, 2), g.integer(1, 3), *size, dtype=g.choose([np.float32, np.float32, np.float64]))
    op = g.choose(["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    if op.startswith("Global"):
        g.node(
            op,
            [x],
            loss=None if op == "GlobalMaxPool" else 20.0,
            **({"p": g.integer(1, 3)} if op == "GlobalLpPool" else {}),
        )
        return
    newest = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    options = windows(g, rank, size, dilations=g.opset >= newest)
    if g.opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op] and g.chance(0.4):
        options["ceil_mode"] = 1
    if op == "AveragePool":
        options["count_include_pad"] = g.integer(0, 1)
    if op == "LpPool":
        options["p"] = g.integer(1, 3)
    if options.get("auto_pad", "NOTSET").startswith("SAME") and "dilations" in options:  # type: ignore[attr-defined]
        raise Rejected("not defined")
    reach = [
        (k - 1) * d + 1 for k, d in zip(options["kernel_shape"], options.get("dilations", [1] * rank), strict=True)
    ]  # type: ignore[call-overload]
    if any(r > n for r, n in zip(reach, size, strict=True)):
        raise Rejected("a window larger than the image")
    outputs = 2 if op == "MaxPool" and g.opset >= 8 and g.chance(0.3) and x.exact else 1
    g.node(op, [x], outputs, loss=None if op == "MaxPool" else 20.0, **options)


@template(2)
def matmul(g: Graph) -> None:
    k, n = g.integer(1, 4), g.integer(1, 4)
    dtype = g.choose([np.float32, np.float32, np.float64, np.float16, np.int64, np.int32])
    batch = g.choose([(), (2,), (1, 3), (2, 1)])
    left = g.choose([(k,), (g.integer(1, 4), k), (*batch, g.integer(1, 3), k)])
    right = g.choose([(k,), (k, n), (k, n), (k, n), (*batch[-1:], k, n)])
    if np.dtype(dtype).kind == "i" and g.opset < 9:
        raise Rejected("floats only")
    if np.dtype(dtype).kind == "i":
        a, b = (g.given(g.rng.integers(-5, 6, s).astype(dtype)) for s in (left, right))
    else:
        a, b = floats(g, *left, dtype=dtype), weights(g, *right, dtype=dtype)
    product = g.node("MatMul", [a, b], loss=20.0 if np.dtype(dtype).kind == "f" else 0.0)
    if g.chance(0.6):
        size = product.shape[-1] if product.rank else 1
        shape = g.choose([(size,), (size,), (1, size), (1,), (), (2, 1, size), (size, 1), (*product.shape[-2:-1], 1)])
        bias = (
            weights(g, *shape, dtype=dtype)
            if np.dtype(dtype).kind == "f"
            else g.given(g.array(dtype, shape, special=0))
        )
        g.node("Add", [product, bias] if g.chance(0.6) else [bias, product], loss=2.0 if product.is_float else 0.0)


@template(2)
def gemm(g: Graph) -> None:
    m, k, n = (g.integer(1, 4) for _ in range(3))
    dtype = g.choose([np.float32, np.float32, np.float64])
    left, right = g.integer(0, 1), g.integer(0, 1)
    a = floats(g, *((k, m) if left else (m, k)), dtype=dtype)
    b = weights(g, *((n, k) if right else (k, n)), dtype=dtype)
    options: dict[str, object] = {"transA": left, "transB": right}
    if g.chance(0.4):
        options |= {"alpha": g.choose([0.5, 1.0, 0.3]), "beta": g.choose([0.5, 1.0, 0.0, 0.3])}
    inputs = [a, b]
    if g.chance(0.7) or g.opset < 11:
        shape = g.choose([(n,), (1, n), (m, n), (m, 1), (1, 1), (1,), ()])
        inputs.append(weights(g, *shape, dtype=dtype) if g.chance(0.7) else floats(g, *shape, dtype=dtype))
    g.node("Gemm", inputs, loss=30.0, **options)


EQUATIONS = [
    "ij,jk->ik",
    "ij,jk",
    "bij,bjk->bik",
    "ii->i",
    "ii",
    "ij->ji",
    "ij->",
    "i,j->ij",
    "...ij,...jk->...ik",
    "bhqd,bhkd->bhqk",
    "ij,ij->j",
    "i,i->",
    "...ii->...i",
    "ij,j",
]


@template()
def einsum(g: Graph) -> None:
    equation = g.choose(EQUATIONS)
    sizes = {c: g.integer(1, 3) for c in "bhijkqd"}
    terms = equation.split("->")[0].split(",")
    shapes = [tuple(sizes[c] for c in term.replace("...", "")) for term in terms]
    if g.chance(0.7):  # the same for all terms: ONNX Runtime dies of ellipses of different length
        shapes = [(2, *s) if "..." in t else s for s, t in zip(shapes, terms, strict=True)]
    g.node("Einsum", [floats(g, *s) for s in shapes], loss=20.0, equation=equation)


@template(2)
def norm(g: Graph) -> None:
    op = g.choose(
        [
            "BatchNormalization",
            "InstanceNormalization",
            "LayerNormalization",
            "GroupNormalization",
            "LRN",
            "LpNormalization",
            "MeanVarianceNormalization",
            "RMSNormalization",
        ]
    )
    channels = g.choose([2, 4])
    x = floats(g, g.integer(1, 2), channels, *(g.integer(2, 3) for _ in range(g.integer(1, 2))))
    options: dict[str, object] = {"epsilon": g.choose([1e-5, 1e-2])} if g.chance(0.5) else {}
    if op == "BatchNormalization":
        scale, bias, mean = (weights(g, channels) for _ in range(3))
        variance = g.given(np.abs(g.array(np.float32, (channels,), special=0)) + 0.5)
        g.node(op, [x, scale, bias, mean, variance], loss=30.0, **options)
    elif op == "InstanceNormalization":
        g.node(op, [x, weights(g, channels), weights(g, channels)], loss=200.0, **options)
    elif op in ("LayerNormalization", "RMSNormalization"):
        axis = g.axis(x)
        shape = x.shape[axis:]
        inputs = [x, weights(g, *shape)]
        if op == "LayerNormalization" and g.chance(0.6):
            inputs.append(weights(g, *shape))
        g.node(op, inputs, axis=axis, loss=200.0, **options)
    elif op == "GroupNormalization":
        count = channels if g.opset >= 21 else 2
        g.node(op, [x, weights(g, count), weights(g, count)], num_groups=2, loss=200.0, **options)
    elif op == "LRN":
        g.node(
            op,
            [x],
            size=g.choose([1, 3, 5]),
            loss=20.0,
            **({"alpha": 0.3, "beta": 0.5, "bias": 1.5} if g.chance(0.6) else {}),
        )
    elif op == "LpNormalization":
        if not np.all(np.abs(x.data) > 0.01):
            raise Rejected("badly conditioned")
        g.node(op, [x], axis=g.axis(x), p=g.integer(1, 2), loss=20.0)
    else:
        g.node(op, [x], axes=g.choose([[0, 2], [1], [0, 1, 2]]), loss=200.0)


@template(2)
def resize(g: Graph) -> None:
    rank = g.choose([1, 2])
    x = floats(g, g.integer(1, 2), g.integer(1, 2), *(g.integer(1, 5) for _ in range(rank)))
    mode = g.choose(["nearest", "linear", "cubic"] if g.opset >= 11 and rank == 2 else ["nearest", "linear"])
    if g.opset < 10:
        scales = [1.0, 1.0, *(g.choose([1.0, 2.0, 1.5, 3.0]) for _ in range(rank))]
        if g.opset < 9:
            g.node("Upsample", [x], scales=scales, mode=mode, loss=20.0)
        else:
            g.node("Upsample", [x, g.given(scales, np.float32)], mode=mode, loss=20.0)
        return
    factors = [1.0, 1.0, *(g.choose([1.0, 2.0, 0.5, 1.5, 0.6, 2.3, 3.0]) for _ in range(rank))]
    factors = [max(f, 1.0) if n == 1 else f for f, n in zip(factors, x.shape, strict=True)]
    if g.opset == 10:
        g.node("Resize", [x, g.given(factors, np.float32)], mode=mode, loss=20.0)
        return
    options: dict[str, object] = {
        "mode": mode,
        "coordinate_transformation_mode": g.choose(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]),
    }
    if mode == "nearest":
        options["nearest_mode"] = g.choose(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        options |= {"cubic_coeff_a": g.choose([-0.75, -0.5]), "exclude_outside": g.integer(0, 1)}
    if g.opset >= 18 and g.chance(0.3) and mode != "nearest":
        options["antialias"] = 1
    nothing = g.given(np.zeros(0, np.float32), kinds=("initializer", "constant"))
    roi = nothing if g.opset < 13 or g.chance(0.3) else None
    if g.chance(0.5):
        if (
            options["coordinate_transformation_mode"] == "align_corners"
        ):  # where ONNX Runtime and ONNX's own tests differ
            factors = [float(round(f + 0.01)) for f in factors]
        g.node("Resize", [x, roi, g.given(factors, np.float32)], loss=40.0, **options)
    else:
        sizes = [*x.shape[:2], *(g.integer(1, 8) for _ in range(rank))]
        g.node("Resize", [x, roi, nothing if g.opset < 13 else None, g.ints(*sizes)], loss=40.0, **options)


@template()
def recurrent(g: Graph) -> None:
    op = g.choose(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    steps, batch, width, hidden = g.integer(1, 3), g.integer(1, 2), g.integer(1, 3), g.integer(1, 3)
    direction = g.choose(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    inputs: list[Value | None] = [
        floats(g, steps, batch, width),
        weights(g, ways, gates * hidden, width),
        weights(g, ways, gates * hidden, hidden),
    ]
    inputs.append(weights(g, ways, 2 * gates * hidden) if g.chance(0.6) else None)
    inputs.append(g.given(g.rng.integers(1, steps + 1, batch), np.int32) if g.chance(0.4) else None)
    inputs.append(floats(g, ways, batch, hidden) if g.chance(0.5) else None)
    if op == "LSTM":
        inputs.append(floats(g, ways, batch, hidden) if g.chance(0.5) else None)
        inputs.append(weights(g, ways, 3 * hidden) if g.chance(0.2) else None)
    while inputs[-1] is None:
        inputs.pop()
    options: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        options["linear_before_reset"] = g.integer(0, 1)
    g.node(op, inputs, g.integer(1, 3 if op == "LSTM" else 2), loss=60.0, **options)


@template()
def quantized(g: Graph) -> None:
    of = g.choose([np.uint8, np.int8])
    x = g.given(g.array(np.float32, g.sizes(g.integer(1, 3)), special=0))
    scale, zero = g.given(g.choose([0.1, 0.25, 0.5]), np.float32), g.given(g.integer(0, 5), of)
    if g.opset < 10:
        raise Rejected("none yet")
    q = g.node("QuantizeLinear", [x, scale, zero], loss=0.0)
    g.node("DequantizeLinear", [q, scale, zero], loss=0.0)


@template()
def dropout(g: Graph) -> None:
    x = g.pick("f")
    if g.since("Dropout") < 12:  # the mask of older ones is not defined
        g.node("Dropout", [x], ratio=0.4, loss=None)
    else:
        g.node(
            "Dropout",
            [x, g.given(0.4, np.float32), g.given(False, np.bool_)][: g.integer(1, 3)],
            g.integer(1, 2),
            loss=None,
        )
