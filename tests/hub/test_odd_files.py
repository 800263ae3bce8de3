"""What a file says that cannot be meant, and that ONNX Runtime passes over, is passed over with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from bad_files import graph, node, opsets, weight
from onnx import TensorProto, helper

from onward import load
from onward.cli import main
from onward.errors import OddModelWarning

Change = Callable[[onnx.ModelProto], Any]
X = np.array([-1.5, 2], np.float32)
ONES = np.ones(2, np.float32).tobytes()


def made() -> onnx.ModelProto:
    """x → Neg → Add(·, w) → y, with zeros for w."""
    model = graph(node("Neg", "x", "a"), node("Add", "aw", "y"), initializer=[weight()])
    model.ir_version = 8
    return model


def describe(*infos: tuple[str, int, list[int]]) -> Change:
    return lambda m: m.graph.value_info.extend(helper.make_tensor_value_info(*info) for info in infos)


def twice(entries: Callable[[onnx.ModelProto], Any]) -> Change:
    return lambda m: entries(m).extend(onnx.StringStringEntryProto(key="key", value=value) for value in "ab")


def weights(*tensors: TensorProto) -> Change:
    return lambda m: m.graph.initializer.extend(tensors)


def only_weight(**fields: Any) -> Change:
    return lambda m: m.graph.initializer[0].CopyFrom(weight(**fields))


def shape(slot: str, dim: int) -> Change:
    return lambda m: getattr(m.graph, slot)[0].type.tensor_type.shape.dim[0].__setattr__("dim_value", dim)


def unknown(message: Callable[[onnx.ModelProto], Any]) -> Change:
    """A field of the number 111, which no message of ONNX has."""
    return lambda m: message(m).MergeFromString(b"\xfa\x06\x03new")


def not_utf8(message: Callable[[onnx.ModelProto], Any], field: int) -> Change:
    return lambda m: message(m).MergeFromString(bytes([field << 3 | 2]) + b"\x02\xff\xfe")


def itself(model: onnx.ModelProto) -> onnx.ModelProto:
    return model


ODD: dict[str, tuple[Change, str]] = {
    "value described twice": (describe(("a", 1, [2]), ("a", 1, [3])), "value 'a' is described twice, differently"),
    "no value described twice": (describe(("q", 1, [2]), ("q", 1, [3])), "value 'q' is described twice"),
    "value of an absurd size": (describe(("a", 1, [2**62, 4])), "value 'a': its shape has more elements"),
    "weight twice": (weights(weight(raw_data=ONES)), "initializer 'w' is given twice, of which the last is kept"),
    "weight without a name": (weights(weight(name="")), "an initializer without a name"),
    "data twice": (only_weight(float_data=[1, 2]), "given more than once, and read from raw_data"),
    "data in a wrong field, too": (
        only_weight(raw_data=None, float_data=[1, 2], int32_data=[3]),
        "given more than once, and read from float_data",
    ),
    "two opsets": (opsets(("", 16), ("ai.onnx", 17)), "opset 16 and then opset 17 of ai.onnx"),
    "metadata twice": (twice(lambda m: m.metadata_props), "'key' is given two values, of which the last"),
    "metadata of a node twice": (twice(lambda m: m.graph.node[0].metadata_props), "'key' is given two values"),
    "field of tomorrow": (unknown(itself), "field 111 of ModelProto"),
    "field of tomorrow of a node": (unknown(lambda m: m.graph.node[0]), "field 111 of NodeProto"),
    "field of tomorrow of an input": (unknown(lambda m: m.graph.input[0]), "field 111 of ValueInfoProto"),
    "producer that is not UTF-8": (not_utf8(itself, 2), "not valid UTF-8"),
    "comment that is not UTF-8": (not_utf8(lambda m: m.graph.node[0], 6), "not valid UTF-8"),
    "metadata that is not UTF-8": (not_utf8(lambda m: m.metadata_props.add(key="k"), 2), "not valid UTF-8"),
    "value of another size": (describe(("a", 1, [3])), ""),
    "value of another rank": (describe(("a", 1, [3, 1])), ""),
    "weight of another size": (describe(("w", 1, [3])), ""),
    "input described again": (describe(("x", 1, [3])), ""),
    "value of a negative size": (describe(("a", 1, [-5])), ""),
    "input of a negative size": (shape("input", -5), ""),
    "output of a negative size": (shape("output", -5), ""),
    "output of another size": (shape("output", 3), ""),
    "weight that is also an input": (
        lambda m: m.graph.input.append(helper.make_tensor_value_info("w", 1, [2])),
        "",
    ),
    "opset 0 of an unused domain": (opsets(("", 17), ("ai.onnx.preview.training", 0)), ""),
    "negative opset of an unknown domain": (opsets(("", 17), ("unknown", -1)), ""),
    "IR version 0": (lambda m: setattr(m, "ir_version", 0), ""),
}
"""Each with words of the warning, or none where nothing is lost."""


def run(model: onnx.ModelProto) -> np.ndarray:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


@pytest.mark.parametrize("name", ODD)
def test_what_onnx_runtime_loads_is_loaded_and_means_the_same(name: str) -> None:
    change, remark = ODD[name]
    model = made()
    change(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load(model)
    assert [w.category for w in caught] == ([OddModelWarning] if remark else [])
    assert all(remark in str(warning.message) for warning in caught)
    np.testing.assert_array_equal(run(loaded.to_proto()), run(model))


def test_one_warning_for_a_file_full_of_oddities(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line prints it as a line of its own, without the place in the code."""
    model = made()
    for name in "ay":
        describe((name, 1, [2]), (name, 1, [3]))(model)
    onnx.save(model, tmp_path / "odd.onnx")
    assert main(["inspect", str(tmp_path / "odd.onnx")]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("onward: ") and "odd.onnx: the graph: value 'a'" in line and "(and 1 more like it)" in line
