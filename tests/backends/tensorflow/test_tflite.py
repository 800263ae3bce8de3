"""TensorFlow Lite: models that are quantised already, padded pools, and what it has no op for."""

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import onward
from onward import runners
from onward.backends.tensorflow.tflite import convert, generate_for_tflite
from onward.cli import main
from onward.cli.convert import coloured
from onward.conversion import in_bytes
from onward.conversion.convert import accepted
from onward.conversion.request import Request
from onward.errors import OnwardError, UnsupportedError, VerificationError
from onward.formats import open_artifact
from onward.importers import to_tflite
from onward.model import load
from onward.runners.onnxruntime import session
from onward.verification.check import compared, verdict

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("TensorFlow is not installed", allow_module_level=True)
import tensorflow as tf

DIGITS = Path(__file__).parents[3] / "examples/digits/digits.onnx"
Array = np.ndarray[Any, np.dtype[Any]]


class Images(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, images: Array) -> None:
        self._images = iter(images)

    def get_next(self) -> dict[str, Array] | None:
        image = next(self._images, None)
        return None if image is None else {"image": image[None]}


def images(count: int, *dims: int) -> Array:
    return np.random.default_rng(0).random((count, *dims), np.float32)


def small_net() -> onnx.ModelProto:
    """A stem, a depthwise convolution beside a shortcut, a pool with padding, and a linear layer."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 17]> g (float[n, 3, 16, 16] image) => (float[n, 5] logits) {
            a = Conv<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(image, stem, bias)
            b = Relu(a)
            c = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1], group = 8>(b, depthwise)
            d = Conv<kernel_shape = [1, 1]>(c, pointwise, bias)
            e = Add(b, d)
            f = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(e)
            g = GlobalAveragePool(f)  h = Flatten(g)  logits = Gemm<transB = 1>(h, head, rest)
        }"""
    )
    rng = np.random.default_rng(1)
    shapes = {"stem": (8, 3, 3, 3), "depthwise": (8, 1, 3, 3), "pointwise": (8, 8, 1, 1), "bias": (8,), "head": (5, 8)}
    spread = {name: rng.uniform(0.2, 2, (shape[0], *[1] * (len(shape) - 1))) for name, shape in shapes.items()}
    weights = {name: rng.standard_normal(shape) * spread[name] for name, shape in shapes.items()}
    weights["rest"] = rng.standard_normal(5)
    model.graph.initializer.extend(numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items())
    return model


def quantized(model: Any, out: Path, data: Array, **options: Any) -> Path:
    if isinstance(model, onnx.ModelProto):
        onnx.save(model, out.with_suffix(".float.onnx"))
        model = out.with_suffix(".float.onnx")
    options = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8, "per_channel": True} | options
    quantize_static(model, out, Images(data), quant_format=QuantFormat.QDQ, **options)
    return out


def converted(path: Path) -> Any:
    """An interpreter of the TensorFlow Lite model."""
    model = load(path)
    interpreter = tf.lite.Interpreter(model_content=convert(generate_for_tflite(model), model.ir.graph))
    interpreter.allocate_tensors()
    return interpreter


def steps_apart(path: Path, interpreter: Any, data: Array) -> Array:
    """How far the results are from ONNX Runtime's, in steps of the grid of the output."""
    referee = session(load(path))
    runner = interpreter.get_signature_runner()
    singles = [data[i : i + 1] for i in range(len(data))]
    right = np.concatenate([referee.run(None, {"image": x})[0] for x in singles])
    found = np.concatenate([next(iter(runner(image=x).values())) for x in singles])
    last = onnx.load(path).graph.node[-1]
    (scale,) = (numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer if t.name == last.input[1])
    assert last.op_type == "DequantizeLinear" and right.std() > 3 * scale
    return np.asarray(np.abs(found - right) / scale)


def activation_grids(path: Path) -> set[tuple[float, int]]:
    """Scale and zero point, as of int8, of everything that is quantised when the model runs."""
    graph = onnx.load(path).graph
    weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    nodes = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    points = [weights[node.input[2]] for node in nodes]
    shifts = [128 if point.dtype == np.uint8 else 0 for point in points]
    return {
        (round(float(weights[node.input[1]]), 7), int(point) - shift)
        for node, point, shift in zip(nodes, points, shifts, strict=True)
    }


def grids(interpreter: Any) -> Iterator[tuple[Array, Array]]:
    for detail in interpreter.get_tensor_details():
        if detail["dtype"] == np.int8:
            parameters = detail["quantization_parameters"]
            yield parameters["scales"], parameters["zero_points"]


