import math
import time

import ml_dtypes
import numpy as np
import pytest

from onward.verification.compare import FEW, NOISE_FACTOR, STEPS_OVERALL, Error, compare, differences, floor, measure
from onward.verification.pairs import renamed
from onward.verification.results import OutputResult

RNG = np.random.default_rng(0)
FLOATS = RNG.standard_normal((4, 5)).astype(np.float32)
IMAGE = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)


def only(expected, actual, noise=None, **options) -> OutputResult:
    """The one result for two arrays."""
    (result,) = compare({"y": expected}, {"y": actual}, noise, **options)
    return result


def array(*values, dtype=np.float32) -> np.ndarray:
    return np.array(values, dtype)


def test_rounding_is_no_difference() -> None:
    result = only(FLOATS, FLOATS * np.float32(1 + 1e-6))
    assert result.status == "same" and result.kind == "" and result.reason == ""
    assert result.dtype == "float32" and result.shape == (4, 5)
    assert result.tolerance.why == "the floor of float32"


@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        (lambda y: y * np.float32(1.001), "values", "worst error 0.000"),
        (lambda y: y[:, :4], "shape", "shape [4, 4] instead of [4, 5]"),
        (lambda y: y.reshape(2, 10), "shape", "instead of [4, 5]; the values agree"),
        (lambda y: y[None], "shape", "shape [1, 4, 5] instead of [4, 5]; the values agree"),
        (lambda y: y.astype(np.float64), "dtype", "float64 instead of float32; the values agree"),
        (lambda y: y.astype(np.float64) + 1, "dtype", "float64 instead of float32, and other values"),
        (lambda y: np.where(y == y.max(), np.nan, y).astype(np.float64), "dtype", "and other values"),
        (lambda y: y.astype(np.complex64), "dtype", "complex64 instead of float32"),
        (lambda y: np.where(y == y.max(), np.nan, y).astype(np.float32), "nan", "1 of 20 elements are NaN"),
        (lambda y: np.where(y == y.max(), np.inf, y).astype(np.float32), "infinite", "1 of 20 elements are infinite"),
        (lambda y: np.full_like(y, 0.5), "constant", "every element is 0.5"),
        (lambda y: None, "type", "nothing instead of a tensor"),
        (lambda y: [y], "type", "a sequence instead of a tensor"),
        (lambda y: {"a": y}, "type", "a map instead of a tensor"),
        (lambda y: y.astype(str).astype(object), "type", "strings instead of a tensor"),
        (lambda y: y.T, "layout", "transposed by [1, 0] it is the same; the values agree"),
    ],
)
def test_each_kind_of_difference_is_told_apart(change, kind, reason) -> None:
    result = only(FLOATS, change(FLOATS))
    assert (result.status, result.kind) == ("different", kind)
    assert reason in result.reason
    assert differences([result]) == [f"y: {result.reason}"]


def test_patterns_of_nan_and_infinity() -> None:
    expected = array(np.nan, 1, np.inf, -np.inf, 5)
    assert only(expected, expected.copy()).status == "same"
    gone = only(expected, array(0, 1, np.inf, -np.inf, 5))
    assert gone.kind == "nan" and gone.reason == "1 of 5 that are NaN in the source are not"
    assert (gone.index, gone.expected, gone.actual) == ((0,), "nan", "0.0")
    sign = only(expected, array(np.nan, 1, np.inf, np.inf, 5))
    assert (sign.kind, sign.reason, sign.index) == ("infinite", "infinities of the other sign", (3,))
    large = only(expected, array(np.nan, 1, 3e38, -np.inf, 5))
    assert (large.kind, large.index) == ("infinite", (2,))
    off = only(expected, array(np.nan, 1, np.inf, -np.inf, 6))
    assert off.kind == "values" and off.metrics.max_abs == 1 and off.index == (4,)


def test_metrics_of_floats_by_hand() -> None:
    # rms of expected: sqrt((9 + 16 + 0 + 0) / 4) = 2.5; differences: 0.5, 0, 0, 1
    expected, actual = array(3, -4, 0, 0), array(3.5, -4, 0, 1)
    result = only(expected, actual)
    found = result.metrics
    assert found.worst == pytest.approx(1 / 2.5)
    assert found.overall == pytest.approx(math.sqrt(1.25 / 4) / 2.5)
    assert found.max_abs == 1
    assert found.max_abs_over_scale == 0.25
    assert found.mismatched == 0.5
    assert found.cosine == pytest.approx((10.5 + 16) / (5 * math.sqrt(3.5**2 + 16 + 1)))
    assert found.snr_db == pytest.approx(10 * math.log10(25 / 1.25))
    assert found.max_ulp == array(1).view(np.int32)[0]
    assert (found.max_steps, found.top1, found.top5) == (None, None, None)
    assert (result.index, result.expected, result.actual) == ((3,), "0.0", "1.0")


