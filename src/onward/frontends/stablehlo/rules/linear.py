"""Products, convolutions, factors of matrices and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from onward.frontends.stablehlo.reader import Reader
from onward.frontends.stablehlo.registry import rule
from onward.frontends.stablehlo.rules.shape import flag, integers
from onward.frontends.stablehlo.values import Value, as_array, as_sizes, dtype_of


@rule("stablehlo.dot_general")
def dot_general(reader: Reader, op: Any, a: Value, b: Value) -> Value:
    axes = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    contracted = axes.lhs_contracting_dimensions, axes.rhs_contracting_dimensions
    batch = axes.lhs_batching_dimensions, axes.rhs_batching_dimensions
    dtype = dtype_of(op.results[0].type)
    return lax.dot_general(as_array(a), as_array(b), (contracted, batch), preferred_element_type=dtype)


@rule("stablehlo.dot")
def dot(reader: Reader, op: Any, a: Value, b: Value) -> Value:
    left, right = as_array(a), as_array(b)
    axes: Any = (([left.ndim - 1], [0]), ([], []))
    return lax.dot_general(left, right, axes, preferred_element_type=dtype_of(op.results[0].type))


def _convolved(op: Any, x: Any, kernel: Any, padding: list[tuple[Any, Any]]) -> Any:
    axes = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    if "window_reversal" in op.attributes:
        turned = [
            a for a, back in zip(axes.kernel_spatial_dimensions, op.attributes["window_reversal"], strict=True) if back
        ]
        kernel = lax.rev(kernel, turned)
    numbers = lax.ConvDimensionNumbers(
        (axes.input_batch_dimension, axes.input_feature_dimension, *axes.input_spatial_dimensions),
        (axes.kernel_output_feature_dimension, axes.kernel_input_feature_dimension, *axes.kernel_spatial_dimensions),
        (axes.output_batch_dimension, axes.output_feature_dimension, *axes.output_spatial_dimensions),
    )
    ones = [1] * len(axes.input_spatial_dimensions)
    return lax.conv_general_dilated(
        x,
        kernel,
        integers(op, "window_strides") or ones,
        padding,
        integers(op, "lhs_dilation") or ones,
        integers(op, "rhs_dilation") or ones,
        numbers,
        op.attributes["feature_group_count"].value,
        op.attributes["batch_group_count"].value,
        preferred_element_type=dtype_of(op.results[0].type),
    )


def pairs(op: Any, name: str, rank: int) -> list[tuple[int, int]]:
    """An attribute of two numbers for each axis; zeros where it is left out."""
    if name not in op.attributes:
        return [(0, 0)] * rank
    return [(int(a), int(b)) for a, b in np.array(op.attributes[name]).reshape(-1, 2)]


@rule("stablehlo.convolution")
def convolution(reader: Reader, op: Any, x: Value, kernel: Value) -> Value:
    data = as_array(x)
    return _convolved(op, data, as_array(kernel), pairs(op, "padding", data.ndim - 2))


@rule("stablehlo.dynamic_conv")
def dynamic_conv(reader: Reader, op: Any, x: Value, kernel: Value, padding: Value) -> Value:
    flat = as_sizes(padding)
    return _convolved(op, as_array(x), as_array(kernel), list(zip(flat[::2], flat[1::2], strict=True)))


@rule("stablehlo.cholesky")
def cholesky(reader: Reader, op: Any, x: Value) -> Value:
    matrix = as_array(x)
    if flag(op, "lower"):
        return lax.linalg.cholesky(matrix, symmetrize_input=False)
    return lax.linalg.cholesky(matrix.mT.conj(), symmetrize_input=False).mT.conj()


@rule("stablehlo.triangular_solve")
def triangular_solve(reader: Reader, op: Any, a: Value, b: Value) -> Value:
    kind = str(op.attributes["transpose_a"])
    return lax.linalg.triangular_solve(
        as_array(a),
        as_array(b),
        left_side=op.attributes["left_side"].value,
        lower=op.attributes["lower"].value,
        transpose_a="TRANSPOSE" in kind or "ADJOINT" in kind,
        conjugate_a="ADJOINT" in kind,
        unit_diagonal=op.attributes["unit_diagonal"].value,
    )


@rule("stablehlo.fft")
def fft(reader: Reader, op: Any, x: Value) -> Value:
    kind = str(op.attributes["fft_type"]).split()[-1].rstrip(">")
    return lax.fft(as_array(x), kind, tuple(integers(op, "fft_length")))