@pytest.mark.parametrize("per_channel", [True, False], ids=["per_channel", "per_tensor"])
@pytest.mark.parametrize("activations", [QuantType.QInt8, QuantType.QUInt8], ids=["int8", "uint8"])
def test_a_quantised_model_keeps_its_scales(tmp_path: Path, activations: QuantType, per_channel: bool) -> None:
    data = images(24, 3, 16, 16)
    options = {"activation_type": activations, "per_channel": per_channel}
    path = quantized(small_net(), tmp_path / "q.onnx", data, **options)
    interpreter = converted(path)
    apart = steps_apart(path, interpreter, data)
    assert apart.max() < 1.01 and np.mean(apart < 0.01) > 0.9
    found = list(grids(interpreter))
    assert activation_grids(path) <= {(round(float(s[0]), 7), int(z[0])) for s, z in found if len(s) == 1}
    assert {len(scales) for scales, _ in found} == ({1, 5, 8} if per_channel else {1})
    names = {detail["op_name"] for detail in interpreter._get_ops_details()}
    assert {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MIRROR_PAD"} <= names
    floats = [d for d in interpreter.get_tensor_details() if d["dtype"] == np.float32]
    assert len(floats) == 2, "all but the input and the output is computed in 8 bits"


def test_weights_keep_the_scale_of_each_channel(tmp_path: Path) -> None:
    path = quantized(small_net(), tmp_path / "q.onnx", images(4, 3, 16, 16))
    graph = onnx.load(path).graph
    tensors = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    nodes = [node for node in graph.node if node.op_type == "DequantizeLinear" and node.input[0] in tensors]
    right = [tensors[node.input[1]] for node in nodes if tensors[node.input[0]].dtype == np.int8]
    found = [scales for scales, _ in grids(converted(path)) if len(scales) > 1]
    assert len(right) == len(found) == 4
    np.testing.assert_allclose(np.sort(np.concatenate(found)), np.sort(np.concatenate(right)), rtol=1e-5)


def test_the_digits_quantised_by_onnx_runtime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = images(32, 1, 8, 8)
    path = quantized(DIGITS, tmp_path / "q.onnx", data)
    assert steps_apart(path, converted(path), data).max() < 1.01
    assert main(["convert", str(path), "--to", "tflite", "--out", str(tmp_path / "q.tflite")]) == 0
    said = capsys.readouterr().err
    assert "verified: worst error" in said or "not the same, by 8-bit arithmetic" in said
    assert (tmp_path / "q.tflite").stat().st_size < 0.6 * DIGITS.stat().st_size


@pytest.mark.parametrize(
    "options", [{"weight_type": QuantType.QUInt8, "per_channel": False}, {"reduce_range": True}], ids=str
)
def test_grids_that_its_kernels_do_not_take_are_computed_in_floats(tmp_path: Path, options: dict[str, Any]) -> None:
    data = images(8, 3, 16, 16)
    path = quantized(small_net(), tmp_path / "q.onnx", data, **options)
    assert not generate_for_tflite(load(path)).in_bytes
    assert steps_apart(path, converted(path), data).max() < 1.01


def test_weights_that_alone_are_integers_leave_the_data_in_floats() -> None:
    """The converter would give every Sigmoid a grid of its own, 1/256, and what follows it as well."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 17]> g (float[1, 3, 8, 8] image) => (float[1, 64, 4] y) {
            w = DequantizeLinear(weight, scale)
            a = Conv<kernel_shape = [1, 1]>(image, w)
            b = Sigmoid(a)  c = Reshape(b, dims)  d = Transpose<perm = [0, 2, 1]>(c)
            e, f = Split<axis = 2>(d)  g = Mul(e, ten)  y = Concat<axis = 2>(g, f)
        }"""
    )
    rng = np.random.default_rng(0)
    arrays = {
        "weight": rng.integers(-127, 128, (4, 3, 1, 1), np.int8),
        "scale": np.array(0.02, np.float32),
        "dims": np.array([1, 4, 64]),
        "ten": np.array(10, np.float32),
    }
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    loaded, x = load(model), images(1, 3, 8, 8)
    source = generate_for_tflite(loaded)
    assert not source.in_bytes
    runner = tf.lite.Interpreter(model_content=convert(source, loaded.ir.graph)).get_signature_runner()
    np.testing.assert_allclose(runner(image=x)["y"], session(loaded).run(None, {"image": x})[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "size"),
    [
        (3, 2, (1, 1), 9),
        (3, 2, (1, 0), 8),
        (5, 3, (2, 2), 11),
        (2, 2, (1, 1), 7),
        (3, 1, (1, 1), 6),
        (3, 2, (1, 1), "n"),
    ],
    ids=str,
)
def test_padded_pools(kernel: int, stride: int, pads: tuple[int, int], size: Any) -> None:
    begin, end = pads
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 17]> g (float[1, 4, {size}, {size}] x) => (float[1, 4, h, w] y) {{
            y = MaxPool<kernel_shape = [{kernel}, {kernel}], strides = [{stride}, {stride}],
                        pads = [{begin}, {begin}, {end}, {end}]>(x)
        }}"""
    )
    side = 7 if size == "n" else size
    x = np.random.default_rng(0).standard_normal((1, 4, side, side)).astype(np.float32) - 5
    loaded = load(model)
    content = convert(generate_for_tflite(loaded), loaded.ir.graph)
    runner = tf.lite.Interpreter(model_content=content).get_signature_runner()
    right = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_array_equal(runner(x=x)["y"], right)


@pytest.mark.parametrize(("coordinates", "rounding", "scale"), [("asymmetric", "floor", 3), ("half_pixel", "ceil", 2)])
def test_images_of_any_size_grow_by_whole_numbers(coordinates: str, rounding: str, scale: int) -> None:
    """By TensorFlow's own op where it copies alike; anything else takes numbers that TensorFlow Lite lacks."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 19]> g (float[1, 3, h, w] x) => (float[1, 3, i, j] y)
        <float[4] s = {{1.0, 1.0, {scale}.0, 2.0}}> {{
            y = Resize<mode = "nearest", coordinate_transformation_mode = "{coordinates}",
                       nearest_mode = "{rounding}">(x, , s)
        }}"""
    )
    loaded = load(model)
    source = generate_for_tflite(loaded)
    if rounding == "ceil":
        assert "tf.image.resize" not in source.model
        return
    runner = tf.lite.Interpreter(model_content=convert(source, loaded.ir.graph)).get_signature_runner()
    x = images(1, 3, 37, 5)
    right = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_array_equal(runner(x=x)["y"], right)


def test_infinity_is_not_calibrated() -> None:
    """TensorFlow's converter would end the process."""
    model = small_net()
    (pool,) = (node for node in model.graph.node if node.op_type == "MaxPool")
    (kernel,) = (attribute for attribute in pool.attribute if attribute.name == "kernel_shape")
    kernel.ints[:] = [2, 2]
    loaded, samples = load(model), [{"image": images(1, 3, 16, 16)}]
    with pytest.raises(UnsupportedError, match="no MaxPool of its own"):
        convert(generate_for_tflite(loaded, quantize="int8"), loaded.ir.graph, "int8", samples)


