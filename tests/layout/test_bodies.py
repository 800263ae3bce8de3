"""The bodies of If, Loop and Scan are treated one by one; what goes in and out of them stays as it is."""

import re

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper
from referee import check

from onward.graph.walk import all_nodes
from onward.layout.roles import DOMAIN

HEADER = '<ir_version: 10, opset_import: ["" : 20]>'
SHAPE = (2, 4, 6, 8)
RNG = np.random.default_rng(0)
CONSTANTS = {
    "w": RNG.standard_normal((4, 4, 1, 1)).astype(np.float32) / 2,
    "weight": RNG.standard_normal((6, 6, 1)).astype(np.float32),
    "frames": RNG.standard_normal((3, *SHAPE[1:])).astype(np.float32),
    "c11": RNG.standard_normal((4, 1, 1)).astype(np.float32),
    "nchw": RNG.standard_normal(SHAPE).astype(np.float32),
    "times": np.array(3, np.int64),
    "yes": np.array(True),
}
MODELS = {
    "branches that read a value from outside": (
        "a = Relu(x) y = If (c) <then_branch = t () => (float[2,4,6,8] p) { q = Conv(a, w) p = Relu(q) },"
        " else_branch = e () => (float[2,4,6,8] r) { r = Neg(a) }>",
        1,
    ),
    "a value from outside that is stored channels last": (
        "a = Conv(x, w) b = Relu(a) d = If (c) <then_branch = t () => (float[2,4,6,8] p) { q = Conv(b, w) "
        "s = Mul(q, c11) u = Add(s, nchw) p = Conv(u, w) }, else_branch = e () => (float[2,4,6,8] r) "
        "{ r = Softmax<axis=1>(b) }> y = Conv(d, w)",
        4,
    ),
    "a series of convolutions": (
        "one, y = Loop (times, yes, x, x) <body = l (int64 i, bool k, float[2,4,6,8] s, float[2,4,6,8] o) => "
        "(bool g, float[2,4,6,8] n, float[2,4,6,8] m) { g = Identity(k) v = Conv(s, w) n = Add(v, x) "
        "h = MaxPool<kernel_shape=[1,1]>(n) m = Add(h, o) }>",
        2,
    ),
    "a state that goes through, and one that is given out in the other layout": (
        "u = Transpose<perm=[0,2,3,1]>(x) one, y = Loop (times, yes, x, u) <body = l (int64 i, bool k, "
        "float[2,4,6,8] s, float[2,6,8,4] o) => (bool g, float[2,4,6,8] n, float[2,6,8,4] m) { g = Identity(k) "
        "n = Identity(s) f = Transpose<perm=[0,3,1,2]>(o) v = Conv(f, w) m = Transpose<perm=[0,2,3,1]>(v) }>",
        1,
    ),
    "slices": (
        "y = Scan <num_scan_inputs=1, body = l (float[4,6,8] s) => (float[4,6,8] o) { o = Conv(s, weight) }> (frames)",
        1,
    ),
    "a branch within a loop": (
        "a = Conv(x, w) y = Loop (times, yes, a) <body = l (int64 i, bool k, float[2,4,6,8] s) => "
        "(bool g, float[2,4,6,8] n) { g = Identity(k) v = Conv(s, w) n = If (c) <then_branch = t () => "
        "(float[2,4,6,8] p) { q = Conv(v, w) p = Add(q, a) }, else_branch = e () => (float[2,4,6,8] r) "
        "{ r = Sub(v, x) }> }>",
        3,
    ),
    "a value from outside that a body gives out": (
        "a = Conv(x, w) y = If (c) <then_branch = t () => (float[2,4,6,8] p) { q = If (c) <then_branch = i () => "
        "(float[2,4,6,8] a) {}, else_branch = j () => (float[2,4,6,8] z) { z = Neg(a) }> p = Conv(q, w) }, "
        "else_branch = e () => (float[2,4,6,8] a) {}>",
        2,
    ),
}


def model(body: str) -> onnx.ModelProto:
    made = onnx.parser.parse_model(f"{HEADER} g (float[2,4,6,8] x, bool c) => (float y) {{ {body} }}")
    made.graph.initializer.extend(
        numpy_helper.from_array(v, k) for k, v in CONSTANTS.items() if re.search(rf"\b{k}\b", body)
    )
    return made


def within(made: ir.Model) -> int:
    """How many ops run channels last, in the graph and in bodies."""
    return sum(node.domain == DOMAIN for node in all_nodes(made.graph))


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize(("body", "count"), MODELS.values(), ids=MODELS)
def test_bodies_compute_the_same_channels_last(body: str, count: int, chosen: bool) -> None:
    feeds = {"x": RNG.standard_normal(SHAPE).astype(np.float32), "c": np.array(chosen)}
    assert within(check(model(body), feeds)) == count


def test_weights_of_a_body_are_permuted_once_and_for_all() -> None:
    body, _ = MODELS["a value from outside that is stored channels last"]
    made = check(model(body), {"x": np.ones(SHAPE, np.float32), "c": np.array(True)})
    assert made.graph.initializers["nchw"].metadata_props == {"onward.layout.of": "nchw"}
