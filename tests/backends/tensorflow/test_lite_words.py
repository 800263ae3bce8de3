"""What TensorFlow Lite is told in other words than TensorFlow: loops, Erf, sizes that are open, places by index."""

import importlib.util
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

from onward.backends.tensorflow.convert import has_rule, load_rules
from onward.backends.tensorflow.lite.sizes import fit_in_single
from onward.backends.tensorflow.tflite import convert, generate_for_tflite
from onward.errors import UnsupportedError
from onward.model import Model, load
from onward.passes.pipelines import canonical
from onward.runners.onnxruntime import session

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("TensorFlow is not installed", allow_module_level=True)
import tensorflow as tf

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(0)


def parsed(text: str, **weights: Array) -> Model:
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return load(proto)


def lite(model: Model) -> Any:
    """What calls the TensorFlow Lite file of a model, by the names of its inputs."""
    content = convert(generate_for_tflite(model), model.ir.graph)
    return tf.lite.Interpreter(model_content=content).get_signature_runner()


def check(model: Model, *feeds: dict[str, Array], atol: float = 1e-5) -> None:
    """That the results are those of ONNX Runtime, of the same file for all feeds."""
    runner, referee = lite(model), session(model)
    names = [value.name for value in model.ir.graph.outputs]
    for feed in feeds:
        found = runner(**feed)
        for name, right in zip(names, referee.run(None, feed), strict=True):
            assert found[name].shape == right.shape
            np.testing.assert_allclose(found[name], right, rtol=1e-5, atol=atol)


def floats(*dims: int) -> Array:
    return RNG.standard_normal(dims).astype(np.float32)


def test_a_recurrent_layer_over_any_number_of_sequences_of_any_length() -> None:
    """32 rows are a block: fewer, one block, and blocks of which the last one is not full."""
    model = parsed(
        """g (float[t, b, 3] x, int32[b] lengths) => (float[t, 2, b, 4] y, float[2, b, 4] h, float[2, b, 4] c) {
            y, h, c = LSTM<hidden_size = 4, direction = "bidirectional">(x, w, r, bias, lengths)
        }""",
        w=floats(2, 16, 3),
        r=floats(2, 16, 4),
        bias=floats(2, 32),
    )
    sizes = [(1, 2), (32, 1), (70, 3)]
    feeds = [{"x": floats(t, b, 3), "lengths": RNG.integers(1, t + 1, b).astype(np.int32)} for t, b in sizes]
    check(model, *feeds)


def test_a_recurrent_layer_of_known_sizes() -> None:
    model = parsed(
        """g (float[40, 2, 3] x) => (float[40, 1, 2, 4] y, float[1, 2, 4] h) {
            y, h = GRU<hidden_size = 4, linear_before_reset = 1>(x, w, r)
        }""",
        w=floats(1, 12, 3),
        r=floats(1, 12, 4),
    )
    check(model, {"x": floats(40, 2, 3)})


LOOP = """g (float[n, m] x, {arguments}) => (float[n, m] last, float[t, n, m] rows) {{
    one = Constant<value = int64 {{1}}>()
    yes = Constant<value = bool {{1}}>()
    last, rows = Loop({call}, x)
        <body = step (int64 i, bool before, float[n, m] s) => (bool go, float[n, m] u, float[n, m] row) {{
        k = Cast<to = 1>(i)
        a = Mul(s, half)
        u = Add(a, k)
        row = Identity(u)
        {condition}
    }}>
}}"""


@pytest.mark.parametrize(
    ("arguments", "call", "condition", "counts"),
    [
        ("int64 count", "count, yes", "go = Identity(before)", [1, 5, 40]),
        ("int64 count", '"", yes', "go = Less(i, count)", [3, 31, 64]),
        ("int64 count", "hundred, yes", "go = Less(i, count)", [3, 70, 300]),
    ],
    ids=["counted", "until", "bounded"],
)
def test_a_loop_with_rows_of_a_size_that_is_open(
    arguments: str, call: str, condition: str, counts: Sequence[int]
) -> None:
    text = LOOP.format(arguments=arguments, call=call, condition=condition)
    model = parsed(text, half=np.float32(0.5), hundred=np.int64(100))
    check(model, *({"x": floats(2, n % 3 + 1), "count": np.array(n)} for n in counts))


