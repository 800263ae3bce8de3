"""Layers in 8 bits: exact on every processor, and as many of them as the loss that is allowed."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest

import onward
from onward.bits.eight.centred import centred
from onward.bits.eight.observed import with_outputs
from onward.bits.integers import quantized
from onward.bits.search import Judge, accuracy, fewest_left
from onward.errors import OnwardError, UnsupportedError, VerificationError
from onward.model import Model
from onward.runners import prepare

DIGITS = Path("examples/digits/digits.onnx")
RNG = np.random.default_rng(2)


@pytest.fixture(scope="module")
def digits() -> Model:
    return onward.load(DIGITS)


@pytest.fixture(scope="module")
def samples() -> list[dict[str, np.ndarray]]:
    return [{"image": RNG.random((16, 1, 8, 8)).astype(np.float32)} for _ in range(3)]


def test_layers_are_in_eight_bits(digits: Model, samples: list[dict[str, np.ndarray]]) -> None:
    found = quantized(digits, samples)
    assert len(found.layers) == 11 and not any(layer.is_float for layer in found.layers)
    weights = [v.const_value.numpy() for v in found.model.ir.graph.initializers.values() if v.dtype == ir.DataType.INT8]
    for array in weights:
        channels = np.sort(array.astype(int).reshape(len(array), -1), axis=1)  # two products fit into 16 bits
        assert array.ndim != 4 or max(channels[:, -2:].sum(axis=1).max(), -channels[:, :2].sum(axis=1).min()) <= 128
    assert 0 < found.loss < 0.05 and found.what == "the outputs"
    assert [v.name for v in found.model.ir.graph.outputs] == [v.name for v in digits.ir.graph.outputs]


def test_as_many_layers_stay_as_the_loss_asks_for(digits: Model, samples: list[dict[str, np.ndarray]]) -> None:
    whole = quantized(digits, samples)
    found = quantized(digits, samples, most=whole.loss / 2)
    assert found.loss <= whole.loss / 2
    assert 0 < sum(layer.is_float for layer in found.layers) < 11
    run, other = (prepare("onnxruntime", model) for model in (digits, found.model))
    off = [np.linalg.norm(run(s)["logits"] - other(s)["logits"]) / np.linalg.norm(run(s)["logits"]) for s in samples]
    assert max(off) <= whole.loss / 2 * 1.01


def test_named_layers_stay(digits: Model, samples: list[dict[str, np.ndarray]]) -> None:
    found = quantized(digits, samples, keep=["Gemm"])
    assert [layer.node for layer in found.layers if layer.is_float] == ["node_linear"]


def test_labels_say_what_is_lost(digits: Model, samples: list[dict[str, np.ndarray]]) -> None:
    run = prepare("onnxruntime", digits)
    expected = [run(one) for one in samples]
    labels = [one["logits"].argmax(1) for one in expected]
    assert accuracy(expected, labels) == 1.0
    wrong = [{"logits": np.roll(one["logits"], 1, axis=1)} for one in expected]
    each = iter(wrong)
    assert Judge(samples, expected, labels).loss(lambda _: next(each)) == 1.0
    with pytest.raises(OnwardError, match="models that classify"):
        accuracy([{"y": np.zeros(3)}], [np.zeros(3)])


def test_the_fewest_layers_are_found_by_bisection() -> None:
    tried: list[int] = []

    def loss(left: object) -> float:
        tried.append(len(left))  # type: ignore[arg-type]
        return 1.0 - 0.1 * tried[-1]

    assert fewest_left([str(i) for i in range(10)], loss, 0.45) == ([str(i) for i in range(6)], pytest.approx(0.4))
    assert tried == [0, 1, 2, 4, 8, 6, 5]
    with pytest.raises(VerificationError, match="allowed"):
        fewest_left(["a"], lambda left: 1.0, 0.1)


def test_no_further_off_than_the_tool_of_the_runtime(digits: Model, tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    images = sklearn_images()
    samples = [{"image": images[i : i + 50]} for i in range(0, 200, 50)]

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc,name-defined]
        rest = iter(samples)

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.rest, None)

    quantization.quantize_static(DIGITS, tmp_path / "int8.onnx", Reader(), per_channel=True)
    run, *others = (
        prepare("onnxruntime", model)
        for model in (digits, quantized(digits, samples).model, onward.load(tmp_path / "int8.onnx"))
    )
    test = {"image": images[200:]}
    ours, theirs = (np.linalg.norm(other(test)["logits"] - run(test)["logits"]) for other in others)
    assert ours < 0.95 * theirs


def sklearn_images() -> np.ndarray:
    datasets = pytest.importorskip("sklearn.datasets")
    return (datasets.load_digits().images[:400] / 16).astype(np.float32)[:, None]


def normalised(opset: int) -> Model:
    """A convolution, what normalises its channels, and a ReLU, in an opset without scales for each channel."""
    weight = RNG.standard_normal((8, 8, 3, 3)).astype(np.float32) / 9
    factor = np.geomspace(0.5, 2, 8).astype(np.float32)
    text = f"""<ir_version: 4, opset_import: ["": {opset}]>
        main (float[batch,8,6,6] x) => (float[batch,8,6,6] y) {{
            a = Conv <pads=[1,1,1,1]> (x, w)
            b = BatchNormalization (a, factor, zero, zero, one)
            c = Relu (b)
            y = Conv <pads=[1,1,1,1]> (c, v)
        }}"""
    proto = onnx.parser.parse_model(text)
    arrays = {"w": weight, "v": weight / factor[None, :, None, None], "factor": factor}
    arrays |= {"zero": np.zeros(8, np.float32), "one": np.ones(8, np.float32)}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    return onward.load(proto)


def test_normalisation_and_relu_are_part_of_a_layer() -> None:
    model = normalised(11)
    samples = [{"x": RNG.standard_normal((32, 8, 6, 6)).astype(np.float32)}]
    found = quantized(model, samples)
    assert not {"BatchNormalization", "Relu"} & {node.op_type for node in found.model.ir.graph}
    assert len(found.layers) == 2 and all(0 < layer.loss < 0.02 for layer in found.layers)
    assert found.model.opset[""] >= 13 and [v.name for v in found.model.ir.graph.outputs] == ["y"]


def test_a_loss_of_as_many_rows_as_allowed_is_allowed() -> None:
    """Of 500 rows one is 0.2 %, whatever floats make of 0.896 - 0.894."""
    labels = [np.zeros(500, int)]
    scores = np.tile([1.0, 0.0], (500, 1))
    scores[448:] = [0.0, 1.0]
    worse = scores.copy()
    worse[447] = [0.0, 1.0]
    assert Judge([{}], [{"y": scores}], labels).loss(lambda _: {"y": worse}) <= 0.002


@pytest.mark.parametrize("op", ["Conv (x, w)", "Conv <group=8> (x, w)", "Conv <kernel_shape=[1,1]> (x, w)"])
def test_integers_are_exact_on_every_processor(op: str) -> None:
    """The largest numbers there are, beside the same model computed in floats: ONNX Runtime saturates with AVX2."""
    shape = (8, 1, 3, 3) if "group" in op else (32, 8, 1, 1) if "kernel" in op else (32, 8, 3, 3)
    weight = np.ones(shape, np.float32)
    weight[::2, 0] *= 1.6  # 78 and 49 steps: of two equal numbers each has 64
    weight[1::4] *= -1
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> main (float[batch,8,6,6] x) => (float[batch,C,H,W] y) {{ y = {op} }}'
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    samples = [{"x": RNG.choice([0.0, 0.5, 1.0], (16, 8, 6, 6)).astype(np.float32)}, {"x": np.ones((2, 8, 6, 6), "f")}]
    found = quantized(onward.load(proto), samples).model
    plain = onnxruntime.InferenceSession(found.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    for inputs in samples:
        (y,), expected = plain.run(None, inputs), prepare("onnxruntime:unoptimized", found)(inputs)["y"]
        step = np.abs(expected).max() / 255
        assert np.abs(y - expected).max() <= 1.01 * step


def model_of(text: str, **arrays: np.ndarray) -> Model:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> main {text}')
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    return onward.load(proto)


def images() -> list[dict[str, np.ndarray]]:
    return [{"x": RNG.standard_normal((8, 4, 6, 6)).astype(np.float32)}]


def test_what_the_tool_adds_to_names_clashes_with_none() -> None:
    """It calls a bias that several layers share by its name and a number, and what it adds by names behind these."""
    text = """(float[batch,4,6,6] x) => (float[batch,4,6,6] y) {
        b0 = Conv <kernel_shape=[1,1]> (x, w, b)
        b_scale = Conv <kernel_shape=[1,1]> (b0, v, b)
        x_quantized = Mul (b0, b_scale)
        y = Neg (x_quantized)
    }"""
    weights = {name: RNG.standard_normal((4, 4, 1, 1)).astype(np.float32) for name in "wv"}
    model, samples = model_of(text, **weights, b=np.ones(4, np.float32)), images()
    found = quantized(model, samples)
    onnx.checker.check_model(found.model.to_proto(), full_check=True)
    assert found.loss < 0.05 and len(found.layers) == 2
    assert {"b0", "b_scale", "x_quantized"} <= {v.name for node in found.model.ir.graph for v in node.outputs}


def test_weights_in_another_form_are_weights() -> None:
    text = """(float[batch,4,6,6] x) => (float[batch,4,4,4] y) {
        floats = Cast <to=1> (integers)
        w = Mul (floats, scale)
        y = Conv (x, w)
    }"""
    integers = RNG.integers(-127, 128, (4, 4, 3, 3), dtype=np.int8)
    scale = np.geomspace(0.001, 0.1, 4, dtype=np.float32).reshape(4, 1, 1, 1)
    found = quantized(model_of(text, integers=integers, scale=scale), images())
    held = {v.name: v.const_value for v in found.model.ir.graph.initializers.values()}
    assert held["w_quantized"].dtype == ir.DataType.INT8 and held["w_scale"].shape == (4,)
    assert found.loss < 0.02 and {"Cast", "Mul"}.isdisjoint(node.op_type for node in found.model.ir.graph)


def test_layers_in_sixteen_or_eight_bits_stay() -> None:
    text = """(float[batch,4,6,6] x) => (float[batch,4,6,6] y, float[batch,4,6,6] z) {
        half = Cast <to=10> (x)
        narrow = Conv <kernel_shape=[1,1]> (half, h)
        short = Relu (narrow)
        y = Cast <to=1> (short)
        d = DequantizeLinear (q, s)
        z = Conv <kernel_shape=[1,1]> (x, d)
        PLACE
    }"""
    weight = RNG.standard_normal((4, 4, 1, 1)).astype(np.float32)
    given = {"h": weight.astype(np.float16), "q": np.full((4, 4, 1, 1), 3, np.int8), "s": np.float32([0.5])[0]}
    with pytest.raises(UnsupportedError, match="compute in 32 bits, and are not quantized yet, there are none"):
        quantized(model_of(text.replace("PLACE", ""), **given), images())
    more = text.replace("y, float", "y, float[batch,4,6,6] more, float").replace("PLACE", "more = Conv (x, w)")
    found = quantized(model_of(more, **given, w=weight), images())
    assert len(found.layers) == 1 and found.loss < 0.02
    assert [node.op_type for node in found.model.ir.graph].count("QuantizeLinear") == 2


def test_sizes_that_numbers_decide_are_told() -> None:
    """Of two layers, the second reads as many rows as the first decides; in 8 bits it decides otherwise."""
    text = """(float[batch,4,6,6] x) => (float[n,4,6,6] y) {
        a = Conv <kernel_shape=[1,1]> (x, w)
        means = ReduceMean <axes=[1,2,3], keepdims=0> (a)
        above = Greater (means, limit)
        some = Compress <axis=0> (a, above)
        y = Conv <kernel_shape=[1,1]> (some, w)
    }"""
    weight, samples = RNG.standard_normal((4, 4, 1, 1)).astype(np.float32), images()
    floats = model_of(text, w=weight, limit=np.float32(-9))
    made = quantized(floats, samples).model
    means = [prepare("onnxruntime", with_outputs(one, ["means"]))(samples[0])["means"] for one in (floats, made)]
    row = int(np.argmax(abs(means[0] - means[1])))
    model = model_of(text, w=weight, limit=(means[0][row] + means[1][row]) / 2)
    found = quantized(model, samples)
    assert found.loss == np.inf and sorted(layer.loss for layer in found.layers)[1] == np.inf


def test_channels_are_where_they_were_on_average() -> None:
    text = """(float[batch,4,6,6] x) => (float[batch,4,6,6] y) {
        a = Conv <kernel_shape=[1,1]> (x, w, b)
        y = Relu (a)
    }"""
    weight, samples = RNG.standard_normal((4, 4, 1, 1)).astype(np.float32), images()
    model = model_of(text, w=weight, b=np.ones(4, np.float32))
    made = quantized(model, samples).model
    bias = made.ir.graph.initializers["b_quantized"]
    bias.const_value = ir.tensor(
        bias.const_value.numpy() + np.int32([0, 900, -900, 300]), name=bias.name
    )  # shifted on purpose

    def means(one: Model) -> np.ndarray:
        return prepare("onnxruntime", one)(samples[0])["y"].mean(axis=(0, 2, 3))

    layer = next(node.name or "" for node in made.ir.graph if node.op_type == "Conv")
    after = centred(model, made, {layer: ("y", "y")}, samples)
    off = [float(np.abs(means(one) - means(model)).max()) for one in (made, after)]
    assert off[0] > 0.02 and off[1] < off[0] / 5  # what is cut off by the Relu does not move
