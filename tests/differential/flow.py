"""Templates of control flow: bodies that are random graphs themselves and read what is around them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from differential.basic import TEMPLATES, Template, template
from differential.builder import Graph, Rejected, Value, info, type_of


def inside(g: Graph, arguments: list[Value], steps: int) -> Graph:
    """A graph that sees all of the outer one; what it makes is not seen from outside."""
    inner = Graph(g.rng, g.opset, dict(g.values), prefix=f"{g.prefix}b{g.count}_", scope=g.scope)
    inner.values.update({v.name: v for v in arguments})
    inner.outer = set(inner.values)  # type: ignore[attr-defined]
    g.count += 1
    grow(inner, steps, [t for t in TEMPLATES if t.__module__ != __name__ or inner.prefix.count("b") < 3])
    return inner


def grow(g: Graph, steps: int, templates: list[Template] | None = None) -> None:
    """Add random nodes; templates that lead nowhere are passed over."""
    chosen = templates or TEMPLATES
    for _ in range(steps):
        if len(g.nodes) <= 60:
            with suppress(Rejected):  # what was made before a template failed is a valid graph too
                g.choose(chosen)(g)


def body(inner: Graph, name: str, inputs: list[Value], outputs: list[Value]) -> onnx.GraphProto:
    """The graph of a body: constants and inputs that it made for itself become its own."""
    outer: set[str] = inner.outer  # type: ignore[attr-defined]
    made = {o for n in inner.nodes for o in n.output}
    own = [v for v in inner.values.values() if v.name not in outer and v.name not in made]
    constants = [
        helper.make_node("Constant", [], [v.name], value=numpy_helper.from_array(v.data, v.name))
        for v in own
        if v.kind != "initializer"
    ]
    nodes, results = [*constants, *inner.nodes], []
    for i, value in enumerate(outputs):
        if value.name in made and value.name not in results and inner.chance(0.7):
            results.append(value.name)
            continue
        results.append(f"{inner.prefix}out{i}")
        nodes.append(helper.make_node("Identity", [value.name], [results[-1]]))
    return helper.make_graph(
        nodes,
        name,
        [info(v.name, v.data) for v in inputs],
        [helper.make_tensor_value_info(n, type_of(v.data), None) for n, v in zip(results, outputs, strict=True)],
        [numpy_helper.from_array(v.data, v.name) for v in own if v.kind == "initializer"],
    )


def results_of(inner: Graph, dtype: Any = None, shape: Any = None) -> list[Value]:
    found = [v for v in inner.values.values() if isinstance(v.data, np.ndarray) and v.data.dtype.kind != "O"]
    return [v for v in found if (dtype is None or v.dtype == dtype) and (shape is None or v.shape == shape)]


@template(2)
def if_(g: Graph) -> None:
    test = (
        g.given(g.chance(0.5), np.bool_, ("input", "input", "initializer", "constant"))
        if g.chance(0.6)
        else g.pick("b", most=0, exact=True)
    )
    branches = [inside(g, [], g.integer(0, 3)) for _ in range(2)]
    first = results_of(branches[0])
    outputs: list[list[Value]] = [[], []]
    for _ in range(g.integer(1, 3)):
        value = g.choose(first[-6:])
        others = results_of(branches[1], value.dtype)
        outputs[0].append(value)
        outputs[1].append(g.choose(others))
    graphs = [body(b, n, [], o) for b, n, o in zip(branches, ("then", "else"), outputs, strict=True)]
    names = [g.fresh() for _ in outputs[0]]
    proto = helper.make_node("If", [test.name], names, then_branch=graphs[0], else_branch=graphs[1])
    taken = outputs[0 if test.data else 1]
    _append(g, proto, taken)


def _append(g: Graph, proto: onnx.NodeProto, like: list[Value]) -> None:
    """Append a node with bodies: as inexact as everything in it."""
    noise = max((v.noise for v in like), default=0.0)
    made = g.append(proto, 0.0, moves=True)
    for value, source in zip(made, like, strict=True):
        value.exact = value.exact and all(v.exact for v in like)
        value.noise = max(value.noise, 4 * noise, source.noise)
        if not value.exact and value.data.dtype.kind == "f" and not np.all(np.abs(value.data) < 1e3):
            raise Rejected("too large")


def exactly(g: Graph) -> list[Template]:
    """Templates whose results stay comparable when they are repeated."""
    names = {
        "exact_unary",
        "extreme",
        "clip",
        "where",
        "slices",
        "transpose",
        "comparison",
        "logic",
        "cast",
        "arithmetic",
        "shape_numbers",
        "gather",
        "if_",
    }
    return [t for t in TEMPLATES if t.__name__ in names]


def state(g: Graph) -> Value:
    return g.pick(
        "fi",
        most=3,
        exact=True,
        where=lambda v: (
            v.dtype in (np.float32, np.int64, np.float64, np.int32) and (not v.is_float or np.isfinite(v.data).all())
        ),
    )


@template(2)
def loop(g: Graph) -> None:
    states = [state(g) for _ in range(g.integer(0, 2))]
    inner = Graph(g.rng, g.opset, dict(g.values), prefix=f"{g.prefix}l{g.count}_", scope=g.scope)
    g.count += 1
    index = Value(f"{inner.prefix}i", np.asarray(0, np.int64), "input")
    running = Value(f"{inner.prefix}go", np.asarray(True), "input")
    formals = [Value(f"{inner.prefix}s{i}", s.data, "input") for i, s in enumerate(states)]
    inner.values.update({v.name: v for v in (index, running, *formals)})
    inner.outer = set(inner.values)  # type: ignore[attr-defined]
    grow(inner, g.integer(1, 3), exactly(g))
    following = []
    for formal in formals:
        same = [v for v in results_of(inner, formal.dtype, formal.shape) if v.name != formal.name and v.exact] or [
            formal
        ]
        other = g.choose(same)
        if g.chance(0.5) and formal.dtype in (np.float32, np.int64, np.float64):
            other = inner.node(g.choose(["Add", "Sub"]), [formal, other])
        following.append(other)
    scanned = [
        g.choose([v for v in results_of(inner) if v.exact][-5:]) for _ in range(g.integer(0 if states else 1, 2))
    ]
    proceed: Value = running
    limit = g.integer(1 if scanned else 0, 4)  # the shape of what an empty loop collects is a matter of inference
    if g.chance(0.4):
        bound = inner.given(g.integer(0, 3), np.int64, ("constant",))
        proceed = inner.node("Less", [index, bound]) if g.opset >= 9 else running
    graph = body(inner, "body", [index, running, *formals], [proceed, *following, *scanned])
    trips = g.given(limit, np.int64) if g.chance(0.85) or proceed is running else None
    start = g.given(bool(trips is None or scanned or g.chance(0.8)), np.bool_) if g.chance(0.5) else None
    inputs = ["" if trips is None else trips.name, "" if start is None else start.name, *(s.name for s in states)]
    names = [g.fresh() for _ in (*following, *scanned)]
    g.append(helper.make_node("Loop", inputs, names, body=graph))


@template(2)
def scan(g: Graph) -> None:
    if g.opset < 9:
        raise Rejected("another form")
    states = [state(g) for _ in range(g.integer(0, 2))]
    sequences = [
        g.pick(
            "fi", least=1, most=3, exact=True, where=lambda v: v.dtype in (np.float32, np.int64) and 0 not in v.shape
        )
    ]
    axes = [g.axis(sequences[0]) if g.opset >= 11 else g.integer(0, sequences[0].rank - 1)]
    if g.chance(0.4):
        size = sequences[0].shape[axes[0]]
        sequences.append(g.given(g.array(np.float32, (size, g.integer(1, 2)))))
        axes.append(0)
    inner = Graph(g.rng, g.opset, dict(g.values), prefix=f"{g.prefix}s{g.count}_", scope=g.scope)
    g.count += 1
    formals = [Value(f"{inner.prefix}s{i}", s.data, "input") for i, s in enumerate(states)]
    items = [
        Value(f"{inner.prefix}e{i}", np.asarray(np.take(s.data, 0, axis=a)), "input")
        for i, (s, a) in enumerate(zip(sequences, axes, strict=True))
    ]
    inner.values.update({v.name: v for v in (*formals, *items)})
    inner.outer = set(inner.values)  # type: ignore[attr-defined]
    grow(inner, g.integer(1, 3), exactly(g))
    following = [g.choose([v for v in results_of(inner, f.dtype, f.shape) if v.exact]) for f in formals]
    # ONNX Runtime dies of scans that collect nothing.
    scanned = [
        g.choose([v for v in results_of(inner) if v.exact and v.data.size][-5:])
        for _ in range(g.integer(0 if states else 1, 2))
    ]
    graph = body(inner, "body", [*formals, *items], [*following, *scanned])
    options: dict[str, Any] = {"num_scan_inputs": len(sequences), "scan_input_axes": axes}
    if g.chance(0.4):
        options["scan_input_directions"] = [g.integer(0, 1) for _ in sequences]
    if scanned and g.chance(0.4):
        options["scan_output_directions"] = [g.integer(0, 1) for _ in scanned]
    if scanned and g.chance(0.4):
        options["scan_output_axes"] = [g.integer(0, v.rank) for v in scanned]
    names = [g.fresh() for _ in (*following, *scanned)]
    g.append(helper.make_node("Scan", [v.name for v in (*states, *sequences)], names, body=graph, **options))
