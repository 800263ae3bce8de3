"""Of the ops that ONNX Runtime adds and computes on processors, each is converted, or refused with the reason."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as ort

import onward
from onward.canon.lower import LOWERINGS, REFUSED, load_lowerings
from onward.errors import OnwardError, UnsupportedError
from onward.scoreboard.suite import prepare

MS = "com.microsoft"
KERNELS = {d.op_name for d in ort.get_all_opkernel_def() if d.domain == MS and d.provider == "CPUExecutionProvider"}


def test_every_kernel_has_a_rule_or_a_reason() -> None:
    load_lowerings()
    assert len(KERNELS) > 60
    assert {name for name in KERNELS if f"{MS}::{name}" not in {*LOWERINGS, *REFUSED}} == set()
    assert [op for op in REFUSED if op in LOWERINGS] == []


def searching() -> onnx.ModelProto:
    """Greedy search with a decoder that gives the same scores for whatever it is asked."""
    ids = helper.make_tensor_value_info("ids", TensorProto.INT32, ["n", "m"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", "m", 4])
    table = numpy_helper.from_array(np.eye(4, dtype=np.float32), "table")
    decoder = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["logits"])], "g", [ids], [logits], [table]
    )
    given = {"decoder": decoder, "eos_token_id": 3, "pad_token_id": 0}
    node = helper.make_node("GreedySearch", ["input_ids", "max_length"], ["sequences"], "search", domain=MS, **given)
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT32, s) for n, s in (("input_ids", [1, 2]), ("max_length", [1]))
    ]
    outputs = [helper.make_tensor_value_info("sequences", TensorProto.INT32, ["n", "m"])]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=10)


def test_a_search_says_how_to_convert_its_decoder() -> None:
    model = searching()
    with pytest.raises(UnsupportedError, match=r"'search'.*attribute 'decoder'; save that graph as a model of its own"):
        onward.to_torch(model, check=False)
    (graph,) = (a.g for a in model.graph.node[0].attribute if a.name == "decoder")
    inside = helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)
    assert onward.to_torch(inside, check=False) is not None


IDS, TEN = np.zeros((1, 4), np.int64), np.full(2, 10)


@pytest.mark.parametrize(
    ("op", "inputs", "given"),
    [
        ("UnfoldTensor", [np.zeros((1, 4), np.float32)], {"size": 2**40}),
        ("NGramRepeatBlock", [IDS, np.zeros((1, 4), np.float32)], {"ngram_size": 2**40}),
        ("NGramHashMapping", [IDS, TEN, TEN], {"max_ngram_size": 2**40, "n_head_per_ngram": 1, "pad_id": 0}),
        (
            "MRotaryEmbedding",
            [np.zeros((1, 1, 4, 4), np.float32), np.zeros((3, 1, 4), np.int64), *[np.zeros((9, 2), np.float32)] * 2],
            {"mrope_section": [2**40, 0, 0]},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sizes_that_cannot_be_meant_take_no_memory(op: str, inputs: list[np.ndarray], given: dict[str, object]) -> None:
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], domain=MS, **given)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    with pytest.raises(OnwardError):
        prepare("torch", model)(inputs)
