"""Reports of verifications as they come out, built by hand."""

import math
import random
from typing import Any

from onward.verification.results import Culprit, Metrics, NodeError, OutputResult, Report, SideResult, Tolerance, Trial

FLOAT32 = Tolerance(
    7.1e-5, 7.1e-5, floor=7.1e-5, noise_worst=3.2e-7, noise_overall=1.1e-7, factor=4, why="the floor of float32"
)
NOISY = Tolerance(0.052, 0.021, 7.1e-5, 0.013, 0.0053, 4, "4 × the noise of onnxruntime, optimised and not")
ENVIRONMENT = {
    "python": "3.11.2",
    "machine": "Linux x86_64",
    "onnx": "1.23.0",
    "onnxruntime": "1.31.0",
    "torch": "2.13.0",
}
EDGES = tuple(float(e) for e in range(-10, 2))
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">\x1b[31m‮"


def output(name: str, worst: float = 1.2e-6, tolerance: Tolerance = FLOAT32, **changes: Any) -> OutputResult:
    differs = worst > tolerance.worst
    figures = Metrics(
        worst, worst / 3, 3.1 * worst, worst / 2, 0.18 if differs else 0.0, 41.0, 0.9999998, 121.4, top1=1.0, top5=1.0
    )
    peak = max(1, min(len(EDGES) - 2, round(math.log10(worst)) + 10)) if worst else 0
    counts = tuple(round(1000 * math.exp(-abs(i - peak))) for i in range(len(EDGES) - 1))
    facts: dict[str, Any] = {
        "status": "different" if differs else "same",
        "kind": "values" if differs else "",
        "reason": f"values differ by up to {worst:.2g}, {tolerance.worst:.2g} allowed" if differs else "",
        "dtype": "float32",
        "shape": (2, 1000),
        "metrics": figures,
        "tolerance": tolerance,
        "index": (0, 17),
        "expected": "0.12345678",
        "actual": "0.12345689",
        "histogram": (EDGES, counts),
    }
    return OutputResult(name, **(facts | changes))


def same() -> Report:
    trials = tuple(
        Trial(data, (output("logits", worst), output("boxes", worst / 2, NOISY)), 0.02)
        for data, worst in (("random, batch=1", 1.2e-6), ("random, batch=2", 2.4e-6), ("zeros", 0.0))
    )
    sides = [SideResult("torch", trials, seconds=0.41), SideResult("openvino", trials[:2], seconds=0.2)]
    return Report("models/digits.onnx", "onnxruntime", sides, [t.data for t in trials], [], ENVIRONMENT, 1.3, chain(12))


def different() -> Report:
    """Two of three sides do not agree: one in its values, one in its shape; names are long or unfriendly."""
    long = "model/decoder/layers.11/self_attention/output_projection/Add_output_0"
    shape = output(
        "boxes",
        0.0,
        NOISY,
        status="different",
        kind="shape",
        reason="shape [1, 4, 2] instead of [1, 2, 4]",
        histogram=None,
        index=None,
        expected="",
        actual="",
        metrics=Metrics(math.inf, math.inf, math.inf, math.inf, 1.0),
    )
    bad = Trial(
        "random, batch=2",
        (output("logits", 0.137), output(long), output("ids", 0, Tolerance(0, 0, why="exact"), dtype="int64")),
        0.03,
    )
    fine = Trial(
        "zeros",
        (output("logits", 0.0), output(long, 0.0), output("ids", 0, Tolerance(0, 0, why="exact"), dtype="int64")),
        0.03,
    )
    culprit = Culprit("conv_7", "Conv", ("v7",), 0.137, 1.1e-6, 5, "", "reduced/model.onnx")
    profile = profile_of(chain(12), broken=7)
    return Report(
        "models/vision.onnx",
        "onnxruntime",
        [
            SideResult("torch", (bad, fine), seconds=1.9, culprit=culprit, profile=profile),
            SideResult("openvino", (Trial("random, batch=2", (output("logits"), shape)),)),
            SideResult("reference", (Trial("random, batch=2", (output("logits"), output("boxes", 0.01, NOISY))),)),
        ],
        ["random, batch=2", "zeros"],
        ["onnxruntime does not run on NaN (it says so), so nothing is compared there"],
        ENVIRONMENT,
        4.2,
        chain(12),
    )


