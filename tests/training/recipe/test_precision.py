"""Mixed precision is refused, and the reason is true; so are weights that stayed in 16 bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from training_models import model

from onward.errors import OnwardError, UnsupportedError
from onward.training.recipe.precision import HEAVY, half_kernels
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import prepare


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_there_are_no_kernels_for_it(dtype: str) -> None:
    """If this fails, ONNX Runtime has learnt something: then mixed precision is worth its while."""
    assert half_kernels(dtype) == []  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=f"no kernel of {dtype} for MatMul, Gemm, Conv on this processor"):
        prepare(model(), mixed_precision=dtype)
    with pytest.raises(OnwardError, match="not 'int8'"):
        prepare(model(), mixed_precision="int8")


def test_the_list_of_kernels_is_that_of_what_runs() -> None:
    """Cast has kernels of bfloat16, MatMul has none: what is read off the list is what happens."""
    assert "MatMul" in HEAVY
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.BFLOAT16),
        helper.make_node("MatMul", ["a", "a"], ["b"]),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy")
    graph = helper.make_graph(nodes, "product", [x], [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(Exception, match="Could not find an implementation for MatMul"):
        onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])


def test_products_of_float16_are_computed_in_float32(tmp_path: Path) -> None:
    """If this fails, there is a kernel that the list of them does not show."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2, 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "x"], ["y"])], "product", [x], [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(tmp_path / "optimized.onnx").graph.node
    casts = {node.output[0]: node.attribute[0].i for node in nodes if node.op_type == "Cast"}
    (product,) = (node for node in nodes if "MatMul" in node.op_type)
    assert [casts.get(name) for name in product.input] == [TensorProto.FLOAT] * 2


def test_weights_that_stayed_in_16_bits_are_refused() -> None:
    made = prepare(model(), "mse", "sgd")
    half = {name: array.astype(np.float16) for name, array in made.parameters.items()}
    with pytest.raises(UnsupportedError, match=r"weights of float16 are not trained.*`onward train prepare`"):
        Trainer(replace(made, parameters=half))
