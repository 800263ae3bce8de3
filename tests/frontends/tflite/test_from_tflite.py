"""TensorFlow Lite models become ONNX models that compute what the interpreter computes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import onnx_ir as ir  # noqa: E402
import onnxruntime  # noqa: E402
from battery_built import CASES  # noqa: E402
from lite import Flat, Made, interpreted, on_runtime, single  # noqa: E402

from onward.cli import main  # noqa: E402
from onward.errors import InvalidModelError, UnsupportedError  # noqa: E402
from onward.exporters import from_tflite  # noqa: E402
from onward.frontends.states import states_of  # noqa: E402
from onward.model import load  # noqa: E402

RNG = np.random.default_rng(0)


def network() -> Any:
    keras.utils.set_random_seed(0)
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            layers.Conv2D(8, 3, 2, "same", activation="relu"),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10, "softmax"),
        ]
    )


def converter(model: Any, shape: tuple[int, ...]) -> Any:
    function = tf.function(lambda x: model(x, training=False)).get_concrete_function(tf.TensorSpec((1, *shape)))
    return tf.lite.TFLiteConverter.from_concrete_functions([function])


@pytest.mark.parametrize("kind", ["float32", "float16", "int8 inside", "int8", "uint8", "int16x8"])
def test_a_quantised_network(kind: str) -> None:
    """Within one step of the interpreter; where the ends are floats, within a step of what they are made of."""
    lite_converter = converter(network(), (16, 16, 3))
    data = [RNG.standard_normal((1, 16, 16, 3)).astype(np.float32) for _ in range(20)]
    if kind != "float32":
        lite_converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        lite_converter.target_spec.supported_types = [tf.float16]
    if "int" in kind:
        lite_converter.representative_dataset = lambda: ([one] for one in data)
    ops = tf.lite.OpsSet
    if kind in ("int8", "uint8"):
        lite_converter.target_spec.supported_ops = [ops.TFLITE_BUILTINS_INT8]
        lite_converter.inference_input_type = lite_converter.inference_output_type = tf.as_dtype(kind)
    if kind == "int16x8":
        wide = ops.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        lite_converter.target_spec.supported_ops = [wide]
    lite = lite_converter.convert()
    image = data[0]
    if kind in ("int8", "uint8"):
        interpreter = tf.lite.Interpreter(model_content=lite)
        scale, zero = interpreter.get_input_details()[0]["quantization"]
        limits = np.iinfo(kind)
        image = np.clip(np.round(image / scale + zero), limits.min, limits.max).astype(kind)
    (wanted,) = interpreted(lite, image)
    (found,) = on_runtime(lite, image)
    assert found.dtype == wanted.dtype
    step = {"int8": 1, "uint8": 1, "int8 inside": 1 / 256}.get(kind, 1e-4)
    assert np.abs(found.astype(float) - wanted.astype(float)).max() <= step
    kinds = [node.op_type for node in from_tflite(lite, check=False).ir.graph]
    assert ("QuantizeLinear" in kinds) == ("int" in kind)


def test_weights_of_quantised_layers_are_multiplied_exactly_on_every_processor() -> None:
    """As uint8: of int8, ONNX Runtime makes products that saturate where a processor has AVX2 and no VNNI."""
    lite_converter = converter(network(), (16, 16, 3))
    lite_converter.optimizations = [tf.lite.Optimize.DEFAULT]
    lite_converter.representative_dataset = lambda: (
        [RNG.standard_normal((1, 16, 16, 3)).astype(np.float32)] for _ in range(3)
    )
    graph = from_tflite(lite_converter.convert(), check=False).ir.graph
    read = [node.inputs[0] for node in graph if node.op_type == "DequantizeLinear"]
    weights = [v.const_value for v in read if v is not None and v.const_value is not None]
    large = [tensor for tensor in weights if tensor.dtype != ir.DataType.INT32 and tensor.shape[1] != 1]
    assert large
    assert {tensor.dtype for tensor in large} == {ir.DataType.UINT8}


def test_a_recurrent_network() -> None:
    model = keras.Sequential([keras.Input((6, 4)), keras.layers.LSTM(8), keras.layers.Dense(3)])
    lite = converter(model, (6, 4)).convert()
    x = RNG.standard_normal((1, 6, 4)).astype(np.float32)
    np.testing.assert_allclose(on_runtime(lite, x)[0], interpreted(lite, x)[0], rtol=1e-4, atol=1e-6)


def test_a_recurrent_network_with_weights_of_8_bits() -> None:
    """Weights that a loop reads are made numbers before it."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((14, 4)), keras.layers.GRU(32, return_sequences=True), keras.layers.Dense(3)])
    made = converter(model, (14, 4))
    made.optimizations = [tf.lite.Optimize.DEFAULT]
    lite = made.convert()
    x = RNG.standard_normal((1, 14, 4)).astype(np.float32)
    np.testing.assert_allclose(on_runtime(lite, x)[0], interpreted(lite, x)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["VAR_HANDLE", "SVDF", "RNN", "LSTM all"])
