"""Elementwise ops: every dtype, edge values, broadcasting, numbers as literals.

Integers are compared with numpy, which has all dtypes and wraps as ONNX does; floats with ONNX Runtime where it has a
kernel.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from harness import check, literal, merged, node_model, source, to_torch

from onward.scoreboard.suite import prepare

SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]

integers = pytest.mark.parametrize("dtype", SIGNED + UNSIGNED, ids=lambda t: t.__name__)
floats = pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.__name__)

BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
    "Min": np.minimum,
    "Max": np.maximum,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}


class Batch:
    """Cases that are converted and run as one model; a fixed input is a Constant node."""

    def __init__(self, opset: int = 21) -> None:
        self._opset = opset
        self._parts: list[Any] = []
        self._expected: list[Any] = []

    def add(
        self, op: str, inputs: Sequence[Any], expected: Any = None, fixed: Sequence[int] = (), **attributes: Any
    ) -> None:
        self._parts.append(node_model(op, inputs, fixed=fixed, opset=self._opset, **attributes))
        self._expected.append(expected)

    def check(self) -> None:
        model, feeds = merged(self._parts)
        known = None if self._expected[0] is None else self._expected
        check(literal(model), feeds, expected=known)


def edges(dtype: Any, seed: int = 0) -> np.ndarray:
    """Twelve numbers: the ends of the dtype's range, zero, and random ones in between."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
        return rng.permutation(np.array([*special, *rng.standard_normal(6)])).astype(dtype)
    info = np.iinfo(dtype)
    inner = rng.integers(info.min, info.max, 6, dtype=dtype, endpoint=True)
    return rng.permutation(np.array([info.min, info.max, info.max - 1, 0, 1, 2, *inner], dtype=dtype))


def operands(dtype: Any) -> list[tuple[tuple[np.ndarray, np.ndarray], tuple[int, ...]]]:
    """Two tensors, broadcasting, a number on either side, a vector of one number; with the inputs that are fixed."""
    a, b = edges(dtype, 1).reshape(3, 4), edges(dtype, 2).reshape(3, 4)
    return [((a, b), ()), ((a, b[0]), ()), ((a, b[0, 1]), (1,)), ((a[2, 3], b), (0,)), ((a, b[2, 3:]), (1,))]


@integers
def test_integers_wrap_and_keep_their_order(dtype: Any) -> None:
    batch = Batch()
    with np.errstate(over="ignore"):
        for op, function in BINARY.items():
            for inputs, fixed in operands(dtype):
                batch.add(op, inputs, function(*inputs), fixed)
        x = edges(dtype)
        for op, unary in {"Abs": np.abs, "Sign": np.sign, "BitwiseNot": np.invert}.items():
            batch.add(op, [x], unary(x))
        if dtype in SIGNED:
            batch.add("Neg", [x], np.negative(x))
    batch.check()


@floats
def test_floats_at_their_edges(dtype: Any) -> None:
    batch = Batch()
    for op in ["Add", "Sub", "Mul", "Div", "Min", "Max", "Less", "Greater", "LessOrEqual", "Equal", "Pow"]:
        for inputs, fixed in operands(dtype):
            batch.add(op, inputs, None, fixed)
    batch.check()


