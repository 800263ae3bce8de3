"""Ops in dtypes that TensorFlow, or TensorFlow Lite, has no kernels for: refused, or computed in another dtype."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import TestCase

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.backends.emit.package import Source
from onward.backends.tensorflow.convert import generate
from onward.backends.tensorflow.kernels import LITE, TENSORFLOW
from onward.backends.tensorflow.missing_kernels import ANY, DOWN, POLICIES, UP, Kernels
from onward.cli import main
from onward.errors import OnwardError, UnsupportedError
from onward.model import load
from onward.scoreboard.suite import prepare

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("TensorFlow is not installed", allow_module_level=True)
from onward.backends.backend import backend
from onward.backends.tensorflow.load import run as execute

Array = np.ndarray[Any, Any]
Convert = Callable[..., tuple[int, str]]


def one_node(op: str, *inputs: Array, outputs: int = 1, **attributes: Any) -> onnx.ModelProto:
    names = [f"in{i}" for i in range(len(inputs))]
    results = [f"out{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, name="here", **attributes)],
        "one",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, inputs, strict=True)
        ],
        [onnx.ValueInfoProto(name=name) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)


def made_in(dtype: Any) -> onnx.ModelProto:
    """A small network, its data and weights all of one dtype."""
    rng = np.random.default_rng(0)
    weights = {"conv.weight": (3, 2, 3, 3), "fc.weight": (3, 4), "fc.bias": (4,)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("Conv", ["image", "conv.weight"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], name="fc"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", kind, ["n", 2, 6, 6])],
        [helper.make_tensor_value_info("y", kind, ["n", 4])],
        [numpy_helper.from_array(rng.standard_normal(shape).astype(dtype), name) for name, shape in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def converted(model: onnx.ModelProto, cast: str, kernels: Kernels) -> Source:
    return generate(load(model), cast=cast, kernels=kernels)


def results(model: onnx.ModelProto, source: Source, inputs: list[Array]) -> list[Array]:
    graph = load(model).ir.graph
    names = [value.name or "" for value in graph.inputs]
    found = backend("tensorflow").runner(execute(source), graph)(dict(zip(names, inputs, strict=True)))
    return [found[value.name or ""] for value in graph.outputs]


@pytest.fixture
def convert(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Convert:
    monkeypatch.setenv("COLUMNS", "200")

    def call(model: onnx.ModelProto, to: str, folder: Path, *options: str) -> tuple[int, str]:
        onnx.save(model, folder / "model.onnx")
        code = main(["convert", str(folder / "model.onnx"), "--to", to, "--out", str(folder / "out"), *options])
        return code, capsys.readouterr().err

    return call


def full(dtype: Any) -> tuple[Array, Array]:
    """Two arrays of values that reach to both ends of an integer type."""
    ends = np.iinfo(dtype)
    middle = (int(ends.max) + int(ends.min)) // 2
    a = np.array([ends.min, ends.max, ends.max, 3, middle, 7], dtype)
    return a, np.array([ends.max, 1, ends.max, 2, 5, 7], dtype)


INTEGERS = [np.int8, np.int16, np.uint8, np.uint16, np.uint32]
EXACT = [(op, dtype) for op in ("Add", "Sub", "Mul", "Max", "Min", "Less", "Equal", "Div") for dtype in INTEGERS]


@pytest.mark.parametrize(("op", "dtype"), EXACT, ids=[f"{op}-{np.dtype(dtype).name}" for op, dtype in EXACT])
def test_integers_computed_in_wider_ones_are_the_same(op: str, dtype: Any) -> None:
    a, b = full(dtype)
    model = one_node(op, a, b)
    source = converted(model, "both", LITE)
    with np.errstate(all="ignore"):
        (wanted,) = prepare("reference", model)([a, b])
    (found,) = results(model, source, [a, b])
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)
    native = LITE.native[op]["T"]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    assert bool(source.casts) == (kind not in {int(of) for of in native})


@pytest.mark.parametrize("cast", [policy for policy in POLICIES if policy in ("none", "down")])
def test_what_has_no_kernel_is_refused_by_name(cast: str) -> None:
    model = one_node("Unique", np.array([True, False, True]))
    with pytest.raises(UnsupportedError) as refused:
        onward.to_tensorflow(model, cast=cast)
    wanted = "Unique 'here': TensorFlow does not compute Unique in bool; cast='up' computes it in uint8"
    assert wanted in str(refused.value)


def test_what_cannot_be_cast_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"Unique in complex64, nor in a dtype near to it"):
        converted(one_node("Unique", np.array([1j, 2], np.complex64)), "both", TENSORFLOW)


@pytest.mark.parametrize("cast", ["up", "both"])
def test_a_cast_is_made_logged_and_written_down(cast: str) -> None:
    x = np.array([True, False, True, True])
    model = one_node("Unique", x, outputs=4)
    phrase = "Unique 'here': bool, computed in uint8"
    source = converted(model, cast, TENSORFLOW)
    assert source.casts == {phrase: True}
    assert "- Unique here: bool, computed in uint8\n" in source.model
    for found, wanted in zip(results(model, source, [x]), prepare("reference", model)([x]), strict=True):
        assert np.array_equal(found, wanted)
    with TestCase().assertLogs("onward", "WARNING") as logged:
        onward.to_tensorflow(model, cast=cast)
    assert any(phrase in line for line in logged.output)


def test_the_command_says_what_it_casts(convert: Convert, tmp_path: Path) -> None:
    model = one_node("Unique", np.array([True, False, True]))
    code, said = convert(model, "savedmodel", tmp_path)
    assert code == 2 and "--cast up computes it in uint8" in said and not (tmp_path / "out").exists()
    code, said = convert(model, "savedmodel", tmp_path, "--cast", "up")
    assert code == 0 and "cast: Unique 'here': bool, computed in uint8" in said and "verified" in said


@pytest.mark.parametrize("to", ["tensorflow", "savedmodel", "tflite"])
def test_reports_tell_of_casts(convert: Convert, tmp_path: Path, to: str, capsys: pytest.CaptureFixture[str]) -> None:
    """That of the conversion, and what `onward verify` says of the result later on."""
    op = "Conv" if to == "tflite" else "Unique"
    model = made_in(np.float16) if to == "tflite" else one_node("Unique", np.array([True, False, True]))
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    for report in (page, data):
        assert convert(model, to, tmp_path, "--cast", "up", "--report", str(report))[0] == 0
    assert f"<li>cast: {op} " in page.read_text()
    assert [note for note in json.loads(data.read_text())["notes"] if note.startswith(f"cast: {op} ")]
    assert main(["verify", str(tmp_path / "model.onnx"), str(tmp_path / "out"), "--on", "reference", "--json"]) == 0
    assert [note for note in json.loads(capsys.readouterr().out)["notes"] if f": cast: {op} " in note]


def test_half_precision_becomes_a_tflite_file(convert: Convert, tmp_path: Path) -> None:
    model = made_in(np.float16)
    code, said = convert(model, "tflite", tmp_path)
    assert code == 2 and "Conv 'conv': TensorFlow Lite does not compute Conv in float16; --cast up" in said
    code, said = convert(model, "tflite", tmp_path, "--cast", "up")
    assert code == 0 and "verified" in said and "cast: Conv 'conv': float16, computed in float32" in said


def test_double_precision_becomes_a_tflite_file_that_rounds(convert: Convert, tmp_path: Path) -> None:
    model = made_in(np.float64)
    code, said = convert(model, "tflite", tmp_path, "--cast", "up")
    assert code == 2 and "--cast down computes it in float32" in said
    code, said = convert(model, "tflite", tmp_path, "--cast", "down")
    assert code == 0 and "not the same, by the casts to narrower numbers" in said
    assert "computed in float32, which may round or overflow" in said


def test_weights_keep_their_names_and_nothing_is_cast_twice() -> None:
    source = converted(made_in(np.float64), "down", LITE)
    assert source.tensors.keys() == {"conv.weight", "fc.weight", "fc.bias"}
    assert {tensor.dtype.name for tensor in source.tensors.values()} == {"FLOAT"}
    assert source.model.count("tf.cast(") == 4  # input and output, and around the reshape, which takes any dtype


def test_rounding_between_ops_stays_where_a_wider_dtype_computes() -> None:
    x = np.linspace(0.1, 60, 64, dtype=np.float16)
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Log", ["e"], ["y"])]
    kind = TensorProto.FLOAT16
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, [64])], [helper.make_tensor_value_info("y", kind, [64])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (found,) = results(model, converted(model, "up", LITE), [x])
    with np.errstate(over="ignore"):
        halves = np.exp(x.astype(np.float32)).astype(np.float16)
        wanted = np.log(halves.astype(np.float32)).astype(np.float16)
    assert np.isinf(wanted).any()
    assert np.array_equal(found, wanted)


def test_sizes_are_not_cast() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n, 6] x) => (float[a, b] y) <int64 two = {2}, int64[1] all = {-1}> {
        shape = Shape (x)
        half = Div (shape, two)
        last = Slice (half, one, two1)
        target = Concat <axis = 0> (all, last)
        y = Reshape (x, target)
    }"""
    model = onnx.parser.parse_model(
        text.replace("int64[1] all = {-1}", "int64[1] all = {-1}, int64[1] one = {1}, int64[1] two1 = {2}")
    )
    assert converted(model, "none", LITE).casts == {}


