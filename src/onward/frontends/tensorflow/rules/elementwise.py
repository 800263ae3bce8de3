"""Arithmetic, comparisons, logic: one number of the result from one number of each input."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose import special
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Complex, Reserved, TensorList
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

SAME = {
    "Abs": "Abs",
    "Acos": "Acos",
    "Acosh": "Acosh",
    "Asin": "Asin",
    "Asinh": "Asinh",
    "Atan": "Atan",
    "Atanh": "Atanh",
    "Ceil": "Ceil",
    "Cos": "Cos",
    "Cosh": "Cosh",
    "Exp": "Exp",
    "Floor": "Floor",
    "IsNan": "IsNaN",
    "IsInf": "IsInf",
    "Log": "Log",
    "LogicalNot": "Not",
    "Neg": "Neg",
    "Reciprocal": "Reciprocal",
    "Inv": "Reciprocal",
    "Rint": "Round",
    "Sign": "Sign",
    "Sin": "Sin",
    "Sinh": "Sinh",
    "Sqrt": "Sqrt",
    "Tan": "Tan",
    "Sub": "Sub",
    "Mul": "Mul",
    "RealDiv": "Div",
    "TruncateDiv": "Div",
    "Div": "Div",
    "Pow": "Pow",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "LogicalAnd": "And",
    "LogicalOr": "Or",
    "Equal": "Equal",
}
"""Ops that ONNX has under this name, and that mean the same there."""

INTEGERS = {
    ir.DataType.INT8,
    ir.DataType.INT16,
    ir.DataType.INT32,
    ir.DataType.INT64,
    ir.DataType.UINT8,
    ir.DataType.UINT16,
    ir.DataType.UINT32,
    ir.DataType.UINT64,
}


def _same(op_type: str) -> Callable[..., Tensor]:
    def function(op: Writer, *inputs: Tensor) -> Tensor:
        return op.many(op_type, 1, *inputs)[0]

    return function


for _tensorflow, _onnx in SAME.items():
    rule(_tensorflow)(_same(_onnx))


@rule("Add", "AddV2")
def add(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == ir.DataType.STRING:
        return op.StringConcat(a, b)
    return a + b


@rule("AddN", "AccumulateNV2")
def add_n(op: Writer, *values: Tensor | TensorList | Reserved) -> Tensor | TensorList | Reserved:
    """Of tensors, or of lists of them; nothing was put into a reserved list, and so it adds nothing."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    lists = [value.stacked for value in values if isinstance(value, TensorList)]
    if tensors:
        return op.total(tensors)
    return TensorList(op.total(lists)) if lists else values[0]


