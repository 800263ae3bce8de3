import ml_dtypes
import numpy as np
import pytest

from onward.verify.compare import NOISE_FACTOR, compare, floor, measure

RNG = np.random.default_rng(0)
FLOATS = RNG.standard_normal((4, 5)).astype(np.float32)


def test_rounding_is_no_difference() -> None:
    assert compare({"y": FLOATS}, {"y": FLOATS * np.float32(1 + 1e-6)}) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda y: y * np.float32(1.001), "worst error 0.0"),
        (lambda y: y[:, :4], "shape"),
        (lambda y: y.astype(np.float64), "float64 instead of float32"),
        (lambda y: np.where(y == y.max(), np.nan, y).astype(np.float32), "NaN"),
        (lambda y: np.where(y == y.max(), np.inf, y).astype(np.float32), "infinite"),
        (lambda y: None, "nothing"),
        (lambda y: [y], "missing"),
    ],
)
def test_a_change_is_found_and_named(change, reason) -> None:
    differences = compare({"y": FLOATS}, {"y": change(FLOATS)})
    assert any(reason in str(difference) for difference in differences)


def test_the_worst_element_is_named() -> None:
    broken = FLOATS.copy()
    broken[2, 3] += 1
    (difference,) = compare({"y": FLOATS}, {"y": broken})
    assert difference.index == (2, 3)
    assert f"{broken[2, 3]} instead of {FLOATS[2, 3]}" in difference.reason


def test_an_element_near_zero_does_not_dominate_and_a_large_one_hides_nothing() -> None:
    expected = np.array([1e-9, 1.0, 1.0], np.float32)
    assert compare({"y": expected}, {"y": expected + np.array([1e-7, 0, 0], np.float32)}) == []
    expected = np.array([1e4, 1.0, 1.0], np.float32)
    assert compare({"y": expected}, {"y": np.array([1e4, 10.0, 1.0], np.float32)}) != []


def test_tolerance_follows_the_noise_of_the_source() -> None:
    again = {"y": FLOATS * np.float32(1.01)}
    noise = measure({"y": FLOATS}, again)
    assert compare({"y": FLOATS}, {"y": FLOATS * np.float32(0.99)}, noise) == []
    assert compare({"y": FLOATS}, {"y": FLOATS * np.float32(1 - 0.02 * NOISE_FACTOR)}, noise) != []


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, object])
def test_what_is_no_float_must_be_equal(dtype) -> None:
    expected = np.array([1, 0, 1, 1]).astype(dtype) if dtype is not object else np.array(["a", "b", "c", ""], object)
    broken = expected.copy()
    broken[0] = broken[1]
    assert compare({"y": expected}, {"y": expected.copy()}) == []
    (difference,) = compare({"y": expected}, {"y": broken})
    assert difference.error.worst == 0.25 and difference.index == (0,)


def test_sequences_and_maps_are_compared_element_by_element() -> None:
    expected = {"s": [FLOATS, FLOATS + 1], "m": [{"cat": 0.25, "dog": 0.75}], "o": None}
    assert compare(expected, {"s": [FLOATS, FLOATS + 1], "m": [{"dog": 0.75, "cat": 0.25}], "o": None}) == []
    names = [d.output for d in compare(expected, {"s": [FLOATS], "m": [{"cat": 0.5, "dog": 0.75}], "o": FLOATS})]
    assert names == ["m[0]['cat']", "o", "s.length", "s[1]"]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_have_a_wider_floor(dtype) -> None:
    expected = FLOATS.astype(dtype)
    step = float(ml_dtypes.finfo(dtype).eps)
    assert compare({"y": expected}, {"y": (FLOATS * (1 + step)).astype(dtype)}) == []
    assert compare({"y": expected}, {"y": (FLOATS * 3).astype(dtype)}) != []
    assert floor(np.dtype(dtype)) > floor(np.dtype(np.float32)) > floor(np.dtype(np.float64)) > 0


def test_an_empty_output_and_an_all_zero_one() -> None:
    empty, zero = np.zeros((0, 3), np.float32), np.zeros(3, np.float32)
    assert compare({"y": empty}, {"y": empty}) == []
    assert compare({"y": zero}, {"y": zero}) == []
    assert compare({"y": zero}, {"y": zero + np.float32(1e-3)}) != []


def test_noise_in_a_few_elements_does_not_excuse_a_small_error_in_all() -> None:
    expected = RNG.standard_normal((100, 100)).astype(np.float32)
    again = expected.copy()
    again[0, 0] += 1
    noise = measure({"y": expected}, {"y": again})
    assert compare({"y": expected}, {"y": again}, noise) == []
    (difference,) = compare({"y": expected}, {"y": expected * np.float32(1.1)}, noise)
    assert difference.error.worst < noise["y"].worst
