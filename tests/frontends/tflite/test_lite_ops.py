"""Builtin ops of TensorFlow Lite, each beside the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from battery_built import CASES  # noqa: E402
from battery_converted import FUNCTIONS, INT8, INT16, STABLEHLO  # noqa: E402
from lite import (  # noqa: E402
    Flat,
    converted,
    interpreted,
    of_old_converters,
    on_runtime,
    op_types,
    schema,
    single,
    steps,
)
from refused_ops import NO_KERNEL, REFUSED  # noqa: E402

from onward.errors import UnsupportedError  # noqa: E402
from onward.exporters import from_tflite  # noqa: E402

RNG = np.random.default_rng(0)
RANDOM = {
    "RANDOM_UNIFORM": ([np.int32([300, 40])], np.float32, 0.5, 12**-0.5),
    "RANDOM_STANDARD_NORMAL": ([np.int32([300, 40])], np.float32, 0.0, 1.0),
    "MULTINOMIAL": ([np.log(np.float32([[0.25, 0.5, 0.25]])), (np.int32(9000),)], np.int64, 1.0, 0.5**0.5),
}
"""Inputs, the dtype of the result, and what its mean and spread should be."""


def agree(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        if b.dtype.kind == "O":
            assert a.tolist() == [item.decode() for item in b.tolist()]
            continue
        assert a.dtype == b.dtype
        if b.dtype.kind in "fc":
            finite = b[np.isfinite(b)]
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6 * np.abs(finite).max(initial=1))
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_floats(name: str) -> None:
    function, *arrays = FUNCTIONS[name]
    lite = converted(function, arrays)
    assert name.split()[0] in op_types(lite)
    agree(on_runtime(lite, *arrays), interpreted(lite, *arrays))


@pytest.mark.parametrize(("name", "kind"), [*((name, "int8") for name in INT8), *((name, "int16") for name in INT16)])
def test_quantised(name: str, kind: str) -> None:
    """Ends are floats; within one step of the scale that the result had as integers."""
    function, *arrays = FUNCTIONS[name]
    lite = converted(function, arrays, kind)
    wanted, found = interpreted(lite, *arrays, delegates=False), on_runtime(lite, *arrays)
    assert len(found) == len(wanted)
    for a, b, step in zip(found, wanted, steps(lite), strict=True):
        if step is None:
            agree([a], [b])
        else:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.abs(a.astype(float) - b.astype(float)).max(initial=0) <= 1.01 * step


@pytest.mark.parametrize("name", CASES)
def test_built(name: str) -> None:
    """What an op keeps for the next call comes out behind what the interpreter gives."""
    lite, arrays = CASES[name]()
    assert name.split()[0] in op_types(lite)
    wanted = interpreted(lite, *arrays)
    agree(on_runtime(lite, *arrays)[: len(wanted)], wanted)


@pytest.mark.parametrize("name", STABLEHLO)
def test_stablehlo(name: str) -> None:
    function, *arrays = STABLEHLO[name]
    lite = converted(function, arrays, "stablehlo")
    assert name.split()[0] in op_types(lite)
    agree(on_runtime(lite, *arrays), [np.asarray(function(*arrays))])


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers(name: str) -> None:
    """Of the same distribution, not the same numbers."""
    inputs, dtype, mean, spread = RANDOM[name]
    options = {"RandomOptions": {"seed": 1, "seed2": 2}}
    lite = single(name, inputs, [dtype], **options)
    arrays = [array for array in inputs if not isinstance(array, tuple)]
    (found,), (wanted,) = on_runtime(lite, *arrays), interpreted(lite, *arrays)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    for numbers in (found, wanted):
        assert abs(numbers.mean() - mean) < 0.05
        assert abs(numbers.std() - spread) < 0.05


W, K, D, M = (
    RNG.normal(size=shape).astype(np.float32) for shape in ((32, 64), (3, 3, 32, 40), (3, 3, 32, 4), (2, 32, 40))
)
ROWS, IMAGE = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 4, 32), (2, 9, 8, 32)))
HYBRID: dict[str, tuple[Any, Any]] = {
    "FULLY_CONNECTED": (lambda x: tf.matmul(x, W) + 1.0, ROWS[0]),
    "FULLY_CONNECTED 3d": (lambda x: tf.tensordot(x, W, 1), ROWS),
    "CONV_2D": (lambda x: tf.nn.conv2d(x, K, 1, "SAME"), IMAGE + 1),
    "CONV_2D pointwise": (lambda x: tf.nn.conv2d(x, K[:1, :1], 1, "SAME"), IMAGE),
    "CONV_2D strided": (lambda x: tf.nn.conv2d(x, K[:1, :1], 2, "SAME"), IMAGE),
    "DEPTHWISE_CONV_2D": (lambda x: tf.nn.depthwise_conv2d(x, D, [1, 1, 1, 1], "SAME"), IMAGE),
    "BATCH_MATMUL": (lambda x: tf.matmul(x, M), ROWS),
    "TRANSPOSE_CONV": (lambda x: tf.nn.conv2d_transpose(x, K.transpose(0, 1, 3, 2), [2, 18, 16, 40], 2), IMAGE),
}


@pytest.mark.parametrize("name", HYBRID)
def test_floats_beside_weights_of_8_bits(name: str) -> None:
    """Much nearer to the interpreter than the interpreter is to the numbers without any rounding."""
    function, x = HYBRID[name]
    lite = converted(function, [x], "weights")
    assert name.split()[0] in op_types(lite)
    (found,), (wanted,) = on_runtime(lite, x), interpreted(lite, x)
    off = np.abs(function(x).numpy() - wanted).max()
    assert off > 0.05
    assert np.abs(found - wanted).max() < 1e-3 * off


def test_bits_of_int8_typed_as_uint8_in_a_layer_before_softmax() -> None:
    """Zero points go unread, as in the kernels, and so do all scales of filters but the first."""
    for zero in (0, 7, 128):
        lite = of_old_converters(converted(lambda x: tf.nn.softmax(tf.matmul(x, W)), [ROWS[0]], "weights"), zero)
        agree(on_runtime(lite, ROWS[0]), interpreted(lite, ROWS[0]))
        lite = of_old_converters(converted(*HYBRID["CONV_2D"][:1], [IMAGE], "weights"), zero)
        agree(on_runtime(lite, IMAGE), interpreted(lite, IMAGE))


@pytest.mark.parametrize("name", [name for name in CASES if "hybrid" in name])
def test_bits_of_int8_typed_as_uint8(name: str) -> None:
    lite, arrays = CASES[name]()
    lite = of_old_converters(lite)
    wanted = interpreted(lite, *arrays)
    agree(on_runtime(lite, *arrays)[: len(wanted)], wanted)


def test_uint8_beside_floats_where_bits_are_what_they_say() -> None:
    """One table: rows of it signed, and all of it and rows of it as plain uint8 that is dequantised."""
    table, rows = RNG.integers(0, 256, (4, 6), np.uint8), np.int32([2, 0])
    flat = Flat()
    graph = flat.graph()
    held, asked = graph.constant(table, scale=0.5), graph.input(rows)
    (chosen,) = graph.op("GATHER", [held, asked], [(np.uint8, (2, 6), 0.5)], GatherOptions={})
    graph.output(*graph.op("EMBEDDING_LOOKUP", [asked, held], [(np.float32, (2, 6))]))
    graph.output(*graph.op("DEQUANTIZE", [held], [(np.float32, (4, 6))]))
    graph.output(*graph.op("DEQUANTIZE", [chosen], [(np.float32, (2, 6))]))
    lite = flat.bytes()
    found = on_runtime(lite, rows)
    agree(found, interpreted(lite, rows))
    agree(found, [table.view(np.int8)[rows] * np.float32(0.5), table * np.float32(0.5), table[rows] * np.float32(0.5)])


@pytest.mark.parametrize("name", ["DEPTHWISE_CONV_2D", "BATCH_MATMUL", "TRANSPOSE_CONV"])
def test_uint8_that_no_kernel_reads(name: str) -> None:
    function, x = HYBRID[name]
    with pytest.raises(UnsupportedError, match="weights of uint8 beside floats, which TensorFlow Lite has no kernel"):
        from_tflite(of_old_converters(converted(function, [x], "weights")))


@pytest.mark.parametrize("op_type", ["FULLY_CONNECTED", "BATCH_MATMUL"])
def test_int8_beside_floats_is_rounded_as_by_the_default_kernels(op_type: str) -> None:
    """Those of XNNPACK, which do not look at the option for it."""
    x, weight = (ROWS[0], W.T) if op_type == "FULLY_CONNECTED" else (ROWS, M)
    flat = Flat()
    graph = flat.graph()
    scale = np.abs(weight).max() / 127
    held = graph.constant(np.round(weight / scale).astype(np.int8), scale=scale)
    options = {"FULLY_CONNECTED": "FullyConnectedOptions", "BATCH_MATMUL": "BatchMatMulOptions"}[op_type]
    graph.output(*graph.op(op_type, [graph.input(x), held], [np.float32], **{options: {}}))
    agree(on_runtime(flat.bytes(), x), interpreted(flat.bytes(), x))


NAN = np.float32([[np.nan, np.inf, -np.inf, -0.0], [0, 1, -1, np.nan], [7, np.nan, -7, 0.5]])
OTHER = np.float32([[1, np.nan, -np.inf, 0.0], [np.nan, np.nan, -1, 2], [np.inf, 0, np.nan, 0.5]])


@pytest.mark.parametrize(
    "op_type",
    ["MAXIMUM", "MINIMUM", "SIGN", "RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "ABS", "ATAN2", "EQUAL"],
)
def test_what_is_no_number(op_type: str) -> None:
    functions = {
        "MAXIMUM": tf.maximum, "MINIMUM": tf.minimum, "SIGN": tf.sign, "RELU": tf.nn.relu, "RELU6": tf.nn.relu6,
        "LEAKY_RELU": tf.nn.leaky_relu, "LOGISTIC": tf.sigmoid, "TANH": tf.tanh, "ABS": tf.abs, "ATAN2": tf.atan2,
        "EQUAL": tf.equal,
    }  # fmt: skip
    arrays = [NAN, OTHER] if op_type in ("MAXIMUM", "MINIMUM", "ATAN2", "EQUAL") else [NAN]
    lite = converted(functions[op_type], arrays)
    agree(on_runtime(lite, *arrays), interpreted(lite, *arrays))


def all_ops() -> set[str]:
    return {name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}


def test_every_builtin_op_is_tried_or_refused() -> None:
    tried = {name.split()[0] for name in (*FUNCTIONS, *STABLEHLO, *CASES, *RANDOM)}
    assert tried | set(REFUSED) == all_ops()
    assert not tried & set(REFUSED)
    assert len(tried) >= 0.9 * len(all_ops())


@pytest.mark.parametrize("op_type", sorted(set(REFUSED) - {"CUSTOM"}))
def test_what_is_refused_is_named(op_type: str) -> None:
    lite = single(op_type, [NAN], [np.float32])
    with pytest.raises(UnsupportedError, match=rf"no rule for 1 op: {op_type} \("):
        from_tflite(lite)
    if REFUSED[op_type] == NO_KERNEL:
        with pytest.raises(ValueError, match=f"Didn't find op for builtin opcode '{op_type}'"):
            tf.lite.Interpreter(model_content=lite)