def test_equal_arrays_have_no_distance() -> None:
    result = only(FLOATS, FLOATS.copy())
    found = result.metrics
    assert (found.worst, found.overall, found.max_abs, found.mismatched, found.max_ulp) == (0, 0, 0, 0, 0)
    assert found.cosine == pytest.approx(1) and found.snr_db == math.inf
    assert result.index is None and result.expected == ""


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_ulps_count_the_representable_values_between(dtype) -> None:
    one, eps = np.ones(2, dtype), float(ml_dtypes.finfo(dtype).eps)
    more = np.array([1 + 3 * eps, 1], dtype)
    assert only(one, more).metrics.max_ulp == 3
    assert only(-one, -more).metrics.max_ulp == 3
    tiny = np.array([float(ml_dtypes.finfo(dtype).smallest_subnormal), 1], dtype)
    assert only(tiny, tiny * np.array([-1, 1], dtype)).metrics.max_ulp == 2


def test_the_histogram_counts_every_element_once() -> None:
    expected = np.full(10, 2, np.float32)
    off = array(0, 0, 0, 3e-5, 3e-3, 3e-3, 0.3, 30, 1e4, 1e-30)
    edges, counts = only(expected, expected + off).histogram
    assert len(edges) == len(counts) + 1 and sum(counts) == 10
    found = dict(zip(edges, counts, strict=False))
    assert counts[0] == 4  # the exactly equal; 1e-30 is lost in the addition
    assert (found[-5], found[-3], found[-1]) == (1, 2, 1)  # half of 3e-5, of 3e-3, of 0.3
    assert counts[-1] == 2


def test_the_worst_element_is_named() -> None:
    broken = IMAGE.copy()
    broken[1, 2, 3, 4] += 1
    result = only(IMAGE, broken)
    assert result.index == (1, 2, 3, 4)
    assert (result.expected, result.actual) == (str(IMAGE[1, 2, 3, 4]), str(broken[1, 2, 3, 4]))


def test_the_worst_of_many_elements_is_found_in_any_part() -> None:
    expected = RNG.standard_normal(200_000).astype(np.float32)
    broken = expected.copy()
    broken[199_999] += 1
    result = only(expected, broken)
    assert result.index == (199_999,) and result.metrics.mismatched == pytest.approx(1 / 200_000)


def test_an_element_near_zero_does_not_dominate_and_a_large_one_hides_nothing() -> None:
    assert only(array(1e-9, 1, 1), array(1.01e-7, 1, 1)).status == "same"
    assert only(array(1e4, 1, 1), array(1e4, 10, 1)).status == "different"


@pytest.mark.parametrize("fill", [-1e4, -1e9, np.finfo(np.float32).min])
def test_a_value_that_fills_what_is_masked_hides_nothing(fill) -> None:
    expected = np.where(np.arange(20).reshape(4, 5) % 3, FLOATS / 10, np.float32(fill)).astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = expected * np.float32(1 - 1e-6)
    assert only(expected, rounded).status == "same"
    broken = expected.copy()
    broken[0, 1] += 0.01
    for noise in (None, measure({"y": expected}, {"y": rounded})):
        result = only(expected, broken, noise)
        assert result.status == "different" and result.index == (0, 1)
    assert only(expected, np.where(expected == np.float32(fill), -7, expected).astype(np.float32)).status == "different"


def test_a_quiet_output_is_measured_by_what_it_is_on_ordinary_data() -> None:
    quiet, other = array(1e-17, -2e-17), array(-3e-17, 4e-17)
    assert only(quiet, other).status == "different"
    assert only(quiet, other, {"y": Error(scale=1.0)}).status == "same"
    assert only(array(1, 2), array(1.001, 2), {"y": Error(scale=1.0)}).status == "different"


def test_a_single_element_may_be_off_by_more_than_all_of_them() -> None:
    expected = np.ones(10_000, np.float32)
    one = expected.copy()
    one[7] += 1.5e-4
    assert only(expected, one).status == "same"
    assert only(expected, expected + np.float32(1.5e-4)).status == "different"
    one[7] += 1e-3
    assert only(expected, one).status == "different"


