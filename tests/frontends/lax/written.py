"""A function on tensors, written as a graph and run by ONNX Runtime."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes
import onnxruntime as ort

from onward.frontends.opset import OPSET
from onward.frontends.runtime_kernels import make_runnable
from onward.frontends.writer import Writer
from onward.graph.build import Tensor

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def run(
    function: Callable[..., Any], *arrays: Any, opset: int = OPSET, open_axes: Sequence[int] = (), threads: int = 1
) -> list[Any]:
    """What `function(op, *tensors)` computes; axes that are open have no size in the graph, of any input."""
    given = [np.asarray(array) for array in arrays]
    graph = ir.Graph([], [], nodes=[], name="graph", opset_imports={"": opset})
    model = ir.Model(graph, ir_version=10 if opset < 25 else 13)
    op = Writer(model)
    tensors = []
    for i, array in enumerate(given):
        shape = [f"d{n}" if a in open_axes else n for a, n in enumerate(array.shape)]
        value = ir.Value(name=f"x{i}", type=ir.TensorType(ir.DataType.from_numpy(array.dtype)), shape=ir.Shape(shape))
        graph.inputs.append(value)
        tensors.append(op.tensor(value))
    found = function(op, *tensors)
    results = [found] if isinstance(found, Tensor) else list(found)
    halves = [result.dtype == ir.DataType.BFLOAT16 for result in results]
    for i, result in enumerate(results):
        output = op.Identity(result.cast(ir.DataType.FLOAT) if halves[i] else result).value
        output.name = f"y{i}"
        graph.outputs.append(output)
    passes.RemoveUnusedNodesPass()(model)
    make_runnable(model)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(ir.serde.serialize_model(model).SerializeToString(), options)
    feeds = {
        f"x{i}": ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), int(ir.DataType.BFLOAT16))
        if array.dtype == BFLOAT16
        else ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(array.shape))
        for i, array in enumerate(given)
    }
    numbers = [value.numpy() for value in session.run_with_ort_values(None, feeds)]
    return [array.astype(BFLOAT16) if half else array for array, half in zip(numbers, halves, strict=True)]


def same(found: Any, wanted: Any) -> None:
    """Bit for bit, but for the sign of zeros and the kind of what is no number."""
    wanted = np.asarray(wanted)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(
        found.astype(np.float32) if found.dtype == BFLOAT16 else found,
        wanted.astype(np.float32) if wanted.dtype == BFLOAT16 else wanted,
    )


def near(found: Any, wanted: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    wanted = np.asarray(wanted)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol)
