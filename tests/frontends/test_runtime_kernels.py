"""What ONNX Runtime gets wrong is written around, whatever framework it comes from."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onward
from onward.runners import onnxruntime

Array = np.ndarray[Any, np.dtype[Any]]
MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)
VECTOR = np.asarray([1, -2, 5], np.float32)
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "a transpose": lambda x, turned: turned,
    "a sum of it": lambda x, turned: turned + turned,
    "a product of it": lambda x, turned: turned * 2 - turned,
}
"""What is multiplied by a vector; ONNX Runtime moves the Transpose behind the arithmetic."""


def by_jax(form: Callable[[Any, Any], Any]) -> onward.Model:
    pytest.importorskip("jax")
    model: onward.Model = onward.from_jax(lambda x, v: form(x, x.T) @ v, MATRIX, VECTOR, check=False)
    return model


def by_torch(form: Callable[[Any, Any], Any]) -> onward.Model:
    import torch

    class Product(torch.nn.Module):
        def forward(self, x: torch.Tensor, v: torch.Tensor) -> Any:
            return form(x, x.T) @ v

    given = (torch.from_numpy(MATRIX), torch.from_numpy(VECTOR))
    model: onward.Model = onward.from_torch(Product(), given, dynamic_batch=False, check=False)
    return model


def by_tensorflow(form: Callable[[Any, Any], Any]) -> onward.Model:
    tf = pytest.importorskip("tensorflow")

    @tf.function(input_signature=[tf.TensorSpec([3, 4]), tf.TensorSpec([3])])  # type: ignore[untyped-decorator]
    def product(x: Any, v: Any) -> Any:
        return tf.linalg.matvec(form(x, tf.transpose(x)), v)

    model: onward.Model = onward.from_tensorflow(product.get_concrete_function(), check=False)
    return model


@pytest.mark.parametrize("convert", [by_jax, by_torch, by_tensorflow])
@pytest.mark.parametrize("form", FORMS)
def test_a_transpose_by_a_vector(convert: Callable[[Any], onward.Model], form: str) -> None:
    model = convert(FORMS[form])
    names = [str(value.name) for value in model.ir.graph.inputs]
    (found,) = onnxruntime.prepare(model, "")(dict(zip(names, (MATRIX, VECTOR), strict=True))).values()
    np.testing.assert_allclose(found, FORMS[form](MATRIX, MATRIX.T) @ VECTOR, rtol=1e-6)


def test_onnx_runtime_is_wrong_by_itself() -> None:
    """When it is right, `keep_vectors` is no longer needed."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("MatMul", ["t", "v"], ["y"])]
    x, v, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, s)
        for name, s in zip("xvy", ([3, 4], [3], [4]), strict=True)
    )
    graph = helper.make_graph(nodes, "g", [x, v], [y])
    proto = helper.make_model(graph, opset_imports=[onnx.OperatorSetIdProto(version=21)], ir_version=10)
    (found,) = onnxruntime.prepare(onward.load(proto), "")({"x": MATRIX, "v": VECTOR}).values()
    assert not np.allclose(found, MATRIX.T @ VECTOR)