def test_tolerance_follows_the_noise_of_the_source() -> None:
    expected = RNG.standard_normal(10_000).astype(np.float32)
    noise = measure({"y": expected}, {"y": expected * np.float32(1.01)})
    same = only(expected, expected * np.float32(0.99), noise)
    assert same.status == "same" and same.tolerance.why == "4 × the source's own noise"
    assert same.tolerance.noise_overall == pytest.approx(0.01, rel=1e-3)
    assert only(expected, expected * np.float32(1 - 0.012 * NOISE_FACTOR), noise).status == "different"


def test_a_noise_measured_on_few_elements_is_trusted_less() -> None:
    noise = Error(worst=0.001, overall=0.001, samples=FEW)
    allowed = only(array(1.0), array(1.0), {"y": noise}).tolerance
    assert allowed.factor == pytest.approx(NOISE_FACTOR * math.sqrt(2))
    many = only(array(1.0), array(1.0), {"y": Error(0.001, 0.001, samples=10**6)}).tolerance
    assert many.factor == pytest.approx(NOISE_FACTOR, rel=1e-3)


@pytest.mark.parametrize("noise", [Error(math.inf, math.inf), Error(math.nan, math.nan)])
def test_a_source_that_cannot_be_compared_with_itself_excuses_nothing(noise) -> None:
    assert only(FLOATS, FLOATS * np.float32(1.001), {"y": noise}).status == "different"


def test_no_noise_excuses_a_result_that_has_nothing_in_common() -> None:
    assert only(FLOATS, -FLOATS, {"y": Error(9.0, 9.0)}).status == "different"


def test_noise_in_a_few_elements_does_not_excuse_a_small_error_in_all() -> None:
    expected = RNG.standard_normal((100, 100)).astype(np.float32)
    again = expected.copy()
    again[0, 0] += 1
    noise = measure({"y": expected}, {"y": again})
    assert only(expected, again, noise).status == "same"
    result = only(expected, expected * np.float32(1.1), noise)
    assert result.status == "different" and result.metrics.worst < noise["y"].worst


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, object])
def test_what_is_no_float_must_be_equal(dtype) -> None:
    expected = np.array([1, 0, 1, 1]).astype(dtype) if dtype is not object else np.array(["a", "b", "c", ""], object)
    broken = expected.copy()
    broken[0] = broken[1]
    assert only(expected, expected.copy()).status == "same"
    result = only(expected, broken)
    assert result.kind == "values" and result.index == (0,)
    assert result.metrics.worst == result.metrics.overall == result.metrics.mismatched == 0.25
    assert (result.expected, result.actual) == (str(expected[0]), str(expected[1]))


def test_an_arg_max_that_flips_is_excused_by_noise_alone() -> None:
    assert only(array(7, dtype=np.int64), array(8, dtype=np.int64)).status == "different"
    flips = measure({"y": array(7, dtype=np.int64)}, {"y": array(9, dtype=np.int64)})
    assert only(array(7, dtype=np.int64), array(8, dtype=np.int64), flips).status == "same"
    many = np.arange(100)
    seldom = {"y": Error(0.01, 0.01, samples=10_000)}
    assert only(many, np.where(many < 3, 0, many), seldom).status == "same"
    assert only(many, np.where(many < 9, 0, many), seldom).status == "different"
    assert only(many, many[::-1], {"y": Error(1.0, 1.0, samples=10_000)}).status == "different"


def test_quantized_outputs_are_compared_in_steps() -> None:
    expected = np.arange(200, dtype=np.uint8)
    rounded = expected.copy()
    rounded[:15] += 1
    assert only(expected, rounded).status == "different"
    result = only(expected, rounded, quantized=["y"])
    assert result.status == "same" and result.metrics.max_steps == 1 and result.metrics.overall == 15 / 200
    assert result.tolerance.why == "one step of a quantised output"
    assert only(expected, expected + np.uint8(1), quantized=["y"]).status == "different"
    assert 15 / 200 < STEPS_OVERALL < 1
    rounded[0] += 4
    far = only(expected, rounded, quantized=["y"])
    assert far.status == "different" and far.metrics.max_steps == 5 and far.index == (0,)
    noise = measure({"y": expected}, {"y": rounded}, quantized=["y"])
    assert noise["y"].steps and noise["y"].worst == 5
    assert only(expected, rounded, noise).status == "same"
    assert only(np.array([0, 255], np.uint8), np.array([255, 255], np.uint8), quantized=["y"]).metrics.max_steps == 255