@rule("NotEqual")
def not_equal(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.Not(op.Equal(a, b))


@rule("ApproximateEqual")
def approximate_equal(op: Writer, a: Tensor, b: Tensor, *, tolerance: float = 1e-5) -> Tensor:
    return op.Abs(a - b) < tolerance


@rule("IsFinite")
def is_finite(op: Writer, x: Tensor) -> Tensor:
    return op.Not(op.Or(op.IsNaN(x), op.IsInf(x)))


@rule("Maximum")
def maximum(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.Max(a, b)


@rule("Minimum")
def minimum(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.Min(a, b)


@rule("ClipByValue")
def clip_by_value(op: Writer, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return op.Max(op.Min(x, high), low)


@rule("Round")
def round_half_even(op: Writer, x: Tensor) -> Tensor:
    return x if x.dtype in INTEGERS else op.Round(x)


@rule("Rsqrt")
def rsqrt(op: Writer, x: Tensor) -> Tensor:
    return op.Reciprocal(op.Sqrt(x))


@rule("Square")
def square(op: Writer, x: Tensor) -> Tensor:
    return x * x


@rule("SquaredDifference")
def squared_difference(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    difference = a - b
    return difference * difference


@rule("DivNoNan")
def div_no_nan(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    zero = op.Equal(b, op.like(0, b))
    return op.where(zero, op.like(0, b), a / op.where(zero, op.like(1, b), b))


@rule("MulNoNan")
def mul_no_nan(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.where(op.Equal(b, op.like(0, b)), op.like(0, b), a * b)


@rule("Xlogy")
def xlogy(op: Writer, x: Tensor, y: Tensor) -> Tensor:
    return op.where(op.Equal(x, op.like(0, x)), op.like(0, x), x * op.Log(y))


@rule("Xlog1py")
def xlog1py(op: Writer, x: Tensor, y: Tensor) -> Tensor:
    return op.where(op.Equal(x, op.like(0, x)), op.like(0, x), x * log1p(op, y))


@rule("Xdivy")
def xdivy(op: Writer, x: Tensor, y: Tensor) -> Tensor:
    return op.where(op.Equal(x, op.like(0, x)), op.like(0, x), x / y)


@rule("Log1p")
def log1p(op: Writer, x: Tensor) -> Tensor:
    return special.log1p(op, x)


@rule("Expm1")
def expm1(op: Writer, x: Tensor) -> Tensor:
    return special.expm1(op, x)


@rule("FloorDiv")
def floor_div(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype not in INTEGERS:
        return op.Floor(a / b)
    quotient = a / b
    if "UINT" in a.dtype.name:
        return quotient
    rest = a - quotient * b
    zero = op.like(0, a)
    below = op.And(op.Not(op.Equal(rest, zero)), op.Xor(rest < zero, b < zero))
    return quotient - below.cast(a.dtype)


@rule("FloorMod")
def floor_mod(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype in INTEGERS:
        return op.Mod(a, b)
    rest = op.Mod(a, b, fmod=1)
    zero = op.like(0, a)
    other_side = op.And(op.Not(op.Equal(rest, zero)), op.Xor(rest < zero, b < zero))
    return op.where(other_side, rest + b, rest)


@rule("Mod", "TruncateMod")
def truncate_mod(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.Mod(a, b, fmod=1)


@rule("Atan2")
def atan2(op: Writer, y: Tensor, x: Tensor) -> Tensor:
    return special.angle(op, y, x)


@rule("Select")
def select(op: Writer, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """A vector of conditions chooses rows."""
    rank = op.rank(a, "what is selected")
    if condition.rank == 1 and rank > 1:
        condition = op.unsqueeze(condition, list(range(1, rank)))
    return op.Where(condition, a, b)


@rule("SelectV2")
def select_v2(op: Writer, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return op.Where(condition, a, b)


@rule("Cast")
def cast(op: Writer, x: Tensor, *, DstT: ir.DataType, Truncate: bool = False) -> Tensor | Complex:
    if Truncate and DstT in (ir.DataType.BFLOAT16, ir.DataType.FLOAT16):
        raise UnsupportedError("a cast that cuts digits off instead of rounding them is not supported")
    if DstT in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        part = x.cast(ir.DataType.FLOAT if DstT == ir.DataType.COMPLEX64 else ir.DataType.DOUBLE)
        return Complex(part, op.zeros_like(part))
    return op.converted(x, DstT)


@rule("Bitcast")
def bitcast(op: Writer, x: Tensor, *, type: ir.DataType) -> Tensor:
    op.need(26, "a bit cast")
    return op.BitCast(x, to=int(type))


@rule("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    return op.many(op.operation.type, 1, a, b)[0]


@rule("Invert")
def invert(op: Writer, x: Tensor) -> Tensor:
    return op.BitwiseNot(x)


@rule("LeftShift")
def left_shift(op: Writer, x: Tensor, by: Tensor) -> Tensor:
    """ONNX shifts numbers without a sign only; those with one have the same bits."""
    unsigned = UNSIGNED.get(x.dtype, x.dtype)
    return op.BitShift(x.cast(unsigned), by.cast(unsigned), direction="LEFT").cast(x.dtype)


@rule("RightShift")
def right_shift(op: Writer, x: Tensor, by: Tensor) -> Tensor:
    """Of a number with a sign, the quotient by a power of two, rounded down."""
    if x.dtype not in UNSIGNED:
        return op.BitShift(x, by, direction="RIGHT")
    wide = ir.DataType.INT64
    power = op.Pow(op.index(2), by.cast(wide))
    return floor_div(op, x.cast(wide), power).cast(x.dtype)


UNSIGNED = {
    ir.DataType.INT8: ir.DataType.UINT8,
    ir.DataType.INT16: ir.DataType.UINT16,
    ir.DataType.INT32: ir.DataType.UINT32,
    ir.DataType.INT64: ir.DataType.UINT64,
}