@pytest.mark.parametrize("count", [20, 50])
def test_a_loop_with_rows_of_a_known_size(count: int) -> None:
    text = f"""g (float[2, 3] x) => (float[2, 3] last, float[{count}, 2, 3] rows) {{
        trips = Constant<value = int64 {{{count}}}>()
        last, rows = Loop(trips, "", x) <body = step (int64 i, bool before, float[2, 3] s)
            => (bool go, float[2, 3] u, float[2, 3] row) {{
            go = Identity(before)
            k = Cast<to = 1>(i)
            a = Mul(s, half)
            u = Add(a, k)
            row = Identity(u)
        }}>
    }}"""
    check(parsed(text, half=np.float32(0.5)), {"x": floats(2, 3)})


def test_erf_within_three_steps_of_single_precision() -> None:
    runner = lite(parsed("g (float[n] x) => (float[n] y) { y = Erf(x) }"))
    sizes = 10.0 ** RNG.uniform(-37, 1, 20_000)
    x = np.concatenate([np.linspace(-5, 5, 50_001), sizes, -sizes]).astype(np.float32)
    right = np.array([math.erf(v) for v in x.tolist()])
    found = runner(x=x)["y"]
    assert np.max(np.abs(found - right) / np.spacing(np.abs(right).astype(np.float32))) < 3
    assert abs(runner(x=np.array([1e-40], np.float32))["y"][0]) < 1.2e-38, "subnormal numbers may become zero"
    edges = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38], np.float32)
    found = runner(x=edges)["y"]
    np.testing.assert_array_equal(found, np.array([1, -1, np.nan, 0, 0, 1], np.float32))
    assert np.signbit(found[4]) and not np.signbit(found[3])


RESIZES = [
    'coordinate_transformation_mode = "asymmetric", nearest_mode = "floor", mode = "nearest"',
    'coordinate_transformation_mode = "half_pixel", nearest_mode = "round_prefer_ceil", mode = "nearest"',
    'coordinate_transformation_mode = "align_corners", mode = "linear"',
]


@pytest.mark.parametrize("how", RESIZES)
def test_an_image_that_is_resized_to_sizes_that_are_open(how: str) -> None:
    model = parsed(
        f"""g (float[1, 2, h, w] x, float[1, 2, k, l] like) => (float[1, 2, k, l] y) {{
            sizes = Shape(like)
            y = Resize<{how}>(x, , , sizes)
        }}"""
    )
    check(
        model, *({"x": floats(1, 2, *a), "like": floats(1, 2, *b)} for a, b in [((5, 7), (11, 4)), ((3, 8), (6, 24))])
    )


def test_a_range_whose_end_is_a_size() -> None:
    model = parsed(
        """g (float[n, m] x) => (float[k] y) {
            size = Shape<start = 0, end = 1>(x)
            scalar = Squeeze(size)
            whole = Cast<to = 11>(scalar)
            part = Div(whole, eight)
            up = Ceil(part)
            end = Cast<to = 1>(up)
            y = Range(zero, end, one)
        }""",
        eight=np.float64(8),
        zero=np.float32(0),
        one=np.float32(1),
    )
    check(model, {"x": floats(16, 1)}, {"x": floats(17, 2)})


@pytest.mark.parametrize(("op", "fits"), [("Ceil(a)", True), ("Mul(a, tenth)", False), ("Add(a, tenth)", False)])
def test_sizes_in_double_precision_stay_there_where_single_would_be_another_number(op: str, fits: bool) -> None:
    text = f"""g (float[n] x) => (int64[1] y) {{
        size = Shape(x)
        whole = Cast<to = 11>(size)
        a = Div(whole, three)
        b = {op}
        y = Cast<to = 7>(b)
    }}"""
    load_rules()
    model = parsed(text, three=np.float64(3), tenth=np.float64(0.1))
    assert fit_in_single(canonical(model, has_rule)) is fits