def test_atol_and_rtol_decide_where_they_are_given() -> None:
    expected, actual = array(100, 1, 0), array(101, 1, 0.02)
    noise = {"y": Error(1.0, 1.0)}
    assert only(expected, actual, noise, atol=0.03, rtol=0.01).status == "same"
    result = only(expected, actual, noise, atol=0.01, rtol=0.011)
    assert result.status == "different" and result.metrics.mismatched == pytest.approx(1 / 3)
    assert result.closeness == pytest.approx(2, rel=1e-3)
    assert result.tolerance.why == "as given: |difference| ≤ 0.01 + 0.011 × |expected|"
    assert only(expected, actual, rtol=0.5).status == "different"
    assert only(expected, expected, atol=0).status == "same"
    assert only(np.arange(3), np.arange(3) + 1, atol=1).status == "same"
    assert only(FLOATS, np.full_like(FLOATS, np.nan), atol=1e9).kind == "nan"


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_are_not_rounded(dtype) -> None:
    top = np.iinfo(dtype).max
    for number in (2**53, int(top) - 1):
        result = only(array(5, number, dtype=dtype), array(5, number + 1, dtype=dtype), atol=0.5)
        assert result.status == "different" and result.index == (1,) and result.metrics.max_abs == 1
    assert only(array(np.iinfo(dtype).min, dtype=dtype), array(top, dtype=dtype)).metrics.max_abs > 1e18


def test_numbers_in_a_map_are_single_precision() -> None:
    value = float(np.float32(0.1))
    close = float(np.nextafter(np.float32(0.1), np.float32(1)))
    for wrap in (lambda x: {7: x}, lambda x: [{7: x}, {7: x}]):
        result = only(wrap(value), wrap(close))
        assert (result.status, result.dtype) == ("same", "float32")
        assert only(wrap(value), wrap(np.float32(close))).status == "same"
    assert only({7: 0.1}, {7: 0.1 + 1e-9}).dtype == "float64"
    assert only({7: 0.1}, {7: 0.1 + 1e-9}).status == "different"


def test_logits_tell_how_often_the_best_class_agrees() -> None:
    expected = np.tile(np.arange(10, dtype=np.float32), (4, 1))
    actual = expected.copy()
    actual[0, 3] = 100  # the best class is second now
    actual[1, :5] = 100  # and sixth here
    found = only(expected, actual).metrics
    assert (found.top1, found.top5) == (0.5, 0.75)
    assert only(expected[:, :4], actual[:, :4]).metrics.top1 is None
    assert only(expected[0], actual[0]).metrics.top1 is None


def test_outputs_that_are_swapped_are_recognised() -> None:
    results = compare({"a": FLOATS, "b": FLOATS + 1, "c": FLOATS}, {"a": FLOATS + 1, "b": FLOATS, "c": FLOATS})
    assert [(r.name, r.kind) for r in results] == [("a", "order"), ("b", "order"), ("c", "")]
    assert "the other side's 'b'" in results[0].reason
    one = compare({"a": FLOATS, "b": FLOATS + 1}, {"a": FLOATS + 1, "b": FLOATS + 1})
    assert [r.kind for r in one] == ["values", ""], "a right output is not what another one was mixed up with"


def test_outputs_are_matched_by_name_else_by_position() -> None:
    assert all(r.status == "same" for r in compare({"a": FLOATS, "b": IMAGE}, {"b": IMAGE, "a": FLOATS}))
    results = compare({"a": FLOATS, "b": IMAGE}, {"Identity": FLOATS, "Identity_1": IMAGE})
    assert [(r.name, r.status) for r in results] == [("a", "same"), ("b", "same")]
    assert [result.reason for result in results] == ["", ""]
    mixed = compare({"a": FLOATS, "b": IMAGE}, {"b": FLOATS, "a": IMAGE}, matched="position")
    assert all(r.status == "same" for r in mixed)
    missing = compare({"a": FLOATS, "b": IMAGE}, {"b": IMAGE})
    assert [(r.name, r.kind) for r in missing] == [("a", "missing"), ("b", "")]
    assert "it has b" in missing[0].reason
    more = compare({"a": FLOATS}, {"a": FLOATS, "z": IMAGE})
    assert [(r.name, r.kind) for r in more] == [("a", ""), ("z", "unexpected")]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (["Identity", "Identity_1"], {"boxes.1": "Identity", "scores": "Identity_1"}),
        (["0", "1"], {}),  # no names, but positions
        (["boxes_1:0", "Scores"], {}),  # spelled otherwise
        (["boxes.1", "head"], {}),  # only one is left to match
        (["1", "0"], {"boxes.1": "1", "scores": "0"}),
    ],
)
def test_other_names_are_told_where_a_match_by_position_could_be_wrong(others: list[str], told: dict[str, str]) -> None:
    assert renamed(["boxes.1", "scores"], others) == told


