"""Ops that can be computed in either layout are: between two convolutions they cost no transpose."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from referee import check, image_ops, transposes

SHAPE = (2, 4, 6, 8)
HEADER = '<ir_version: 10, opset_import: ["" : 20]>'
CONSTANTS = {
    "w": np.random.default_rng(1).standard_normal((4, 4, 1, 1)).astype(np.float32),
    "w8": np.random.default_rng(2).standard_normal((4, 8, 1, 1)).astype(np.float32),
    "w3": np.random.default_rng(3).standard_normal((4, 4, 1)).astype(np.float32),
    "c11": np.random.default_rng(4).standard_normal((4, 1, 1)).astype(np.float32),
    "hw": np.random.default_rng(5).standard_normal((6, 8)).astype(np.float32),
    "nchw": np.random.default_rng(6).standard_normal(SHAPE).astype(np.float32),
    "scale4": np.array([0.1, 0.2, 0.3, 0.4], np.float32),
    "zero4": np.zeros(4, np.int8),
    "half": np.float32(0.5),
    "m1": np.array([-1], np.int64),
    "i1": np.array([1], np.int64),
    "i2": np.array([2], np.int64),
    "i23": np.array([2, 3], np.int64),
    "two": np.array([2, 2], np.int64),
    "big": np.array([100], np.int64),
    "scalar1": np.array(1, np.int64),
    "pads": np.array([0, 0, 1, 2, 0, 0, 3, 4], np.int64),
    "pads2": np.array([1, 2], np.int64),
    "tiles": np.array([1, 1, 2, 3], np.int64),
    "repeats": np.array([1, 2, 1, 1], np.int64),
    "flat": np.array([0, 0, -1], np.int64),
    "grid": np.array([0, 4, 6, 8], np.int64),
    "gates": np.array([0, 4, 1, 1], np.int64),
    "copied": np.array([0, 0, 1, 1], np.int64),
    "pairs": np.array([0, 2, 2, 6, 8], np.int64),
    "pairs1": np.array([-1, 2, 2, 6, 8], np.int64),
    "grid1": np.array([-1, 4, 6, 8], np.int64),
    "pixels": np.array([0, 1, 2, 2, 6, 8], np.int64),
    "boxes": np.array([0, 2, 2, 48], np.int64),
    "pair": np.array([3, 4], np.float32).reshape(2, 1, 1, 1),
    "pair1": np.array([3, 4], np.float32).reshape(2, 1, 1),
    "larger": np.array([0, 1, 12, 16], np.int64),
    "minus": np.array([-1, 4, 48], np.int64),
    "sizes": np.array([2, 4, 9, 10], np.int64),
}

BODIES = {
    "unary": "b = Gelu(a)",
    "cast": "h = Cast<to=10>(a) b = Cast<to=1>(h)",
    "clip": "b = Clip(a, half)",
    "dropout": "b, mask = Dropout(a)",
    "per channel": "b = Mul(a, c11)",
    "constant of the same rank": "b = Add(a, nchw)",
    "spatial constant": "b = Add(a, hw)",
    "scalar": "b = Pow(a, half) ",
    "prelu": "b = PRelu(a, c11)",
    "where": "t = Greater(a, half) b = Where(t, a, c11)",
    "residual": "r = Relu(a) b = Sum(a, r, nchw)",
    "squeeze and excite": "g = GlobalAveragePool(a) e = Conv(g, w) s = Sigmoid(e) b = Mul(a, s)",
    "excite by products": "g = ReduceMean<keepdims=0>(a, i23) s = Sigmoid(g) u = Unsqueeze(s, i23) b = Mul(a, u)",
    "excite by reshape": "g = GlobalAveragePool(a) f = Flatten(g) s = Tanh(f) u = Reshape(s, gates) b = Mul(a, u)",
    "excite by copied sizes": "g = GlobalAveragePool(a) f = Flatten(g) u = Reshape(f, copied) b = Mul(a, u)",
    "concat": "d = Concat<axis=1>(a, nchw) b = Conv(d, w8)",
    "concat from behind": "d = Concat<axis=-3>(a, a) b = Conv(d, w8)",
    "split": "p, q = Split<axis=1, num_outputs=2>(a) b = Concat<axis=1>(q, p)",
    "slice": "b = Slice(a, i1, big, i2)",
    "slice from behind": "b = Slice(a, i1, big, m1)",
    "slice of the first axes": "b = Slice(a, i1, big)",
    "pad": "b = Pad(a, pads)",
    "pad an axis": "b = Pad(a, pads2, half, m1)",
    "reduce": "b = ReduceMax(a, i2)",
    "softmax": "b = Softmax<axis=1>(a)",
    "softmax over the last axis": "b = Softmax(a)",
    "argmax": "m = ArgMax<axis=1>(a) f = Cast<to=1>(m) b = Mul(a, f)",
    "cumsum": "b = CumSum(a, scalar1)",
    "gather": "b = Gather<axis=-2>(a, two)",
    "tile": "b = Tile(a, tiles)",
    "expand": "g = GlobalMaxPool(a) b = Expand(g, sizes)",
    "expand the last axes": "g = ReduceMax(a, m1) b = Expand(g, eight)",
    "quantized by channel": "q = QuantizeLinear<axis=1>(a, scale4, zero4) "
    "b = DequantizeLinear<axis=1>(q, scale4, zero4)",
    "squeezed and back": "g = ReduceMean(a, i2) f = Squeeze(g, i2) e = Conv(f, w3) b = Unsqueeze(e, i2)",
    "flattened and back": "f = Reshape(a, flat) e = Conv(f, w3) b = Reshape(e, grid)",
    "flattened, batch left over": "f = Reshape(a, minus) e = Conv(f, w3) b = Reshape(e, grid)",
    "tokens": "f = Reshape(a, flat) t = Transpose<perm=[0,2,1]>(f) n = LayerNormalization(t, scale4) "
    "u = Transpose<perm=[0,2,1]>(n) b = Reshape(u, grid)",
    "there and back": "t = Transpose<perm=[0,2,3,1]>(a) n = LayerNormalization(t, scale4) "
    "b = Transpose<perm=[0,3,1,2]>(n)",
    "resize to a computed size": "s = Shape<start=0, end=2>(a) d = Concat<axis=0>(s, two) b = Resize(a, , , d)",
    "reshape to a computed shape": "s = Shape(a) n = Gather(s, flat1) d = Concat<axis=0>(n, four, m1) "
    "f = Reshape(a, d) e = Conv(f, w3) h = Shape<start=1>(a) k = Concat<axis=0>(n, h) b = Reshape(e, k)",
    "channel shuffle": "f = Reshape(a, pairs) t = Transpose<perm=[0,2,1,3,4]>(f) b = Reshape(t, grid)",
    "channel shuffle, batch left over": "f = Reshape(a, pairs1) t = Transpose<perm=[0,2,1,3,4]>(f) "
    "b = Reshape(t, grid1)",
    "pixel shuffle": "f = Reshape(a, pixels) t = Transpose<perm=[0,1,4,2,5,3]>(f) d = Reshape(t, larger) "
    "e = Concat<axis=1>(d, d) b = Concat<axis=1>(e, e)",
    "channels split": "f = Reshape(a, pairs) b = Reshape(f, grid)",
    "groups": "f = Reshape(a, pairs) s = Softmax<axis=2>(f) m = Mul(s, pair) b = Reshape(m, grid)",
    "boxes": "f = Reshape(a, flat) g = Reshape(f, boxes) t = Transpose<perm=[0,2,1,3]>(g) s = Softmax<axis=1>(t) "
    "m = Mul(s, pair1) r = ReduceSum<keepdims=0>(m, i1) e = Concat<axis=1>(r, r) b = Reshape(e, grid)",
    "size": "s = Size(a) f = Cast<to=1>(s) b = Div(a, f)",
    "shape": "s = Shape(a) f = Cast<to=1>(s) r = ReduceSum(f) b = Div(a, r)",
}
CONSTANTS |= {"flat1": np.array([0]), "four": np.array([4]), "eight": np.array([8])}


def model(body: str, batch: str) -> onnx.ModelProto:
    made = onnx.parser.parse_model(
        f"{HEADER} g (float[{batch},4,6,8] x) => (float y) {{ a = Conv(x, w) {body} c = Conv(b, w) y = Identity(c) }}"
    )
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in CONSTANTS.items() if k in used)
    return made


@pytest.mark.parametrize("batch", ["2", "n"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_between_convolutions(body: str, batch: str) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    made = check(model(body, batch), {"x": x}, tolerance=1e-4)
    own = sum(body.count(f"perm=[{perm}]") for perm in ("0,2,1,3,4", "0,1,4,2,5,3"))
    assert transposes(made) == 2 + own, "one at the input and one at the output"
    assert len(image_ops(made)) >= 2
    assert transposes(check(model(body, batch), {"x": x}, ["x"], ["y"], tolerance=1e-4)) == own


FIXED = {
    "channels with rows": "f = Reshape(a, mixed) b = Reshape(f, grid)",
    "matrix product": "b = MatMul(a, square)",
    "layer norm over three axes": "b = LayerNormalization<axis=1>(a, chw)",
}
CONSTANTS["mixed"] = np.array([2, 3, 8, 8], np.int64)
CONSTANTS["square"] = np.random.default_rng(7).standard_normal((8, 8)).astype(np.float32)
CONSTANTS["chw"] = np.random.default_rng(8).standard_normal(SHAPE[1:]).astype(np.float32)


@pytest.mark.parametrize("body", FIXED.values(), ids=FIXED)
def test_fixed_ops_see_tensors_as_the_graph_has_them(body: str) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    assert transposes(check(model(body, "n"), {"x": x}, tolerance=1e-4)) == 4