UNKNOWN = """<ir_version: 10, opset_import: ["": 17]> g (double[4, 4] x) => (double y) { y = Det(x) }"""


def test_ops_that_it_lacks_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = load(onnx.parser.parse_model(UNKNOWN))
    with pytest.raises(UnsupportedError, match=r"no MatrixDeterminant of its own; select_tf_ops=True"):
        convert(generate_for_tflite(model), model.ir.graph)
    onnx.save(onnx.parser.parse_model(UNKNOWN), tmp_path / "m.onnx")
    asked = ["convert", str(tmp_path / "m.onnx"), "--to", "tflite", "--out", str(tmp_path / "m.tflite")]
    assert main(asked) == 2 and "--select-tf-ops" in capsys.readouterr().err
    assert main([*asked, "--select-tf-ops", "--no-verify"]) == 0 and (tmp_path / "m.tflite").is_file()


@pytest.mark.parametrize("body", ["", " y = Softmax(x)"], ids=["on a grid", "computed of numbers on a grid"])
@pytest.mark.parametrize(("steps", "is_rounding"), [(2.0, True), (9.0, False), (np.nan, False)])
def test_more_than_a_few_steps_are_a_difference(tmp_path: Path, body: str, steps: float, is_rounding: bool) -> None:
    """What rounding in 8 bits explains is told; anything else is an error, and nothing is written."""
    model = load(quantized(small_net(), tmp_path / "q.onnx", images(8, 3, 16, 16)))
    if body:
        last = model.ir.graph.outputs[0]
        node = ir.Node("", "Softmax", [last], name="softmax")
        node.outputs[0].name, node.outputs[0].type = "probabilities", last.type
        model.ir.graph.append(node)
        model.ir.graph.outputs[0] = node.outputs[0]
    right, grid = runners.prepare("onnxruntime", model), in_bytes.grid_of(model.ir.graph.outputs[0])
    assert (grid is None) == bool(body)

    def off(inputs: Any) -> Any:
        return {name: x + np.float32(steps * (grid or x.max() / in_bytes.LEVELS)) for name, x in right(inputs).items()}

    report = compared(model, off)
    found = in_bytes.beyond(report, model)
    assert (found == "") == is_rounding
    if is_rounding:
        assert "not the same[/], by 8-bit arithmetic" in coloured(verdict(report, "8-bit arithmetic", found))
        return
    asked = Request(model, "tflite", tmp_path / "out.tflite")
    assert steps != 9 or re.search(r"is off by (9|8\.\d+|9\.\d+) steps of 8 bits", found)
    with pytest.raises(VerificationError, match="nothing was written"):
        accepted(verdict(report, "8-bit arithmetic", found), asked)
    kept = accepted(verdict(report, "8-bit arithmetic", found), replace(asked, keep=True))
    assert "kept as asked" in coloured(kept)


