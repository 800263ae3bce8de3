"""TensorFlow Lite models become ONNX models that compute what the interpreter computes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import onnxruntime  # noqa: E402

from onward.errors import InvalidModelError, UnsupportedError  # noqa: E402
from onward.frontends.tflite.convert import from_tflite  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (3, 4)).astype(np.float32)
IMAGE = RNG.uniform(-1, 1, (2, 8, 9, 3)).astype(np.float32)
KERNEL = RNG.uniform(-1, 1, (3, 3, 3, 4)).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (3, 4)).astype(np.int32)


def interpreted(lite: bytes, *arrays: Any) -> tuple[list[Any], list[Any]]:
    """What the interpreter gives, and what it says about each."""
    interpreter = tf.lite.Interpreter(model_content=lite)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    details = interpreter.get_output_details()
    return [interpreter.get_tensor(detail["index"]) for detail in details], details


def on_runtime(lite: bytes, *arrays: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    model = from_tflite(lite).to_proto().SerializeToString()
    session = onnxruntime.InferenceSession(model, options)
    return session.run(None, {slot.name: a for slot, a in zip(session.get_inputs(), arrays, strict=True)})


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "add": (lambda x: x + 1.5, X),
    "sub": (lambda x: x - x[0], X),
    "div": (lambda x: x / (tf.abs(x) + 1), X),
    "floor_div": (lambda x: x // 3, WHOLE),
    "floor_mod": (lambda x: x % 4, WHOLE),
    "maximum": (lambda x: tf.maximum(x, 0.5), X),
    "pow": (lambda x: tf.pow(tf.abs(x), 1.5), X),
    "exp": (tf.exp, X),
    "rsqrt": (lambda x: tf.math.rsqrt(tf.abs(x) + 0.1), X),
    "squared_difference": (lambda x: tf.math.squared_difference(x, x[0]), X),
    "round": (tf.round, X),
    "greater": (lambda x: x > 0, X),
    "logical": (lambda x: tf.logical_and(x > 0, tf.logical_not(x > 1)), X),
    "select": (lambda x: tf.where(x > 0, x, -x * 2), X),
    "relu": (tf.nn.relu, X),
    "leaky_relu": (tf.nn.leaky_relu, X),
    "elu": (tf.nn.elu, X),
    "gelu": (tf.nn.gelu, X),
    "gelu_tanh": (lambda x: tf.nn.gelu(x, approximate=True), X),
    "hard_swish": (lambda x: x * tf.nn.relu6(x + 3) / 6, X),
    "softmax": (tf.nn.softmax, X),
    "log_softmax": (tf.nn.log_softmax, X),
    "l2_normalize": (lambda x: tf.math.l2_normalize(x, 1), X),
    "sum": (lambda x: tf.reduce_sum(x, 1), X),
    "mean": (lambda x: tf.reduce_mean(x, 0, keepdims=True), X),
    "any": (lambda x: tf.reduce_any(x > 1, 0), X),
    "argmax": (lambda x: tf.argmax(x, 1), X),
    "cumsum": (lambda x: tf.cumsum(x, 1, exclusive=True), X),
    "top_k": (lambda x: tf.math.top_k(x, 2), X),
    "matmul": (lambda x: tf.matmul(x, x, transpose_b=True), X),
    "dense": (lambda x: tf.nn.relu(tf.matmul(x, X.T) + 1), X),
    "reshape": (lambda x: tf.reshape(x, [2, 6]), X),
    "transpose": (lambda x: tf.transpose(x, [0, 3, 1, 2]), IMAGE),
    "concat": (lambda x: tf.concat([x, 2 * x], 1), X),
    "stack": (lambda x: tf.stack([x, 2 * x], 1), X),
    "unstack": (lambda x: tf.unstack(x, axis=1), X),
    "split": (lambda x: tf.split(x, 2, 1), X),
    "split_sizes": (lambda x: tf.split(x, [1, 3], 1), X),
    "slice": (lambda x: x[1:, ::-2], X),
    "tile": (lambda x: tf.tile(x, [2, 1]), X),
    "pad": (lambda x: tf.pad(x, [[1, 2], [0, 1]], constant_values=7.0), X),
    "pad_symmetric": (lambda x: tf.pad(x, [[1, 2], [0, 1]], "SYMMETRIC"), X),
    "gather": (lambda x: tf.gather(x, [2, 0], axis=1), X),
    "gather_nd": (lambda x: tf.gather_nd(x, [[0, 1], [2, 3]]), X),
    "one_hot": (lambda x: tf.one_hot(x, 5), np.int32([0, 4, 7])),
    "scatter": (lambda x: tf.scatter_nd([[4], [1]], x[:2], [6, 4]), X),
    "reverse": (lambda x: tf.reverse(x, [1]), X),
    "where": (lambda x: tf.where(x > 0), X),
    "unique": (lambda x: tf.unique(x), np.int32([3, 1, 3])),
    "cast": (lambda x: tf.cast(x, tf.int32), X),
    "conv": (lambda x: tf.nn.relu6(tf.nn.conv2d(x, KERNEL, 2, "SAME") + 1), IMAGE),
    "conv_dilated": (lambda x: tf.nn.conv2d(x, KERNEL, 1, "VALID", dilations=2), IMAGE),
    "depthwise": (lambda x: tf.nn.depthwise_conv2d(x, KERNEL[..., :2], [1, 1, 1, 1], "SAME"), IMAGE),
    "conv_transpose": (
        lambda x: tf.nn.conv2d_transpose(x, KERNEL.transpose(0, 1, 3, 2)[..., :3], [2, 16, 18, 4], 2, "SAME"),
        IMAGE,
    ),
    "max_pool": (lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), IMAGE),
    "average_pool": (lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), IMAGE),
    "resize": (lambda x: tf.image.resize(x, [16, 12]), IMAGE),
    "resize_nearest": (lambda x: tf.image.resize(x, [5, 20], "nearest"), IMAGE),
    "depth_to_space": (lambda x: tf.nn.depth_to_space(x[..., :1] * KERNEL[0, 0, 0], 2), IMAGE),
    "cond": (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1, lambda: x * 2), X),
    "while": (
        lambda n: tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), [0, 0])[1],
        np.asarray(7, np.int32),
    ),
    "map": (lambda x: tf.map_fn(lambda row: row / (tf.reduce_sum(row) + 9), x), X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_op(name: str) -> None:
    function, *arrays = FUNCTIONS[name]
    specs = [tf.TensorSpec(array.shape, array.dtype) for array in map(np.asarray, arrays)]
    concrete = tf.function(function).get_concrete_function(*specs)
    lite = tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    wanted, _ = interpreted(lite, *arrays)
    for found, other in zip(on_runtime(lite, *arrays), wanted, strict=True):
        assert found.dtype == other.dtype
        np.testing.assert_allclose(found, other, rtol=2e-5, atol=2e-6 * np.abs(other).max(initial=1))


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
    (wanted,), _ = interpreted(lite, image)
    (found,) = on_runtime(lite, image)
    assert found.dtype == wanted.dtype
    step = {"int8": 1, "uint8": 1, "int8 inside": 1 / 256}.get(kind, 1e-4)
    assert np.abs(found.astype(float) - wanted.astype(float)).max() <= step
    kinds = [node.op_type for node in from_tflite(lite).ir.graph]
    assert ("QuantizeLinear" in kinds) == ("int" in kind)


def test_a_recurrent_network() -> None:
    model = keras.Sequential([keras.Input((6, 4)), keras.layers.LSTM(8), keras.layers.Dense(3)])
    lite = converter(model, (6, 4)).convert()
    x = RNG.standard_normal((1, 6, 4)).astype(np.float32)
    np.testing.assert_allclose(on_runtime(lite, x)[0], interpreted(lite, x)[0][0], rtol=1e-4, atol=1e-6)


def test_a_damaged_file(tmp_path: Path) -> None:
    lite = converter(network(), (16, 16, 3)).convert()
    for data, words in ((lite[:100], "damaged|no graph"), (b"not a model", "no TensorFlow Lite model")):
        with pytest.raises(InvalidModelError, match=words):
            from_tflite(data)
    with pytest.raises(InvalidModelError, match="No such file"):
        from_tflite(tmp_path / "missing.tflite")


def test_all_that_has_no_rule_is_named() -> None:
    function = tf.function(lambda x: tf.bitcast(x, tf.int32)).get_concrete_function(tf.TensorSpec([3, 4]))
    lite = tf.lite.TFLiteConverter.from_concrete_functions([function]).convert()
    with pytest.raises(UnsupportedError, match=r"no rule for 1 op: BITCAST \("):
        from_tflite(lite)
