"""Modules of StableHLO: what is in the file, and that it computes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from jaxlib.mlir.dialects import stablehlo
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.backends.jax.stablehlo_file import Module
from onward.errors import InvalidModelError, OnwardError, UnsupportedError

WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2)


def model(*nodes: onnx.NodeProto, open_: bool = True, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Of x: (batch, 3) and what is added to the result; y is the output."""
    batch = "batch" if open_ else 2
    inputs = [
        helper.make_tensor_value_info("x", dtype, [batch, 3]),
        helper.make_tensor_value_info("b", dtype, [batch, 1]),
    ]
    outputs = [helper.make_tensor_value_info("y", dtype, None)]
    weights = [numpy_helper.from_array(WEIGHT, "w")]
    graph = helper.make_graph(list(nodes) or sum_of_product(), "net", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def sum_of_product() -> list[onnx.NodeProto]:
    return [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]


@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc"])
def test_open_dimensions_stay_open(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"net{suffix}"
    done = onward.convert(model(), to="stablehlo", out=out)
    assert done.verdicts[0].status == "verified" and done.files == (out.name,)
    module = Module(out)
    assert [(side.name, side.dims) for side in module.arguments] == [("x", (None, 3)), ("b", (None, 1))]
    assert [side.name for side in module.results] == ["y"]
    for batch in (1, 5):
        x, b = np.random.default_rng(0).random((batch, 3), np.float32), np.ones((batch, 1), np.float32)
        np.testing.assert_allclose(module([x, b])[0], x @ WEIGHT + b, rtol=1e-6)


def test_sizes_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    onward.convert(model(), to="stablehlo", out=tmp_path / "net.mlir", verify=False)
    with pytest.raises(UnsupportedError, match="does not take inputs of these shapes"):
        Module(tmp_path / "net.mlir")([np.ones((2, 3), np.float32), np.ones((4, 1), np.float32)])


def test_the_text_has_no_paths(tmp_path: Path) -> None:
    onward.convert(model(), to="stablehlo", out=tmp_path / "net.mlir", verify=False)
    text = (tmp_path / "net.mlir").read_text()
    assert "loc(" not in text and ".py" not in text and "onward_generated" not in text
    assert '{jax.arg_info = "x"}' in text and '{jax.result_info = "y"}' in text


def test_fixed_sizes(tmp_path: Path) -> None:
    onward.convert(model(), to="stablehlo", out=tmp_path / "net.mlir", dims={"batch": 4})
    text = (tmp_path / "net.mlir").read_text()
    assert "tensor<4x3xf32>" in text and "?" not in text


def test_verify_takes_a_module(tmp_path: Path) -> None:
    onward.convert(model(), to="stablehlo", out=tmp_path / "net.mlir", verify=False)
    report = onward.verify(model(), tmp_path / "net.mlir", quick=True)
    assert report.ok and report.sides[0].name.endswith("(StableHLO module)")


def test_an_input_that_is_not_read_stays(tmp_path: Path) -> None:
    onward.convert(model(helper.make_node("MatMul", ["x", "w"], ["y"])), to="stablehlo", out=tmp_path / "net.mlir")
    assert [side.name for side in Module(tmp_path / "net.mlir").arguments] == ["x", "b"]


def test_what_depends_on_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OnwardError, match="StableHLO"):
        onward.convert(model(helper.make_node("NonZero", ["x"], ["y"])), to="stablehlo", out=tmp_path / "net.mlir")
    assert not (tmp_path / "net.mlir").exists()


CALLBACK = """module @net {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.custom_call @xla_python_cpu_callback(%arg0) {backend_config = "1"} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


@pytest.mark.parametrize("name", ["net.mlir", "net.mlirbc"])
@pytest.mark.parametrize("called", ["xla_python_cpu_callback", "my_own_function"])
def test_a_module_that_calls_out_is_not_run(called: str, name: str, tmp_path: Path) -> None:
    text = CALLBACK.replace("xla_python_cpu_callback", called)
    artifact = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version())
    (tmp_path / name).write_bytes(artifact if name == "net.mlirbc" else text.encode())
    for open_it in (lambda path: onward.verify(model(), path), onward.from_stablehlo):
        with pytest.raises(OnwardError, match=called):
            open_it(tmp_path / name)


def test_damaged_files(tmp_path: Path) -> None:
    (tmp_path / "net.mlir").write_text("module @net { func.func @main(")
    with pytest.raises(InvalidModelError, match="no module of StableHLO"):
        Module(tmp_path / "net.mlir")
    (tmp_path / "net.mlirbc").write_bytes(b"ML\xefR\x0dStableHLO_v1.17.0\x00\x01")
    with pytest.raises(InvalidModelError, match="damaged"):
        Module(tmp_path / "net.mlirbc")