def test_dimensions_are_fixed_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "digits.tflite"
    assert main(["convert", str(DIGITS), "--to", "tflite", "--out", str(out), "--dim", "batch=3"]) == 0
    assert "verified" in capsys.readouterr().err
    (detail,) = tf.lite.Interpreter(str(out)).get_input_details()
    assert detail["shape_signature"].tolist() == [3, 1, 8, 8]
    assert main(["convert", str(DIGITS), "--to", "tflite", "--out", str(out), "--dim", "rows=3"]) == 2
    assert "no input has a dynamic dimension 'rows'; there are: batch" in capsys.readouterr().err


WITH_FLOATS = """<ir_version: 10, opset_import: ["": 17]> g (float[1, 8] x, int32[1] i) => (float[1, 8] y) {
    a = MatMul(x, w)  b = Sin(a)  c = MatMul(b, w)  d = Gather(w, i)  y = Add(c, d)
}"""


@pytest.mark.parametrize("io", ["float32", "int8", "uint8"])
def test_what_a_model_in_8_bits_takes_and_gives(
    io: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    """In steps that the file tells; the report says which ops stayed in floats, and `verify` takes floats."""
    model = onnx.parser.parse_model(WITH_FLOATS)
    weight = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    source, out = tmp_path / "net.onnx", tmp_path / "net.tflite"
    onnx.save(model, source)
    x, i = images(1, 8), np.int32([2])
    np.savez(tmp_path / "data.npz", x=x, i=i)
    options = ["--quantize", "int8", "--calibrate", str(tmp_path / "data.npz"), "--io", io, "--out", str(out)]
    assert main(["convert", str(source), "--to", "tflite", *options]) == 0
    said = capsys.readouterr().err
    assert "not the same, by int8" in said
    assert re.search(r"in floats: 1 of \d+ ops \(1 SIN\)\n", said)
    assert not [str(warning.message) for warning in recwarn if "deprecated" in str(warning.message)]
    interpreter = tf.lite.Interpreter(str(out))
    dtypes = {detail["name"]: np.dtype(detail["dtype"]).name for detail in interpreter.get_input_details()}
    assert dtypes == {"serving_default_i:0": "int32", "serving_default_x:0": io}
    (given,) = interpreter.get_output_details()
    assert np.dtype(given["dtype"]).name == io
    wanted = session(load(source)).run(None, {"x": x, "i": i})[0]
    found = open_artifact(out).run({"x": x, "i": i})["y"]
    assert found.dtype == np.float32
    assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()


def test_integers_are_fed_and_given_back_as_they_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", image=images(4, 1, 8, 8))
    out = to_tflite(DIGITS, tmp_path / "n.tflite", quantize="int8", io="int8", calibrate=tmp_path / "data.npz")
    given = np.random.default_rng(0).integers(-128, 128, (1, 1, 8, 8)).astype(np.int8)
    assert [array.dtype for array in open_artifact(out).run({"image": given}).values()] == [np.int8]
    assert onward.verify(onward.from_tflite(out), out).status == "same"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"io": "int8"}, "io='int8' is for models in 8 bits: give quantize='int8' as well"),
        (
            {"io": "int4", "quantize": "int8", "calibrate": {"image": images(1, 1, 8, 8)}},
            "they can be float32, int8, uint8",
        ),
    ],
)
def test_what_ends_cannot_be(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(OnwardError, match=re.escape(words)):
        to_tflite(DIGITS, tmp_path / "n.tflite", **options)
    assert not list(tmp_path.iterdir())
