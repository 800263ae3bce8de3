"""A random graph as generated code, against the values that ONNX Runtime computed; and what is left of it when
everything is taken away that does not matter to a difference."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from differential import index, layers, patterns  # noqa: F401  (they register their templates)
from differential.builder import FLOATS, Graph, Value
from differential.flow import grow
from differential.tangled import tangled_graph
from onward.scoreboard.suite import forget_shapes, prepare

SCOPES = [
    "",
    "",
    "a",
    "b",
    "layers/layers.0",
    "layers/layers.1",
    "layers/layers.2",
    "blocks.0/conv",
    "head",
    "a/c",
    "body/attn",
    "enc/enc.0/0",
]


def random_graph(seed: int | Sequence[int]) -> Graph:
    rng = np.random.default_rng(seed)
    if rng.random() < 0.3:
        g = tangled_graph(seed)
        choose_outputs(g)
        return g
    g = Graph(rng, int(rng.choice([7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22])))
    scoped = g.chance(0.5)
    for _ in range(g.integer(1, 6)):
        if scoped:
            g.scope = g.choose(SCOPES)
        grow(g, g.integer(1, 2))
    choose_outputs(g)
    return g


def choose_outputs(g: Graph) -> None:
    """Ends of the computation, some values inside it, at times an input or a constant itself."""
    read = {n for node in g.nodes for n in node.input}
    made = [v for v in g.values.values() if v.kind == "node"]
    ends = [v.name for v in made if v.name not in read]
    inner = [v.name for v in made if v.name in read and g.chance(0.1)]
    plain = [v.name for v in g.values.values() if v.kind != "node" and g.chance(0.03)]
    g.outputs = list(dict.fromkeys([o for o in (*g.outputs, *ends, *inner, *plain) if o in g.values]))


def difference(found: Any, right: Value) -> str:
    """What is wrong with a result, or nothing."""
    if not isinstance(found, np.ndarray):
        return f"{right.name} is no array"
    wanted = right.data
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{right.name}: {found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
    if wanted.dtype not in FLOATS:
        return "" if np.array_equal(found, wanted) else f"{right.name}: {found.tolist()} instead of {wanted.tolist()}"
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    if right.exact:
        same = np.array_equal(a, b, equal_nan=True)
    else:
        same = np.allclose(a, b, rtol=0, atol=max(right.noise, 1e-30), equal_nan=True)
    return "" if same else f"{right.name}: {a.tolist()} instead of {b.tolist()} (±{right.noise})"


def check(
    g: Graph,
    nodes: Sequence[onnx.NodeProto] | None = None,
    outputs: Sequence[str] | None = None,
    unused: bool = True,
    variants: Sequence[bool] = (False, True),
    runner: str = "torch",
) -> str:
    """What is wrong with the converted graph, as declared and with its shapes forgotten, or nothing."""
    model, inputs, wanted = g.model(nodes, outputs, unused)
    if not wanted:
        return ""
    for unknown in variants:
        label = "unknown shapes: " if unknown else ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run = prepare(runner, forget_shapes(model) if unknown else model)
                found = run([np.array(x) for x in inputs])
        except Exception as error:
            return f"{label}{type(error).__name__}: {str(error)[:400]}"
        for actual, right in zip(found, wanted, strict=True):
            wrong = difference(actual, right)
            if wrong:
                return label + wrong
    return ""


def smallest(g: Graph, wrong: str, runner: str = "torch") -> tuple[list[onnx.NodeProto], list[str], str]:
    """Fewer nodes and outputs with which there still is a difference (or an error of the same kind)."""
    kind = _kind(wrong)
    variants = [wrong.startswith("unknown")]

    def fails(nodes: list[onnx.NodeProto], outputs: list[str]) -> str:
        known = [o for o in outputs if g.values[o].kind != "node" or any(o in n.output for n in nodes)]
        if not known:
            return ""
        found = check(g, nodes, known, False, variants, runner)
        return found if found and _kind(found) == kind else ""

    nodes, outputs = list(g.nodes), list(g.outputs)
    for name in [v.name for v in g.values.values() if v.kind == "node"]:
        if fails(nodes, [name]):
            outputs = [name]
            break
    changed = True
    while changed:
        changed = False
        for candidate in list(reversed(nodes)):
            fewer = [n for n in nodes if n is not candidate]
            left = [o for o in outputs if o not in candidate.output]
            found = fails(fewer, left) if left else ""
            if found:
                nodes, outputs, wrong, changed = fewer, left, found, True
        for name in list(outputs):
            left = [o for o in outputs if o != name]
            if left and (found := fails(nodes, left)):
                outputs, wrong, changed = left, found, True
    return nodes, outputs, fails(nodes, outputs) or wrong


def _kind(wrong: str) -> str:
    """Whether it is a refusal, a crash or a wrong result."""
    text = wrong.removeprefix("unknown shapes: ")
    head = text.split(":")[0]
    return head if head.endswith(("Error", "Exception", "Failure")) else "result"
