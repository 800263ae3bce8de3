"""Random graphs compared with ONNX Runtime, and by name what such graphs have found."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from harness import check as check_model
from harness import literal, node_model, text_model

from differential.compare import check, random_graph, smallest

GRAPHS, PARTS = 400, 8


@pytest.mark.parametrize("part", range(PARTS))
def test_random_graphs(part: int) -> None:
    """Each graph, as declared and with its shapes forgotten, gives what ONNX Runtime does."""
    for i in range(part, GRAPHS, PARTS):
        _gives_the_same(i, "torch")


def test_random_graphs_on_jax() -> None:
    """A few: it compiles op by op."""
    pytest.importorskip("jax")
    for i in range(0, GRAPHS, GRAPHS // 10):
        _gives_the_same(i, "jax")


def _gives_the_same(number: int, runner: str) -> None:
    g = random_graph([2024, number])
    wrong = check(g, runner=runner)
    if wrong:
        nodes, outputs, wrong = smallest(g, wrong, runner)
        model, _, _ = g.model(nodes, outputs, unused=False)
        pytest.fail(f"graph {number}: {wrong}\n{onnx.printer.to_text(model)}")


def model(text: str, opset: int = 17, **weights: np.ndarray) -> onnx.ModelProto:
    return text_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}', **weights)


X = np.array([[1.5, -2.0, 41.0]], np.float32)
NAN = np.float32("nan")

FOUND: dict[str, tuple[onnx.ModelProto, Sequence[Any]]] = {
    "a constant of no elements keeps its shape": (
        model("g () => (double[4,0,4] y) { c = Constant<value = double[4,0,4] {}>() y = Concat<axis = 1>(c, c) }"),
        [],
    ),
    "picking nothing keeps the shape": (
        model("g () => (bool[0,1] y) <int32[0,1] i = {}> { c = Constant<value = bool[3] {1,0,0}>() y = Gather(c, i) }"),
        [],
    ),
    "int64 constants wrap around": (
        model("g () => (int64[2] y) <int64[2] c = {9223372036854775807, -9223372036854775808}> { y = Add(c, c) }"),
        [],
    ),
    "int32 constants wrap around": (
        model("g () => (int32[2] y) <int32[2] c = {2147483647, -5}> { y = Mul(c, c) }"),
        [],
    ),
    "a dimension and a number that wrap around": (
        model(
            "g (float[1,3] x) => (int64[2] y) <int64[1] far = {-9223372036854775808}> "
            "{ s = Shape(x) n = Neg(s) y = Add(n, far) }"
        ),
        [X],
    ),
    "a product too large for shape inference": (
        model(
            "g () => (int64[1] y, bool[1] z) <int64[1] c = {4611686018427387907}, int64[1] one = {1}> "
            "{ y = Mul(c, c) z = Less(y, one) }"
        ),
        [],
    ),
    "the largest of constants is NaN if one is": (
        model("g () => (float a, float b) { a = Max(one, nan) b = Min(one, nan) }", one=np.float32([1])[0], nan=NAN),
        [],
    ),
    "rounding up to minus zero": (
        model("g (float[1,3] x) => (float[1,3] y) { c = Ceil(h) y = Div(x, c) }", h=np.float32(-0.5)),
        [X],
    ),
    "an integer too large for single precision": (
        model("g () => (float[1] f, int64[1] y) <int64[1] c = {16777217}> { f = Cast<to = 1>(c) y = Cast<to = 7>(f) }"),
        [],
    ),
    "a number divided by a tensor": (
        model("g (float[1,3] x) => (float[1,3] y) { c = Constant<value = float {41.0}>() q = Div(c, x) y = Floor(q) }"),
        [X],
    ),
    "a number divided by a small half": node_model(
        "Div", [np.float16(0.001), np.array([1e-5, 3e-6], np.float16)], fixed=[0]
    ),
    "a loop without condition or state": (
        model(
            'g (int64 n) => (int64[k] y) { y = Loop (n, "") <body: graph = b (int64 i, bool c) => (bool d, int64 s) '
            "{ d = Identity(c) s = Add(i, i) }> }"
        ),
        [np.int64(3)],
    ),
    "a slice that starts before the first element and goes backwards": (
        model(
            "g (float[1,3] x) => (int64[1] y, int64[1] z) <int64[1] far = {-100}, int64[1] end = {-1000}, "
            "int64[1] axis = {0}, int64[1] back = {-1}> { s = Shape(x) y = Slice(s, far, end, axis, back) "
            "c = Constant<value = int64[3] {7,8,9}>() z = Slice(c, far, end, axis, back) }"
        ),
        [X],
    ),
    "a scale that happens to double the length": node_model(
        "Resize",
        [np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3), None, np.array([1, 1, 2.3, 2], np.float32)],
        fixed=[2],
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    "transposing what has no dimensions after all": (
        model("g (float[1,3] x, int64[2] axes) => (float y) { s = ReduceSum<keepdims = 0>(x, axes) y = Transpose(s) }"),
        [X, np.array([1, 0])],
    ),
    "a gate of double precision": (
        model(
            "g (double[4] x) => (double[4] y) { h = HardSigmoid<alpha = 0.16666667, beta = 0.5>(x) y = Mul(x, h) }", 18
        ),
        [np.array([-2.136, 0.187, 0.932, 0.858])],
    ),
    "NaN is not above a threshold": node_model("ThresholdedRelu", [np.array([np.nan, 0.5, 2.0], np.float32)]),
    "an array of numpy's other 64 bits": (
        model("g (uint64[2] x) => (uint64[2] y) { y = Identity(x) }"),
        [np.array([1, 2]).astype(np.ulonglong)],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    case, inputs = FOUND[name]
    for variant in (case, literal(case)):
        check_model(onnx.shape_inference.infer_shapes(variant), inputs)


def test_train_and_eval_differ_in_nothing_else() -> None:
    """Only Dropout and BatchNormalization depend on the mode of a module, and neither is in these graphs."""
    from onward import to_torch
    from onward.backends.torch.values import to_framework

    for i in range(60):
        g = random_graph([31, i])
        if any(node.op_type in ("Dropout", "BatchNormalization") for node in g.nodes):
            continue
        proto, inputs, wanted = g.model()
        if not wanted:
            continue
        net = to_torch(proto, check=False)
        results = []
        for mode in (True, False):
            net.train(mode)
            with torch.no_grad():
                found = net(*(to_framework(np.array(x)) for x in inputs))
            results.append(found if len(wanted) > 1 else (found,))
        for a, b in zip(*results, strict=True):
            assert torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) if a.is_floating_point() else torch.equal(a, b)
