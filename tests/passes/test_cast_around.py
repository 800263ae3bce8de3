"""Nodes computed in another dtype: what is cast, what is stored, and what everyone else still reads."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from onward.frontends.runtime_kernels import make_runnable
from onward.passes.cast_around import cast_around, typed

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (int16[n] x) => (int16[k] y, int16[n] z) <int16[2] w = {1, 2}> {
    both = Concat <axis = 0> (x, w)
    y, first, back, count = Unique (both)
    z = Abs (x)
}"""


def model() -> ir.Model:
    return ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(TEXT)))


@pytest.mark.parametrize("store", [False, True])
def test_one_type_variable_is_cast_and_restored(store: bool) -> None:
    graph = model()
    concat, unique, _ = list(graph.graph)
    kinds = [typed(node, onnx.defs.get_schema(node.op_type, 21))["T"] for node in (concat, unique)]
    assert [(kind.inputs, kind.outputs) for kind in kinds] == [((0, 1), (0,)), ((0,), (0,))]
    cast_around(graph, [(kind, ir.DataType.INT64) for kind in kinds], store=store)
    assert graph.graph.initializers["w"].dtype == (ir.DataType.INT64 if store else ir.DataType.INT16)
    assert [value.dtype for value in unique.outputs] == [ir.DataType.INT64] * 4
    assert [(value.name, value.dtype) for value in graph.graph.outputs] == [
        ("y", ir.DataType.INT16),
        ("z", ir.DataType.INT16),
    ]
    assert sum(node.op_type == "Cast" for node in graph.graph) == (4 if store else 5)
    onnx.checker.check_model(ir.to_proto(graph), full_check=True)


def test_what_onnx_runtime_has_no_kernel_for_runs() -> None:
    graph = model()
    make_runnable(graph)
    assert graph.graph.initializers["w"].dtype == ir.DataType.INT16
    assert not any(node.metadata_props for node in graph.graph)
    session = onnxruntime.InferenceSession(ir.to_proto(graph).SerializeToString())
    y, z = session.run(None, {"x": np.array([-3, 2, 5], np.int16)})
    assert y.dtype == z.dtype == np.int16
    assert (y.tolist(), z.tolist()) == ([-3, 1, 2, 5], [3, 2, 5])
