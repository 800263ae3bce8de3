"""Graphs of many simple nodes: values read in many places, modules whose nodes interleave, shared weights, nested
bodies that read what is around them. All numbers are small integers, so that every result is exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import helper

from differential.builder import Graph, Rejected, Value
from differential.flow import body

SHAPE = (2, 3)
SCOPES = [
    "",
    "a",
    "a/b",
    "a/c",
    "layers/layers.0",
    "layers/layers.1",
    "layers/layers.2",
    "layers/layers.0/fc",
    "layers/layers.1/fc",
    "seq/seq.0",
    "seq/seq.1",
    "seq/seq.2",
    "net",
]


def values(g: Graph) -> list[Value]:
    return [v for v in g.values.values() if v.dtype == np.float32 and v.shape == SHAPE]


def recent(g: Graph) -> Value:
    found = values(g)
    return g.choose(found[-4:]) if g.chance(0.6) else g.choose(found)


def bounded(g: Graph, x: Value) -> Value:
    if np.abs(x.data).max() <= 50:
        return x
    if g.opset < 11:
        return g.node("Clip", [x], min=-9.0, max=9.0)
    return g.node(
        "Clip", [x, g.given(-9, np.float32, ("constant",)), g.given(9, np.float32, ("initializer", "constant"))]
    )


def mix(g: Graph) -> None:
    op = g.choose(["Add", "Sub", "Mul", "Min", "Max"])
    bounded(g, g.node(op, [recent(g), recent(g)]))


def single(g: Graph) -> None:
    g.node(g.choose(["Relu", "Neg", "Abs", "Identity", "Sign"]), [recent(g)])


def weight(g: Graph, kind: str, *shape: int) -> Value:
    """A parameter of the module that the node is in, of another module, or one that is used already."""
    path = (g.scope if g.chance(0.7) else g.choose(SCOPES)).split("/")[-1] or "top"
    name = f"{path}.{kind}"
    known = g.values.get(name)
    if known is not None and known.shape == shape:
        return known
    data = g.rng.integers(-1, 2, shape).astype(np.float32)
    return g.add(data, "initializer", name if known is None else None)


def dense(g: Graph) -> None:
    w = weight(g, "weight", 3, 3)
    if g.chance(0.4):
        w = g.node("Transpose", [w], perm=[1, 0])
    product = g.node("MatMul", [recent(g), w])
    if g.chance(0.6):
        product = g.node("Add", [product, weight(g, "bias", 3)])
    bounded(g, product)


def halves(g: Graph) -> None:
    x = recent(g)
    parts = g.node("Split", [x], 2, axis=0) if g.opset < 18 else g.node("Split", [x], 2, axis=0, num_outputs=2)
    parts = parts[::-1] if g.chance(0.5) else parts
    if g.chance(0.5):
        parts = [parts[0], g.node("Neg", [parts[0]])]
    g.node("Concat", parts, axis=0)


def shaped(g: Graph) -> None:
    x = recent(g)
    n = g.node(
        "Gather",
        [
            g.node("Shape", [x]),
            g.given(g.choose([0, 1, -1] if g.opset >= 11 else [0, 1]), np.int64, ("initializer", "constant")),
        ],
        axis=0,
    )
    m = g.node(g.choose(["Add", "Mul", "Sub"]), [n, g.given(g.integer(1, 3), np.int64, ("constant",))])
    number = g.node("Cast", [g.choose([n, m])], to=1)
    g.node(g.choose(["Add", "Sub"]), [recent(g), number])


def condition(g: Graph) -> Value:
    kind = g.choose(["input", "shape", "data"])
    if kind == "input" or g.opset < 9:
        return g.given(g.chance(0.5), np.bool_, ("input",))
    if kind == "shape":
        size = g.node("Gather", [g.node("Shape", [recent(g)]), g.given(0, np.int64, ("constant",))], axis=0)
        return g.node("Less", [size, g.given(g.integer(1, 4), np.int64, ("constant",))])
    total = g.node("ReduceMax", [recent(g)], keepdims=0)
    return g.node("Less", [total, g.given(g.integer(-2, 5), np.float32, ("constant",))])


def inside(g: Graph, letter: str, formals: list[Value], steps: int) -> Graph:
    inner = Graph(g.rng, g.opset, dict(g.values), prefix=f"{g.prefix}{letter}{g.count}_", scope=g.scope)
    g.count += 1
    inner.values.update({v.name: v for v in formals})
    inner.outer = set(inner.values)  # type: ignore[attr-defined]
    inner.depth = getattr(g, "depth", 0) + 1  # type: ignore[attr-defined]
    grow(inner, steps)
    return inner


def branch(g: Graph) -> None:
    test = condition(g)
    count = g.integer(1, 3)
    graphs = []
    for name in ("then", "else"):
        inner = inside(g, name[0], [], g.integer(0, 3))
        graphs.append(body(inner, name, [], [recent(inner) for _ in range(count)]))
    outputs = [g.fresh() for _ in range(count)]
    g.append(helper.make_node("If", [test.name], outputs, then_branch=graphs[0], else_branch=graphs[1]))


def loop(g: Graph) -> None:
    count = g.integer(1, 3)
    states = [recent(g) for _ in range(count)]
    index = Value(g.fresh("i"), np.asarray(0, np.int64), "input")
    going = Value(g.fresh("go"), np.asarray(True), "input")
    formals = [Value(g.fresh("s"), s.data, "input") for s in states]
    inner = inside(g, "l", [index, going, *formals], g.integer(1, 4))
    pool = [*formals, recent(inner), recent(inner)]
    following = [_small(inner, inner.choose(pool)) if g.chance(0.8) else inner.choose(formals) for _ in formals]
    if g.chance(0.4):
        step = inner.node("Cast", [index], to=1)
        following[0] = _small(inner, inner.node("Add", [following[0], step]))
    proceed = going
    if g.chance(0.4) and g.opset >= 9:
        top = inner.node("ReduceMax", [inner.choose([*formals, *following])], keepdims=0)
        proceed = inner.node("Less", [top, inner.given(g.integer(0, 8), np.float32, ("constant",))])
    collected = [inner.choose([*following, recent(inner)]) for _ in range(g.integer(0, 2))]
    graph = body(inner, "body", [index, going, *formals], [proceed, *following, *collected])
    trips = g.given(g.integer(1, 4), np.int64)
    start = g.given(True, np.bool_).name if g.chance(0.5) else ""
    outputs = [g.fresh() for _ in (*following, *collected)]
    g.append(helper.make_node("Loop", [trips.name, start, *(s.name for s in states)], outputs, body=graph))


def _small(inner: Graph, x: Value) -> Value:
    """Kept from growing beyond what single precision counts exactly."""
    if inner.opset < 11:
        return inner.node("Clip", [x], min=-9.0, max=9.0)
    return inner.node("Clip", [x, *(inner.given(n, np.float32, ("constant",)) for n in (-9, 9))])


def scan(g: Graph) -> None:
    if g.opset < 9:
        raise Rejected("another form")
    states = [recent(g) for _ in range(g.integer(1, 2))]
    rows = [recent(g) for _ in range(g.integer(1, 2))]
    formals = [Value(g.fresh("s"), s.data, "input") for s in states]
    items = [Value(g.fresh("e"), r.data[0], "input") for r in rows]
    inner = inside(g, "n", [*formals, *items], g.integer(1, 3))
    moved = inner.node("Add", [recent(inner), inner.choose(items)])
    following = [_small(inner, inner.choose([moved, recent(inner), *formals])) for _ in formals]
    collected = [inner.choose([moved, *following, *items]) for _ in range(g.integer(0, 2))]
    graph = body(inner, "body", [*formals, *items], [*following, *collected])
    outputs = [g.fresh() for _ in (*following, *collected)]
    names = [v.name for v in (*states, *rows)]
    g.append(helper.make_node("Scan", names, outputs, body=graph, num_scan_inputs=len(rows)))


TEMPLATES: list[Callable[[Graph], None]] = (
    [mix] * 6 + [single] * 3 + [dense] * 4 + [halves, shaped, branch, branch, loop, scan]
)


def grow(g: Graph, steps: int) -> None:
    for _ in range(steps):
        if not g.prefix:
            g.scope = g.choose(SCOPES) if g.chance(0.6) else g.scope
        templates = TEMPLATES if getattr(g, "depth", 0) < 2 else [t for t in TEMPLATES if t not in (branch, loop, scan)]
        try:
            g.choose(templates)(g)
        except Rejected:
            continue


def tangled_graph(seed: int | list[int]) -> Graph:
    rng = np.random.default_rng(seed)
    g = Graph(rng, int(rng.choice([9, 11, 13, 17, 18, 21])))
    for _ in range(g.integer(1, 2)):
        g.add(rng.integers(-3, 4, SHAPE).astype(np.float32), "input")
    grow(g, g.integer(4, 20))
    return g