def test_state_goes_from_call_to_call(name: str) -> None:
    """Not given, it is what the interpreter begins with; what comes out is for the next call."""
    lite, (first,) = CASES[name]()
    inputs = [first, first * 0.5, -first]
    interpreter = tf.lite.Interpreter(model_content=lite)
    interpreter.allocate_tensors()
    session = onnxruntime.InferenceSession(from_tflite(lite).to_proto().SerializeToString())
    states: dict[str, Any] = {}
    names = [output.name for output in session.get_outputs()]
    for x in inputs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        wanted = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        found = dict(zip(names, session.run(None, {session.get_inputs()[0].name: x, **states}), strict=True))
        np.testing.assert_allclose(found[names[0]], wanted, rtol=1e-5, atol=1e-6)
        states = {name.removesuffix("_next"): value for name, value in found.items() if name.endswith("_next")}
    assert states


def test_an_opset_that_does_not_load_is_refused() -> None:
    """ONNX Runtime changes int8 to uint8, and from this opset on does not do it right."""
    flat = Flat()
    graph = flat.graph()
    how = {"scale": 0.01}
    given = graph.input(np.zeros((1, 4, 4, 2), np.float32))
    (whole,) = graph.op("QUANTIZE", [given], [Made(graph.tensor(np.int8, (1, 4, 4, 2), **how))])
    pool = {"padding": 1, "strideW": 1, "strideH": 1, "filterWidth": 2, "filterHeight": 2}
    (most,) = graph.op("MAX_POOL_2D", [whole], [Made(graph.tensor(np.int8, (1, 3, 3, 2), **how))], Pool2DOptions=pool)
    graph.output(*graph.op("DEQUANTIZE", [most], [Made(graph.tensor(np.float32, (1, 3, 3, 2)))]))
    assert from_tflite(flat.bytes()).ir.opset_imports[""] == 20
    with pytest.raises(UnsupportedError, match="8 bits in an opset after 20"):
        from_tflite(flat.bytes(), opset=21)