def test_axes_that_go_after_others_have_changed_places() -> None:
    model = parsed(
        """g (float[n, 3, 1, w] x) => (float[w, n, 8] y) {
            a = Conv<kernel_shape = [1, 1]>(x, kernel)
            b = Squeeze(a, two)
            y = Transpose<perm = [2, 0, 1]>(b)
        }""",
        kernel=floats(8, 3, 1, 1),
        two=np.array([2]),
    )
    check(model, {"x": floats(2, 3, 1, 5)}, {"x": floats(1, 3, 1, 9)})


def test_an_axis_that_is_added_and_goes_again() -> None:
    model = parsed(
        """g (float[n, t, 3, 4] x) => (float[3, n, t, 4] y) {
            a = Unsqueeze(x, zero)
            b = Transpose<perm = [3, 1, 2, 0, 4]>(a)
            y = Squeeze(b, last)
        }""",
        zero=np.array([0]),
        last=np.array([-2]),
    )
    check(model, {"x": floats(2, 5, 3, 4)})


@pytest.mark.parametrize("reduction", ["none", "max", "min"])
def test_rows_that_are_placed_by_index_and_none(reduction: str) -> None:
    model = parsed(
        f"""g (float[n, 3] x, int64[k, 1] places, float[k, 3] rows) => (float[n, 3] y) {{
            y = ScatterND<reduction = "{reduction}">(x, places, rows)
        }}"""
    )
    some = {"x": floats(6, 3), "places": np.array([[4], [-6]]), "rows": floats(2, 3)}
    none = {"x": floats(6, 3), "places": np.zeros((0, 1), np.int64), "rows": floats(0, 3)}
    check(model, some, none)


def test_boxes_of_any_number() -> None:
    model = parsed(
        """g (float[1, n, 4] boxes, float[1, 2, n] scores) => (int64[k, 3] y) {
            y = NonMaxSuppression(boxes, scores, most, overlap, least)
        }""",
        most=np.int64(5),
        overlap=np.float32(0.4),
        least=np.float32(0.2),
    )
    feeds = []
    for n in (30, 2):
        corner = RNG.random((1, n, 2), np.float32)
        feeds.append({"boxes": np.concatenate([corner, corner + 0.3], -1), "scores": RNG.random((1, 2, n), np.float32)})
    check(model, *feeds)


def test_channels_stay_known_where_an_image_is_padded_by_sizes() -> None:
    model = parsed(
        """g (float[n, 4, h, w] x) => (float[n, 4, k, l] y) {
            shape = Shape<start = 2, end = 4>(x)
            rest = Mod(shape, three)
            sides = Concat<axis = 0>(zeros, rest)
            padded = Pad(x, sides)
            y = Conv<kernel_shape = [3, 3], group = 4>(padded, kernel)
        }""",
        three=np.array([3, 3]),
        zeros=np.zeros(6, np.int64),
        kernel=floats(4, 1, 3, 3),
    )
    check(model, {"x": floats(1, 4, 7, 8)}, {"x": floats(2, 4, 9, 5)})


def test_what_stays_refused_says_so() -> None:
    model = parsed("g (float16[n] a, float16[n] b) => (float16[n] y) { y = Mul(a, b) }")
    with pytest.raises(UnsupportedError, match=r"does not compute Mul in float16; .*computes it in float32"):
        lite(model)


def test_quotients_of_large_whole_numbers_are_exact() -> None:
    runner = lite(parsed("g (int64[n] a, int64[n] b) => (int64[n] y) { y = Div(a, b) }"))
    a = np.concatenate([RNG.integers(-(2**62), 2**62, 3000), RNG.integers(-50, 50, 3000)])
    b = np.concatenate([RNG.integers(1, 9, 1500), RNG.integers(-(2**40), 2**40, 1500), RNG.integers(1, 9, 3000)])
    b[b == 0] = 1
    b[::3] *= -1
    right = np.array(
        [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    )
    np.testing.assert_array_equal(runner(a=a, b=b)["y"], right)
