"""Runs a function on tensors of a table: as a model, on ONNX Runtime."""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx_ir.passes.common import RemoveUnusedNodesPass

from onward.frontends.dataframe.tensors.builder import ColumnBuilder
from onward.frontends.opset import OPSET
from onward.graph.build import Tensor
from onward.model import Model

DTYPES = {
    "bool": ir.DataType.BOOL,
    "int8": ir.DataType.INT8,
    "int16": ir.DataType.INT16,
    "int32": ir.DataType.INT32,
    "int64": ir.DataType.INT64,
    "uint8": ir.DataType.UINT8,
    "uint16": ir.DataType.UINT16,
    "uint32": ir.DataType.UINT32,
    "uint64": ir.DataType.UINT64,
    "float32": ir.DataType.FLOAT,
    "float64": ir.DataType.DOUBLE,
    "str": ir.DataType.STRING,
}


class Compiled:
    """A model of `function`, whose arguments are columns of the dtypes named; called with arrays of N rows.

    Columns of one dimension of the results are given as (N,). It is made when it is first asked for: many stand beside
    their tests."""

    def __init__(self, function: Callable[..., Tensor | tuple[Tensor, ...]], *dtypes: str) -> None:
        self.function = function
        self.dtypes = dtypes

    @cache  # noqa: B019 - as long as the tests
    def make(self) -> onnx.ModelProto:
        inputs = [
            ir.Value(name=f"x{i}", type=ir.TensorType(DTYPES[dtype]), shape=ir.Shape(["N", 1]))
            for i, dtype in enumerate(self.dtypes)
        ]
        graph = ir.Graph(inputs, [], nodes=[], opset_imports={"": OPSET, "ai.onnx.ml": 5}, name="table")
        op = ColumnBuilder(ir.Model(graph, ir_version=10))
        made = self.function(*(op.tensor(value) for value in inputs))
        results = made if isinstance(made, tuple) else (made,)
        for i, result in enumerate(results):
            named = op.Identity(result).value
            named.name = f"y{i}"
            graph.outputs.append(named)
        RemoveUnusedNodesPass()(op.model)
        return Model(op.model).to_proto()

    @property
    def nodes(self) -> int:
        return len(self.make().graph.node)

    @cached_property
    def session(self) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(self.make().SerializeToString(), options, ["CPUExecutionProvider"])

    def __call__(self, *columns: Any) -> Any:
        feeds = {}
        for i, (values, dtype) in enumerate(zip(columns, self.dtypes, strict=True)):
            array = np.asarray(values, object if dtype == "str" else dtype).reshape(-1, 1)
            feeds[f"x{i}"] = array
        known = {item.name for item in self.session.get_inputs()}
        results = self.session.run(None, {name: array for name, array in feeds.items() if name in known})
        flat = [r.reshape(-1) if r.ndim == 2 and r.shape[1] == 1 else r for r in results]
        return flat[0] if len(flat) == 1 else flat