def test_a_damaged_file(tmp_path: Path) -> None:
    lite = converter(network(), (16, 16, 3)).convert()
    cuts = [(lite[:size], "damaged|cut short|no graph") for size in (8, 20, 100, 1000, len(lite) // 2, len(lite) - 9)]
    for data, words in (*cuts, (b"not a model", "not a TensorFlow Lite model"), (b"", "not a TensorFlow Lite model")):
        with pytest.raises(InvalidModelError, match=words):
            from_tflite(data)
    with pytest.raises(InvalidModelError, match="No such file"):
        from_tflite(tmp_path / "missing.tflite")


def test_a_model_with_state_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each run of the interpreter is its first; what ONNX gives for the next call is not looked for there."""
    path = tmp_path / "sum.tflite"
    path.write_bytes(CASES["VAR_HANDLE"]()[0])
    assert main(["convert", str(path), "--to", "onnx", "--out", str(tmp_path / "sum.onnx")]) == 0
    assert "verified: worst error" in capsys.readouterr().err
    assert states_of(load(tmp_path / "sum.onnx")) == ["sum_next"]


def test_a_signature_gives_names() -> None:
    module = tf.Module()
    module.f = tf.function(lambda left, right: {"sum": left + right, "twice": left * 2})
    spec = tf.TensorSpec([2, 3])
    concrete = module.f.get_concrete_function(spec, spec)
    lite = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module).convert()
    graph = from_tflite(lite).ir.graph
    assert {value.name for value in graph.inputs} == {"left", "right"}
    assert {value.name for value in graph.outputs} == {"sum", "twice"}


def test_outputs_that_are_called_as_ops_are() -> None:
    """As TensorFlow calls the outputs of a function."""
    flat = Flat()
    graph = flat.graph()
    given = graph.input(np.float32([1, 2]))
    wanted = ["Identity", "Identity_1", "Identity_2", "Identity_3"]
    for name, op_type in zip(wanted, ["NEG", "ABS", "EXP", "SIN"], strict=True):
        (made,) = graph.op(op_type, [given], [(np.float32, (2,))])
        graph.made.tensors[made].name = name.encode()
        graph.output(made)
    model = from_tflite(flat.bytes())
    assert [value.name for value in model.ir.graph.outputs] == wanted


def test_an_output_that_is_given_twice() -> None:
    flat = Flat()
    graph = flat.graph()
    (made,) = graph.op("NEG", [graph.input(np.float32([1, 2]))], [(np.float32, (2,))])
    graph.output(made, made)
    model = from_tflite(flat.bytes())
    assert len({value.name for value in model.ir.graph.outputs}) == 2


def test_bad_files_are_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "net.tflite", tmp_path / "net.onnx"
    whole = CASES["SVDF"]()[0]
    for data, words in (
        (whole[: len(whole) // 2], "damaged or cut short"),
        (whole[:4] + b"TFL9" + whole[8:], "not recognised as a model"),
        (single("SKIP_GRAM", [np.float32([1])], [np.float32]), "no rule for 1 op: SKIP_GRAM"),
    ):
        path.write_bytes(data)
        assert main(["convert", str(path), "--to", "onnx", "--out", str(out)]) == 2
        said = capsys.readouterr().err
        assert words in said
        assert "Traceback" not in said
        assert len(said.splitlines()) == 1
        assert not out.exists()


@pytest.mark.parametrize("op_type", ["FULLY_CONNECTED", "CONV_2D"])
def test_weights_of_uint8(op_type: str) -> None:
    """As the first converters wrote them: weights have a zero of their own."""
    flat = Flat()
    graph = flat.graph()
    sizes: tuple[tuple[int, ...], ...] = ((3, 8), (5, 8), (3, 5))
    options: dict[str, Any] = {"FullyConnectedOptions": {}}
    if op_type == "CONV_2D":
        sizes = ((1, 6, 6, 3), (5, 3, 3, 3), (1, 6, 6, 5))
        same = {"padding": 0, "strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
        options = {"Conv2DOptions": same}
    x, weight = (RNG.integers(0, 256, size).astype(np.uint8) for size in sizes[:2])
    inputs = [graph.input(x, scale=0.02, zero=120), graph.constant(weight, scale=0.01, zero=130)]
    inputs.append(graph.constant(RNG.integers(-500, 500, 5).astype(np.int32), scale=0.0002))
    result = Made(graph.tensor(np.uint8, sizes[2], scale=0.1, zero=100))
    graph.output(*graph.op(op_type, inputs, [result], **options))
    (found,), (wanted,) = on_runtime(flat.bytes(), x), interpreted(flat.bytes(), x, delegates=False)
    assert np.abs(found.astype(int) - wanted).max() <= 1
    assert np.ptp(wanted) > 50


def test_strings_that_are_not_there() -> None:
    from onward.frontends.tflite.read import _strings

    whole = b"".join(number.to_bytes(4, "little") for number in (2, 16, 18, 21)) + b"abcde"
    assert _strings(whole) == [b"ab", b"cde"]
    with pytest.raises(InvalidModelError, match="do not hold 4,294,967,295 strings"):
        _strings(b"\xff\xff\xff\xff" + whole[4:])


def test_a_loop_that_the_interpreter_keeps_in_the_size_it_began_with() -> None:
    """As Keras 2 was converted: the batch is said to be open, and only what the loop collects in begins with one."""

    def last(x: Any) -> Any:
        shapes = [tf.TensorShape([]), tf.TensorShape([1, None, 4])]
        start = [tf.constant(0), tf.constant(np.ones((1, 1, 4), np.float32))]
        return tf.while_loop(
            lambda i, _: i < 3, lambda i, s: (i + 1, s[:, :1] + x[None, :, i]), start, shape_invariants=shapes
        )[1]

    function = tf.function(last).get_concrete_function(tf.TensorSpec((None, 3, 4)))
    lite = tf.lite.TFLiteConverter.from_concrete_functions([function]).convert()
    model = from_tflite(lite)  # compares
    assert model.ir.graph.inputs[0].shape == [1, 3, 4]


def test_one_of_several_signatures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Coder(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(RNG.standard_normal((4, 3)).astype(np.float32))

        @tf.function(input_signature=[tf.TensorSpec((None, 4))])
        def encode(self, x: Any) -> Any:
            return {"code": x @ self.weight}

        @tf.function(input_signature=[tf.TensorSpec((None, 3))])
        def decode(self, code: Any) -> Any:
            return {"x": tf.nn.relu(code @ tf.transpose(self.weight))}

    coder = Coder()
    signatures = {"encode": coder.encode, "decode": coder.decode}
    tf.saved_model.save(coder, str(tmp_path / "coder"), signatures=signatures)
    path, out = tmp_path / "coder.tflite", tmp_path / "net.onnx"
    path.write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "coder"), list(signatures)).convert())
    for name, given, wanted in (("encode", "x", "code"), ("decode", "code", "x")):
        graph = from_tflite(path, signature=name).ir.graph
        assert ([value.name for value in graph.inputs], [value.name for value in graph.outputs]) == ([given], [wanted])
        assert main(["convert", str(path), "--to", "onnx", "--signature", name, "--out", str(out)]) == 0
        assert "verified" in capsys.readouterr().err
    for options, words in (
        ([], "it has decode, encode; choose one by --signature decode"),
        (["--signature", "code"], "it has no signature 'code'; it has decode, encode"),
    ):
        assert main(["convert", str(path), "--to", "onnx", *options, "--out", str(out)]) == 2
        assert words in capsys.readouterr().err