@pytest.mark.parametrize("kernels", [TENSORFLOW, LITE], ids=["tensorflow", "lite"])
def test_the_tables_name_ops_parameters_and_dtypes_that_there_are(kernels: Kernels) -> None:
    for op, parameters in kernels.native.items():
        domain, _, name = op.rpartition("::")
        if parameters.keys() == {ANY}:
            assert domain == "onward"
            continue
        known = {constraint.type_param_str for constraint in onnx.defs.get_schema(name, domain).type_constraints}
        assert parameters.keys() <= known, op


def test_wider_holds_every_value_and_narrower_does_not() -> None:
    for narrow, wider in UP.items():
        for wide in wider:
            values = np.array([0, 1] if narrow.name == "BOOL" else _ends(narrow.numpy()), narrow.numpy())
            assert np.array_equal(values.astype(wide.numpy()).astype(narrow.numpy()), values), (narrow, wide)
            assert narrow not in UP.get(wide, ())
    for wide, narrower in DOWN.items():
        assert not set(narrower) & set(UP.get(wide, ())) - {wide}


def _ends(dtype: Any) -> list[Any]:
    if np.dtype(dtype).kind in "iu":
        return [np.iinfo(dtype).min, np.iinfo(dtype).max]
    return [0.1, -3.0]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(OnwardError, match="there is no cast 'sideways'; there are none, up, down, both"):
        onward.to_tensorflow(made_in(np.float32), cast="sideways")


def test_casts_are_for_tensorflow(convert: Convert, tmp_path: Path) -> None:
    code, said = convert(made_in(np.float32), "torch", tmp_path, "--cast", "up")
    assert code == 2 and "--cast is for --to tensorflow" in said