@integers
def test_integer_division_rounds_towards_zero(dtype: Any) -> None:
    a = edges(dtype, 5)
    b = np.array([1, 2, 3, 5, 7, np.iinfo(dtype).max, 10, 100, 64, 2, 3, 4], dtype)
    if dtype in SIGNED:
        b[::2] *= -1
        a = np.where((a == np.iinfo(dtype).min) & (b == -1), 0, a).astype(dtype)
    signs = np.where((a < 0) == (b < 0), 1, -1)
    quotient = [abs(int(x)) // abs(int(y)) * int(s) for x, y, s in zip(a, b, signs, strict=True)]
    halves = [abs(int(x)) // 2 * (-1 if x < 0 else 1) for x in a]
    batch = Batch()
    batch.add("Div", [a, b], np.array(quotient, dtype))
    batch.add("Div", [a, np.array(2, dtype)], np.array(halves, dtype), [1])
    batch.add("Mod", [a, b], np.mod(a, b))
    batch.add("Mod", [a, np.array(7, dtype)], np.mod(a, np.array(7, dtype)), [1])
    batch.add("Mod", [a, b], np.fmod(a, b), fmod=1)
    batch.add("Mod", [a[0], b], np.fmod(a[0], b), [0], fmod=1)
    batch.check()


@floats
def test_modulo_of_floats_has_the_sign_of_the_divisor(dtype: Any) -> None:
    a = np.array([5.5, -5.5, 5.5, -5.5, 0.0, -0.0, 3.0, -3.0, np.inf, 1.0, np.nan, 1e-3], dtype)
    b = np.array([2.0, 2.0, -2.0, -2.0, -3.0, 3.0, np.inf, np.inf, 2.0, 0.0, 1.0, -7.0], dtype)
    batch = Batch(opset=28)
    with np.errstate(invalid="ignore"):
        batch.add("Mod", [a, b], np.mod(a, b))
        batch.add("Mod", [a, b[0]], np.mod(a, b[0]), [1])
        batch.add("Mod", [a, b], np.fmod(a, b), fmod=1)
    batch.check()


@pytest.mark.parametrize("base", [np.int32, np.int64, *FLOATS], ids=lambda t: t.__name__)
def test_powers_keep_the_dtype_of_the_base(base: Any) -> None:
    x = np.array([[1, 2, 3], [-2, 5, 4]], base)
    batch = Batch()
    for exponent in [np.uint8, np.int32, np.uint32, np.int64, np.uint64, *FLOATS]:
        y = np.array([0, 3, 2], exponent)
        for inputs, fixed in [([x, y], []), ([x, y], [1]), ([x, y[1]], [1]), ([x[0, 1], y], [0]), ([x[0, 1], y], [])]:
            a, b = (np.asarray(i, np.float64) for i in inputs)
            batch.add("Pow", inputs, np.power(a, b).astype(base), fixed)
    batch.check()


@floats
def test_roots_as_powers(dtype: Any) -> None:
    """Of -0.0 and -infinity, where a power is another one than the root."""
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 4.0, 2.0, 1e-3], dtype)
    for exponent in (0.5, -0.5):
        model, feeds = node_model("Pow", [x, np.array(exponent, dtype)], fixed=[1])
        check(literal(model), feeds)
        (y,) = prepare("torch", literal(model))(feeds)
        assert not np.signbit(y[:4]).any()


def test_files_of_pytorch_mean_its_own_functions() -> None:
    """There `x ** 0.5` is a root, and `clamp` with one bound leaves infinity as it is."""
    for op, inputs, code in [
        ("Pow", [np.float32(0.5)], "in0 ** 0.5"),
        ("Clip", [np.float32(0)], "clamp(in0, min=0.0)"),
    ]:
        model, _ = node_model(op, [edges(np.float32), *inputs], fixed=[1])
        assert code not in source(literal(model))
        model.producer_name = "pytorch"
        assert code in source(literal(model))


def test_negative_integer_powers() -> None:
    model, feeds = node_model("Pow", [np.array([1, -1, 2, 4]), np.array(-1)], fixed=[1])
    check(model, feeds, expected=[np.array([1, -1, 0, 0])])


HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.99, 1e-3]
PLAIN = "Abs Sqrt Reciprocal Exp Log Ceil Floor Sin Cos Tan Sinh Cosh Tanh Sign"
FUNCTIONS = "Abs Sign Sqrt Reciprocal Exp Log Erf Ceil Floor Round Neg Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh"


def test_functions() -> None:
    x = np.concatenate([edges(np.float32), HALVES]).astype(np.float32)
    batch = Batch()
    for op in [*FUNCTIONS.split(), "Asinh", "Acosh", "Atanh", "IsNaN"]:
        batch.add(op, [x])
    for negative, positive in [(1, 1), (1, 0), (0, 1), (0, 0)]:
        batch.add("IsInf", [x], detect_negative=negative, detect_positive=positive)
    batch.check()


