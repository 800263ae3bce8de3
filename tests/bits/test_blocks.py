"""Weights in blocks of 4 bits: as near as blocks come, in ONNX Runtime's form and in ONNX's own."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.bits.blocks import Form, in_blocks, packed
from onward.bits.corrected import calibrated
from onward.errors import OnwardError, UnsupportedError
from onward.model import Model
from onward.runners import prepare

RNG = np.random.default_rng(1)
SUMMED = 200
"""Not whole blocks of 64."""
X = RNG.standard_normal((3, SUMMED)).astype(np.float32)
W = RNG.standard_normal((SUMMED, 96)).astype(np.float32)
V = RNG.standard_normal((48, 96)).astype(np.float32)
B = RNG.standard_normal(48).astype(np.float32)


def model(opset: int = 21) -> Model:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("Gemm", ["h", "v", "b"], ["y"], name="layer", transB=1),
    ]
    weights = [numpy_helper.from_array(array, name) for name, array in (("w", W), ("v", V), ("b", B))]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", SUMMED])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 48])
    graph = helper.make_graph(nodes, "net", [given], [made], weights)
    return onward.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10))


def rounded(matrix: np.ndarray, size: int) -> np.ndarray:
    """What the blocks of a matrix (summed, columns) stand for."""
    return in_blocks(np.ascontiguousarray(matrix.T), size).matrix(len(matrix)).T


@pytest.mark.parametrize("form", ["runtime", "standard"])
@pytest.mark.parametrize("size", [32, 64])
def test_products_are_those_of_the_rounded_weights(form: Form, size: int) -> None:
    found = packed(model(), size=size, form=form)
    expected = (X @ rounded(W, size)) @ rounded(V.T, size) + B
    np.testing.assert_allclose(prepare("onnxruntime", found.model)({"x": X})["y"], expected, rtol=1e-3, atol=1e-2)
    assert [(layer.node, layer.numbers) for layer in found.layers] == [("product", W.size), ("layer", V.size)]


def test_both_forms_are_the_same_model_and_eight_times_smaller() -> None:
    forms: list[Any] = ["runtime", "standard"]
    one, other = (packed(model(), form=form).model for form in forms)
    assert onward.verify(one, other).ok
    assert max(one.nbytes, other.nbytes) < 0.18 * model().nbytes  # 4 bits, and 20 of scale and point a block


def test_the_error_is_no_larger_than_with_the_whole_range_of_each_block() -> None:
    blocks = np.pad(W.T, ((0, 0), (0, 24))).reshape(96, -1, 32)
    low, high = np.minimum(blocks.min(2), 0)[..., None], np.maximum(blocks.max(2), 0)[..., None]
    scale = np.where(high > low, (high - low) / 15, 1)
    point = np.clip(np.round(-low / scale), 0, 15)
    plain = (np.clip(np.round(blocks / scale) + point, 0, 15) - point) * scale
    ours = in_blocks(np.ascontiguousarray(W.T), 32).matrix(SUMMED)
    assert np.linalg.norm(ours - W.T) < 0.97 * np.linalg.norm(plain.reshape(96, -1)[:, :SUMMED] - W.T)


def test_what_counts_more_is_nearer() -> None:
    counts = np.ones(SUMMED, np.float32)
    counts[:8] = 1000
    plain, weighed = (in_blocks(np.ascontiguousarray(W.T), 32, each).matrix(SUMMED) for each in (None, counts))
    off = [np.linalg.norm((found - W.T)[:, :8]) for found in (plain, weighed)]
    assert off[1] < off[0]


def test_blocks_that_know_the_data_are_several_times_nearer() -> None:
    """Where what is summed goes together, as it does in networks."""
    together = RNG.standard_normal((16, SUMMED))
    data = (RNG.standard_normal((400, 16)) @ together + 0.1 * RNG.standard_normal((400, SUMMED))).astype(np.float32)
    plain, knowing = (
        packed(model(), rounded=rounded).model for rounded in ({}, calibrated(model(), [{"x": data[:200]}]))
    )
    others = {"x": data[200:]}
    expected, *found = (prepare("onnxruntime", each)(others)["y"] for each in (model(), plain, knowing))
    off = [np.linalg.norm(one - expected) for one in found]
    assert off[1] < 0.5 * off[0]


def test_zeros_stay_zeros() -> None:
    assert not in_blocks(np.zeros((4, 64), np.float32), 32).matrix(64).any()


def test_layers_are_left_by_name() -> None:
    found = packed(model(), leave=["product"])
    assert [node.op_type for node in found.model.ir.graph] == ["MatMul", "MatMulNBits", "Add"]
    assert found.model.ir.graph.initializers["w"].const_value is not None


def test_a_weight_that_callers_may_replace_is_a_weight_alone() -> None:
    proto = model().to_proto()
    for node in proto.graph.node:
        node.ClearField("name")
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, W.shape))
    found = packed(onward.load(proto), rounded=calibrated(onward.load(proto), [{"x": X}]))
    assert [value.name for value in found.model.ir.graph.inputs] == ["x"]


def test_a_name_that_nothing_has_is_refused() -> None:
    with pytest.raises(OnwardError, match="did you mean product"):
        packed(model(), leave=["produkt"])


def test_annotations_stay() -> None:
    proto = model().to_proto()
    noted = proto.graph.quantization_annotation.add(tensor_name="x")
    noted.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="b")
    (found,) = packed(onward.load(proto)).model.to_proto().graph.quantization_annotation
    assert found == noted


def test_what_an_opset_cannot_hold_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="from 21 on"):
        packed(model(20), form="standard")
    with pytest.raises(OnwardError, match="give one of 16, 32"):
        packed(model(), size=20)