@pytest.mark.parametrize(
    ("shape", "order", "words"),
    [
        ((2, 3, 4, 5), (0, 2, 3, 1), "NHWC instead of NCHW"),
        ((2, 3, 4, 5), (0, 3, 1, 2), "NCHW instead of NHWC"),
        ((2, 4, 4, 4), (0, 2, 3, 1), "NHWC instead of NCHW"),
        ((2, 3, 4), (0, 2, 1), "NLC instead of NCL"),
        ((2, 3, 4, 5, 6), (0, 2, 3, 4, 1), "NDHWC instead of NCDHW"),
        ((2, 3, 4, 5), (3, 2, 1, 0), "transposed by [3, 2, 1, 0]"),
    ],
)
def test_a_layout_is_recognised(shape, order, words) -> None:
    expected = RNG.standard_normal(shape).astype(np.float32)
    result = only(expected, expected.transpose(order) * np.float32(1 + 1e-6))
    assert result.kind == "layout" and words in result.reason
    assert only(expected, expected.transpose(order) * np.float32(1.5)).kind in ("shape", "values")


def test_sequences_and_maps_are_compared_element_by_element() -> None:
    rows = [{"cat": 0.25, "dog": 0.75}, {"cat": 0.5, "dog": 0.5}]
    expected = {"s": [FLOATS, IMAGE], "m": rows, "o": None, "t": {1: FLOATS}}
    again = {"s": [FLOATS, IMAGE], "m": [dict(reversed(row.items())) for row in rows], "o": None, "t": {1: FLOATS}}
    assert all(r.status == "same" for r in compare(expected, again))
    broken = {"s": [FLOATS, IMAGE + 1], "m": [{**rows[0], "cat": 0.5}, rows[1]], "o": FLOATS, "t": {2: FLOATS}}
    wrong = {r.name: r.kind for r in compare(expected, broken) if r.status != "same"}
    assert wrong == {"s[1]": "values", "m['cat']": "values", "o": "type", "t[1]": "missing", "t[2]": "unexpected"}
    (short,) = compare({"s": [FLOATS]}, {"s": []})
    assert short.kind == "shape" and short.reason == "a sequence of 0 instead of 1"
    assert [r.status for r in compare({"s": []}, {"s": []})] == ["same"]


def test_the_noise_of_a_sequence_holds_at_any_position() -> None:
    noise = {"s[]": Error(0.1, 0.1, samples=1000)}
    results = compare({"s": [FLOATS, FLOATS]}, {"s": [FLOATS, FLOATS * np.float32(1.1)]}, noise)
    assert [r.status for r in results] == ["same", "same"]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_have_a_wider_floor(dtype) -> None:
    expected = FLOATS.astype(dtype)
    step = float(ml_dtypes.finfo(dtype).eps)
    assert only(expected, (FLOATS * (1 + step)).astype(dtype)).status == "same"
    assert only(expected, (FLOATS * 3).astype(dtype)).status == "different"
    assert floor(np.dtype(dtype)) > floor(np.dtype(np.float32)) > floor(np.dtype(np.float64)) > 0


def test_complex_numbers() -> None:
    expected = (IMAGE + 1j * IMAGE[::-1]).astype(np.complex64)
    broken = expected.copy()
    broken[1, 0, 2, 3] += 1j
    assert only(expected, expected * np.complex64(1 + 1e-6)).status == "same"
    assert only(expected, broken).index == (1, 0, 2, 3)


@pytest.mark.parametrize("shape", [(0, 3), (), (1,)])
def test_small_and_empty_outputs(shape) -> None:
    zero = np.zeros(shape, np.float32)
    assert only(zero, zero).status == "same"
    assert only(zero + 1, zero + 1).status == "same"
    assert only(zero, zero + np.float32(1e-3)).status == ("same" if zero.size == 0 else "different")


def test_values_whose_squares_overflow() -> None:
    huge = np.array([1e300, -1e300, 1.0])
    assert only(huge, huge.copy()).metrics.overall == 0
    assert only(huge, huge * 1.1).status == "different"
    assert only(huge, huge * (1 + 1e-15)).status == "same"


def test_a_large_output_takes_no_time() -> None:
    expected = RNG.standard_normal((64, 50_000)).astype(np.float32)
    actual = expected * np.float32(1 + 1e-6)
    start = time.perf_counter()
    assert only(expected, actual).metrics.top1 == 1
    assert time.perf_counter() - start < 2