@pytest.mark.parametrize("dtype", [np.float16, np.float64], ids=lambda t: t.__name__)
def test_functions_in_other_precisions(dtype: Any) -> None:
    x = np.concatenate([edges(dtype), HALVES]).astype(dtype)
    batch = Batch()
    with np.errstate(all="ignore"):
        for op in [
            "Abs",
            "Sqrt",
            "Reciprocal",
            "Exp",
            "Log",
            "Ceil",
            "Floor",
            "Sin",
            "Cos",
            "Tan",
            "Sinh",
            "Cosh",
            "Tanh",
            "Sign",
        ]:
            batch.add(op, [x], getattr(np, op.lower())(x))
        for op in ("Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh"):
            batch.add(f"A{op.lower()}", [x], getattr(np, f"arc{op.lower()}")(x))
        batch.add("Round", [x], np.rint(x))
    batch.check()


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@integers
def test_shifts_by_any_amount(dtype: Any, direction: str) -> None:
    width = np.dtype(dtype).itemsize * 8
    amounts = [0, 1, width - 1, width, width + 1, 100, *([-1, -100] if dtype in SIGNED else [])]
    x, by = np.meshgrid(edges(dtype), np.array(amounts, dtype))

    def shifted(value: int, amount: int) -> int:
        if not 0 <= amount < width:
            return -1 if direction == "RIGHT" and value < 0 else 0
        return value << amount if direction == "LEFT" else value >> amount

    bits = [[shifted(int(v), int(n)) % 2**width for v, n in zip(*row, strict=True)] for row in zip(x, by, strict=True)]
    expected = np.array(bits, np.uint64).astype(dtype)
    batch = Batch(opset=28)
    batch.add("BitShift", [x, by], expected, direction=direction)
    for i in (1, 3):
        batch.add("BitShift", [x[i], by[i, 0]], expected[i], [1], direction=direction)
    batch.check()


@pytest.mark.parametrize("dtype", [*FLOATS, *SIGNED, *UNSIGNED], ids=lambda t: t.__name__)
def test_clip(dtype: Any) -> None:
    x = edges(dtype)
    batch = Batch()
    for low, high in [(1, 2), (None, 2), (1, None), (None, None), (2, 1)]:
        bounds = [None if b is None else np.array(b, dtype) for b in (low, high)]
        ends = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
        expected = np.maximum(x, ends.min if low is None else bounds[0])
        expected = np.minimum(expected, ends.max if high is None else bounds[1])
        for fixed in [(1, 2), (1,), ()]:
            batch.add("Clip", [x, *bounds], expected, [i for i in fixed if bounds[i - 1] is not None])
    batch.check()


def test_clip_at_the_largest_float() -> None:
    bounds = np.array(np.finfo(np.float32).min), np.array(np.finfo(np.float32).max)
    model, feeds = node_model("Clip", [edges(np.float32), *bounds], fixed=[1, 2])
    check(literal(model), feeds)


def test_relu6_is_called_by_its_name() -> None:
    model, _ = node_model("Clip", [edges(np.float32), np.float32(0), np.float32(6)], fixed=[1, 2])
    assert "F.relu6(in0)" in source(literal(model))


@floats
def test_any_number_of_operands(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    inputs = [np.asarray(rng.standard_normal(shape), dtype) for shape in [(3, 1), (4,), (1, 4), ()]]
    batch = Batch()
    for count in (1, 2, 4):
        stack = np.stack(np.broadcast_arrays(*inputs[:count]))
        for op in ("Sum", "Mean", "Max", "Min"):
            batch.add(op, inputs[:count], getattr(np, op.lower())(stack, axis=0).astype(dtype))
    batch.check()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.uint64, np.float16, np.float32, np.complex64, object])
def test_where_of_every_dtype(dtype: Any) -> None:
    test = np.array([[True], [False]])
    yes = np.array(["a", "é", "", "d"], object) if dtype is object else np.array([0, 1, 2, 3]).astype(dtype)
    no = np.array([["x"], ["y"]], object) if dtype is object else np.array([[1], [0]]).astype(dtype)
    for a, b in [(yes, no), (yes, no[0, 0]), (yes[3], no)]:
        inputs = [test, np.asarray(a, dtype), np.asarray(b, dtype)]
        model, feeds = node_model("Where", inputs)
        check(model, feeds, expected=[np.where(*inputs)])