def failed() -> Report:
    sides = [
        SideResult("openvino", failure="openvino is not installed: pip install openvino"),
        SideResult("torch", (Trial("random", failure="took longer than 60 s"), Trial("zeros", (output("y"),)))),
    ]
    return Report("m.onnx", "onnxruntime", sides, ["random", "zeros"], [], ENVIRONMENT, 61.0)


def hostile() -> Report:
    """Every text that comes from a file, or from a message about one, is an attempt to break out of the page."""
    result = output(HOSTILE, 0.2, dtype=HOSTILE, reason=HOSTILE, expected=HOSTILE, actual=HOSTILE)
    node = {"name": HOSTILE, "op": HOSTILE, "inputs": [HOSTILE + "in"], "outputs": [HOSTILE]}
    side = SideResult(
        HOSTILE,
        (Trial(HOSTILE, (result,)), Trial(HOSTILE, failure=HOSTILE)),
        failure=HOSTILE,
        culprit=Culprit(HOSTILE, HOSTILE, (HOSTILE,), 0.2, 1e-6, 3, HOSTILE, HOSTILE),
        profile=(NodeError(HOSTILE, HOSTILE, HOSTILE, 0.2, 0.2, 1e-6),),
    )
    return Report(HOSTILE, HOSTILE, [side], [HOSTILE], [HOSTILE], {HOSTILE: HOSTILE}, 1.0, [node])


def large(nodes: int = 3000, broken: int = 1800) -> Report:
    graph = network(nodes)
    profile = profile_of(graph, broken)
    culprit = Culprit(graph[broken]["name"], graph[broken]["op"], tuple(graph[broken]["outputs"]), 0.031, 2.4e-6, 13)
    trial = Trial(
        "random, batch=1, sequence=128", tuple(output(f"head_{i}", 0.04 if i < 3 else 2e-6) for i in range(9)), 2.4
    )
    side = SideResult("torch", (trial,), seconds=3.1, culprit=culprit, profile=profile)
    return Report("models/transformer.onnx", "onnxruntime", [side], [trial.data], [], ENVIRONMENT, 38.0, graph)


def chain(nodes: int) -> list[dict[str, Any]]:
    return [
        {"name": f"conv_{i}", "op": "Conv", "inputs": [f"v{i - 1}" if i else "x", f"w{i}"], "outputs": [f"v{i}"]}
        for i in range(nodes)
    ]


def network(nodes: int) -> list[dict[str, Any]]:
    """Blocks of attention with residual connections, and one mask that every block reads."""
    made: list[dict[str, Any]] = []

    def add(op: str, *inputs: str) -> str:
        name = f"/layers.{len(made) // 14}/{op}_{len(made)}"
        made.append({"name": name, "op": op, "inputs": list(inputs), "outputs": [name + "_output_0"]})
        return made[-1]["outputs"][0]

    mask, x = add("Cast", "attention_mask"), add("Gather", "embeddings", "input_ids")
    while len(made) < nodes:
        normal = add("LayerNormalization", x, "gamma", "beta")
        q, k, v = (add("MatMul", normal, weight) for weight in ("wq", "wk", "wv"))
        scores = add("Softmax", add("Add", add("MatMul", q, add("Transpose", k)), mask))
        x = add("Add", x, add("MatMul", add("MatMul", scores, v), "wo"))
        hidden = add("Gelu", add("MatMul", add("LayerNormalization", x), "w1"))
        x = add("Add", x, add("MatMul", hidden, "w2"))
    return made[:nodes]


def profile_of(graph: list[dict[str, Any]], broken: int) -> tuple[NodeError, ...]:
    """Rounding that grows slowly along the graph, and one node that is off."""
    dice, found = random.Random(0), []
    for position, node in enumerate(graph):
        own = 0.0 if node["op"] in ("Transpose", "Cast", "Gather") else 1e-7 * math.exp(dice.gauss(0, 0.6))
        drift = 2e-7 * math.sqrt(position + 1) * math.exp(dice.gauss(0, 0.3)) if position else 0.0
        if position == broken:
            own = 0.031
        if position >= broken:
            drift += 0.031 * math.exp(dice.gauss(0, 0.4))
        allowed = 2.4e-6 + 4e-7 * math.sqrt(position)
        found.append(NodeError(node["outputs"][0], node["name"], node["op"], drift, own, allowed))
    return tuple(found)
