"""Nodes with too few or too many inputs are named before anything is computed from them."""

import onnx
import pytest
from onnx import TensorProto, helper

from onward.backends.torch.convert import generate
from onward.errors import InvalidModelError
from onward.model import load


def model(node: onnx.NodeProto) -> onnx.ModelProto:
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in names] for names in ("xyz", "o")]
    return helper.make_model(
        helper.make_graph([node], "g", *ends), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (helper.make_node("Conv", ["x"], ["o"], name="n"), "Conv 'n': it has 1 inputs, the op takes at least 2"),
        (helper.make_node("Add", ["x"], ["o"]), "Add 'o': it has 1 inputs, the op takes 2"),
        (helper.make_node("Relu", [], ["o"]), "Relu 'o': it has 0 inputs, the op takes 1"),
        (helper.make_node("Relu", ["x", "y"], ["o"]), "it has 2 inputs, the op takes at most 1"),
        (helper.make_node("Add", ["", "x"], ["o"]), "its input 0 is missing"),
        (helper.make_node("Relu", ["x"], ["o", "p"]), "it has 2 outputs, the op gives at most 1"),
        (helper.make_node("Concat", ["x", "y"], ["o"]), "its attribute 'axis' is missing"),
    ],
)
def test_wrong_signature(node: onnx.NodeProto, problem: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        generate(load(model(node)))
    assert problem in str(caught.value)


def test_optional_inputs_may_be_empty() -> None:
    generate(load(model(helper.make_node("Clip", ["x", "", ""], ["o"]))))
    generate(load(model(helper.make_node("Sum", ["x", "y", "z"], ["o"]))))
