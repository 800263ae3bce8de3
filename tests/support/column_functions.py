"""Runs functions on tensors, as tables need them, in ONNX Runtime: each column is (N, 1)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime

from onward.frontends.dataframe.tensors.builder import ColumnBuilder
from onward.frontends.opset import OPSET
from onward.graph.build import Tensor
from onward.model import Model

TEXT = np.dtype(object)


def column(values: Sequence[Any], dtype: Any = np.int64) -> np.ndarray:
    return np.asarray(values, dtype).reshape(-1, 1)


class Compiled:
    """A function of columns of the dtypes given, as a session; it is called with columns and returns lists."""

    def __init__(self, function: Callable[..., Any], *dtypes: Any) -> None:
        types = [ir.DataType.STRING if np.dtype(d) == TEXT else ir.DataType.from_numpy(np.dtype(d)) for d in dtypes]
        inputs = [ir.Value(name=f"x{i}", type=ir.TensorType(t), shape=ir.Shape(["N", 1])) for i, t in enumerate(types)]
        graph = ir.Graph(inputs, [], nodes=[], name="columns", opset_imports={"": OPSET, "ai.onnx.ml": 5})
        op = ColumnBuilder(ir.Model(graph, ir_version=10))
        results = function(*(op.tensor(value) for value in inputs))
        self.results: list[Tensor] = [results] if isinstance(results, Tensor) else list(results)
        graph.outputs.extend(op.Identity(result).value for result in self.results)
        self.nodes = len(list(graph)) - len(self.results)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        proto = Model(op.model).to_proto().SerializeToString()
        self.session = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
        self.dtypes = [np.dtype(d) for d in dtypes]

    def __call__(self, *columns: Any) -> list[list[Any]]:
        arrays = [column(values, dtype) for values, dtype in zip(columns, self.dtypes, strict=True)]
        found = self.session.run(None, {f"x{i}": array for i, array in enumerate(arrays)})
        assert all(array.shape == (len(arrays[0]), 1) for array in found)
        return [array[:, 0].tolist() for array in found]
