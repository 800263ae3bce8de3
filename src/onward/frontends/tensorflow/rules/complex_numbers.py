"""Complex numbers, as a real and an imaginary part of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import RULES, Rule, rule
from onward.frontends.tensorflow.rules.elementwise import atan2
from onward.frontends.tensorflow.values import Complex, Value
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

BY_PART = {
    "Reshape", "Transpose", "ExpandDims", "Squeeze", "StridedSlice", "Slice", "ConcatV2", "Pack", "Unpack",
    "Pad", "PadV2", "Tile", "GatherV2", "ReverseV2", "Sum", "Mean", "AddV2", "Add", "Sub", "Neg", "Roll", "BroadcastTo",
    "ZerosLike", "Split", "SplitV", "Cumsum", "AddN", "MatrixDiagV3", "MatrixDiagPartV3", "SelectV2", "Identity",
}  # fmt: skip
"""Ops that do to each part what they do to real numbers."""

_PAIRS: dict[str, Callable[..., Value]] = {}


def pairs(*op_types: str) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """File what an op does to complex numbers, where that is not what it does to their parts."""

    def file(function: Callable[..., Value]) -> Callable[..., Value]:
        _PAIRS.update(dict.fromkeys(op_types, function))
        return function

    return file


def applied(op: Writer, op_type: str, found: Rule | None, inputs: Sequence[Value], options: dict[str, Any]) -> Any:
    """An op one of whose inputs is complex."""
    if op_type in _PAIRS:
        return _PAIRS[op_type](op, *inputs, **options)
    if op_type not in BY_PART or found is None:
        if found is not None and op_type in _OWN:
            return found.function(op, *inputs, **options)
        raise UnsupportedError("there is no rule for complex numbers")
    parts = []
    for pick in ("real", "imaginary"):
        taken = [getattr(value, pick) if isinstance(value, Complex) else value for value in inputs]
        result = found.function(op, *taken, **options)
        parts.append(list(result) if isinstance(result, list | tuple) else [result])
    return [Complex(real, imaginary) for real, imaginary in zip(*parts, strict=True)]


@rule("Complex")
def complex_of(op: Writer, real: Tensor, imaginary: Tensor) -> Complex:
    zero = op.like(0, real)
    return (
        Complex(real + imaginary * zero, imaginary + real * zero)
        if real.dims != imaginary.dims
        else Complex(real, imaginary)
    )


@rule("Real")
def real(op: Writer, x: Complex) -> Tensor:
    return x.real


@rule("Imag")
def imaginary(op: Writer, x: Complex) -> Tensor:
    return x.imaginary


@rule("Conj")
def conjugate(op: Writer, x: Complex) -> Complex:
    return Complex(x.real, -x.imaginary)


@rule("ComplexAbs")
def magnitude(op: Writer, x: Complex) -> Tensor:
    return op.Sqrt(x.real * x.real + x.imaginary * x.imaginary)


@rule("Angle")
def angle(op: Writer, x: Complex) -> Tensor:
    return atan2(op, x.imaginary, x.real)


_OWN = {"Real", "Imag", "Conj", "ComplexAbs", "Angle"} | {
    f"{kind}{axes}" for kind in ("FFT", "IFFT", "IRFFT") for axes in ("", "2D", "3D")
}
"""Ops whose rules take complex numbers as they are."""


@pairs("Mul")
def product(op: Writer, a: Complex, b: Complex) -> Complex:
    return Complex(a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real)


@pairs("RealDiv")
def quotient(op: Writer, a: Complex, b: Complex) -> Complex:
    square = b.real * b.real + b.imaginary * b.imaginary
    above = product(op, a, Complex(b.real, -b.imaginary))
    assert isinstance(above, Complex)
    return Complex(above.real / square, above.imaginary / square)


def _real_rule(op: Writer) -> Callable[..., Any]:
    """What the op being written does to real numbers."""
    found = RULES.get(op.operation.type)
    assert found is not None
    return found.function


@pairs("Shape", "Size", "Rank")
def outline(op: Writer, x: Complex, **options: Any) -> Any:
    """Of a tensor, whatever is in it."""
    return _real_rule(op)(op, x.real, **options)


@pairs("DivNoNan")
def quotient_or_zero(op: Writer, a: Complex, b: Complex) -> Complex:
    found, nothing = quotient(op, a, b), op.Equal(op.Abs(b.real) + op.Abs(b.imaginary), op.like(0, b.real))
    assert isinstance(found, Complex)
    return Complex(op.where(nothing, 0.0, found.real), op.where(nothing, 0.0, found.imaginary))


@pairs("MatMul", "BatchMatMulV2")
def matrix_product(op: Writer, a: Complex, b: Complex, **options: Any) -> Complex:
    def times(x: Tensor, y: Tensor) -> Any:
        return _real_rule(op)(op, x, y, **options)

    for turned, side in (("adj_x", a), ("adj_y", b)):
        if options.get(turned):
            conjugated = Complex(side.real, -side.imaginary)
            a, b = (conjugated, b) if side is a else (a, conjugated)
    real = times(a.real, b.real) - times(a.imaginary, b.imaginary)
    return Complex(real, times(a.real, b.imaginary) + times(a.imaginary, b.real))


@pairs("Exp")
def exponential(op: Writer, x: Complex) -> Complex:
    size = op.Exp(x.real)
    return Complex(size * op.Cos(x.imaginary), size * op.Sin(x.imaginary))


@pairs("Square")
def square(op: Writer, x: Complex) -> Value:
    return product(op, x, x)


@pairs("ConjugateTranspose")
def conjugate_transpose(op: Writer, x: Complex, perm: Tensor) -> Complex:
    order = op.numbers(perm, "the order of axes")
    return Complex(op.transpose(x.real, order), -op.transpose(x.imaginary, order))


@pairs("Cast")
def cast(op: Writer, x: Complex, **options: Any) -> Value:
    """To real numbers by leaving the imaginary part out; between sizes by casting both."""
    wanted = op.operation.get_attr("DstT")
    if wanted.is_complex:
        dtype = real_dtype(wanted.as_datatype_enum)
        return Complex(x.real.cast(dtype), x.imaginary.cast(dtype))
    from onward.frontends.tensorflow.dtypes import onnx_dtype

    return x.real.cast(onnx_dtype(wanted.as_datatype_enum))


def real_dtype(number: int) -> Any:
    """Of the parts of complex numbers, by TensorFlow's number of the dtype."""
    import onnx_ir as ir

    return {8: ir.DataType.FLOAT, 18: ir.DataType.DOUBLE}[number]
