"""Images are channels last inside generated code, and what XLA's CPU compiler gets wrong there is not written."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

jax = pytest.importorskip("jax")

from onward.backends.jax.convert import generate  # noqa: E402
from onward.backends.jax.load import run  # noqa: E402
from onward.model import load  # noqa: E402
from onward.scoreboard.suite import prepare  # noqa: E402

RANDOM = np.random.default_rng(0)
HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def numbers(*shape: int) -> np.ndarray:
    return (RANDOM.uniform(-1, 1, shape) / 4).astype(np.float32)


def model(body: str, image: tuple[int, ...], **weights: np.ndarray) -> onnx.ModelProto:
    shape = ", ".join(map(str, image))
    proto = onnx.parser.parse_model(f"{HEADER}g (float[{shape}] x) => (float y) {{ {body} }}")
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    del proto.graph.output[:]
    proto.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    return onnx.shape_inference.infer_shapes(proto)


def same_everywhere(proto: onnx.ModelProto, x: np.ndarray) -> None:
    (wanted,) = prepare("onnxruntime", proto)([x])
    for mode in ("jax", "jax:jit"):
        (found,) = prepare(mode, proto)([x])
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=mode)


MORE = {
    "Pad": "pads = Constant<value_ints = [0, 0, 0, 0, 0, 4, 0, 0]>()  wide = Pad(t, pads)",
    "Concat": "shape = Constant<value_ints = [1, 4, 64, 64]>()  zeros = ConstantOfShape(shape)"
    "  wide = Concat<axis = 1>(t, zeros)",
}
ENDS = {
    "MaxPool": "y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(z)",
    "mean": "y = GlobalAveragePool(z)",
    "softmax": "y = Softmax<axis = 1>(z)",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("how", MORE)
def test_channels_that_are_added_are_right_under_jit(how: str, end: str) -> None:
    """XLA fuses padding of channels, a convolution of the same tensor, and what sums up; and then is wrong."""
    body = f"""
        stem = Conv<pads = [1, 1, 1, 1]>(x, first, bias)
        t = Relu(stem)
        depth = Conv<group = 24, pads = [1, 1, 1, 1]>(t, filters)
        point = Conv(depth, mixing)
        {MORE[how]}
        z = Add(point, wide)
        {ENDS[end]}
    """
    weights = {"first": numbers(24, 3, 3, 3), "bias": numbers(24)}
    weights |= {"filters": numbers(24, 1, 3, 3), "mixing": numbers(28, 24, 1, 1)}
    same_everywhere(model(body, (1, 3, 64, 64), **weights), 4 * numbers(1, 3, 64, 64))


OPS = {
    "MaxPool": "y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(t)",
    "MaxPool, a last window overhangs": "y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(t)",
    "MaxPool, where": "u, v = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(t)  f = Cast<to = 1>(v)  y = Add(u, f)",
    "AveragePool": "y = AveragePool<kernel_shape = [2, 2]>(t)",
    "AveragePool, padded": "y = AveragePool<kernel_shape = [3, 3], pads = [1, 0, 1, 2]>(t)",
    "GlobalMaxPool": "y = GlobalMaxPool(t)",
    "LRN": "y = LRN<size = 5>(t)",
    "InstanceNormalization": "y = InstanceNormalization(t, b, b)",
    "GroupNormalization": "y = GroupNormalization<num_groups = 4>(t, b, b)",
    "DepthToSpace": "y = DepthToSpace<blocksize = 2>(t)",
    "DepthToSpace, CRD": 'y = DepthToSpace<blocksize = 2, mode = "CRD">(t)',
    "SpaceToDepth": "y = SpaceToDepth<blocksize = 2>(t)",
    "ConvTranspose": "y = ConvTranspose<strides = [2, 2], output_padding = [1, 0]>(t, up, b)",
    "Resize, nearest": "s = Constant<value_floats = [1.0, 1.0, 2.0, 3.0]>()"
    '  y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(t, , s)',
    "Resize, linear": 's = Constant<value_ints = [1, 8, 5, 9]>()  y = Resize<mode = "linear">(t, , , s)',
    "Resize, cubic": 's = Constant<value_floats = [1.5, 0.5]>()  y = Resize<mode = "cubic", axes = [2, 3]>(t, , s)',
}


@pytest.mark.parametrize("op", OPS)
def test_what_stands_behind_a_convolution_follows_it(op: str) -> None:
    body = f"t = Conv<strides = [2, 2], pads = [1, 0, 1, 0]>(x, w, b)  {OPS[op]}"
    weights = {"w": numbers(8, 3, 3, 3), "b": numbers(8), "up": numbers(8, 8, 3, 2)}
    if op != "ConvTranspose":
        del weights["up"]
    proto = model(body, (1, 3, 12, 17), **weights)
    same_everywhere(proto, 4 * numbers(1, 3, 12, 17))
    moves = generate(load(proto)).model.count(".transpose(")
    assert moves <= (5 if op == "MaxPool, where" else 2), "the image is moved at each end at most"


def test_without_convolutions_nothing_moves() -> None:
    text = generate(load(model("y = MaxPool<kernel_shape = [2, 2]>(x)", (1, 3, 8, 8)))).model
    assert "transpose" not in text
    assert "(1, 1, 2, 2)" in text


def test_filters_are_stored_as_the_convolution_takes_them() -> None:
    net = run(generate(load(model("y = Conv(x, weight)", (1, 3, 8, 8), weight=numbers(4, 3, 5, 2)))))
    assert [leaf.shape for leaf in jax.tree.leaves(net.params)] == [(5, 2, 3, 4)]


def test_a_weight_that_something_else_reads_is_one_leaf_as_it_was() -> None:
    body = "t = Conv(x, weight)  s = ReduceSum<keepdims = 0>(weight)  y = Add(t, s)"
    proto = model(body, (1, 3, 8, 8), weight=numbers(4, 3, 5, 2))
    net = run(generate(load(proto)))
    assert [leaf.shape for leaf in jax.tree.leaves(net.params)] == [(4, 3, 5, 2)]
    same_everywhere(proto, numbers(1, 3, 8, 8))