def test_where_with_numbers() -> None:
    test, low, ones = np.array([True, False, True]), np.array(-np.inf, np.float16), np.ones((2, 3), np.float16)
    batch = Batch()
    for fixed in [(1,), (2,), (0, 1), (1, 2)]:
        batch.add("Where", [test, low, ones], None, fixed)
        batch.add("Where", [test, ones, low], None, fixed)
    batch.check()


def test_equal_strings() -> None:
    model, feeds = node_model("Equal", [np.array([["a", "b"]], object), np.array([["b"], ["a"]], object)])
    check(model, feeds)
    model, feeds = node_model("Equal", [np.array("a", object), np.array("a", object)])
    check(model, feeds)


def test_equal_truth_values() -> None:
    x = np.array([True, False])
    batch = Batch()
    for truth in (True, False):
        batch.add("Equal", [x, np.array(truth)], x == truth, [1])
        batch.add("Equal", [np.array(truth), x], x == truth, [0])
        batch.add("Equal", [x, np.array([truth, True])], x == np.array([truth, True]))
    batch.check()


def test_nothing_to_compute() -> None:
    batch = Batch()
    for op in ("Add", "Div", "Pow", "Max", "Equal"):
        batch.add(op, [np.zeros((0, 3), np.float32), np.ones(3, np.float32)])
    batch.check()


def test_division_of_large_unsigned_numbers() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2**64, 2000, dtype=np.uint64)
    b = np.maximum(rng.integers(0, 2**64, 2000, dtype=np.uint64) >> rng.integers(0, 64, 2000, dtype=np.uint64), 1)
    batch = Batch()
    batch.add("Div", [a, b], a // b)
    batch.add("Mod", [a, b], a % b)
    batch.check()


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 89.4), (np.float64, 710.4), (np.float16, 11.5)])
def test_hyperbolic_functions_overflow_no_earlier_than_they_must(dtype: Any, large: float) -> None:
    """exp(large) overflows; half of it, which they are, does not. As many elements as fill a processor's lanes."""
    x = np.tile(np.array([large, -large, 2 * large, 0, -0.0, 1e-4, -0.5, np.inf, -np.inf, np.nan], dtype), 4)
    with np.errstate(over="ignore"):
        model, feeds = merged([node_model(op, [x]) for op in ("Sinh", "Cosh")])
        check(model, feeds, expected=[np.sinh(x), np.cosh(x)])


def test_hyperbolic_functions_of_large_numbers_have_gradients() -> None:
    x = torch.tensor([89.4, -89.4, 0.0], requires_grad=True)
    model, _ = node_model("Sinh", [x.detach().numpy()])
    to_torch(model)(x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), np.cosh([89.4, -89.4, 0.0]), rtol=1e-5)


def test_remainders_of_quotients_that_overflow() -> None:
    a = np.tile(np.array([3.4e38, -1e38, 1e38, 7.5], np.float32), 8)
    b = np.tile(np.array([1e-10, 3e-3, 3.0, 2.0], np.float32), 8)
    check(*node_model("Mod", [a, b], fmod=1), expected=[np.fmod(a, b)])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_the_smallest_integer_divided_by_minus_one_wraps(dtype: Any) -> None:
    low = np.iinfo(dtype).min
    a, b = np.tile(np.array([low, 7, -7, low], dtype), 8), np.tile(np.array([-1, -2, 2, 2], dtype), 8)
    wanted = np.tile(np.array([low, -3, -3, low // 2], dtype), 8)
    check(*node_model("Div", [a, b]), expected=[wanted])
    negated = np.tile(np.array([low, -7, 7, low], dtype), 8)
    for fixed in ((), (1,)):
        check(*node_model("Div", [a, np.array(-1, dtype)], fixed=fixed), expected=[negated])
