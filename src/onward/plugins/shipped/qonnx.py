"""Quantised numbers as QONNX has them, the form that Brevitas exports: any bit width, as floats that stand on a grid.

Gradients go straight through: rounding counts as doing nothing, clipping as what it is. So scales and zero points have
gradients as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onward.errors import UnsupportedError
from onward.plugins import CustomOp

if TYPE_CHECKING:
    import jax.numpy as jnp
    import tensorflow as tf
    import torch
    from jax import lax

_DOMAIN = "qonnx.custom_op.general"
_OLDER = ("onnx.brevitas", "finn.custom_op.general")
_GRID = "x:T scale:T zero_point:T bit_width:T"
_HOW: dict[str, Any] = {"signed": bool, "narrow": bool, "rounding_mode": "ROUND"}

quant = CustomOp(f"{_DOMAIN}::Quant", inputs=_GRID, attributes=_HOW, also=_OLDER)
int_quant = CustomOp(f"{_DOMAIN}::IntQuant", inputs=_GRID, attributes=_HOW)
bipolar_quant = CustomOp(f"{_DOMAIN}::BipolarQuant", inputs="x:T scale:T", also=_OLDER)
trunc = CustomOp(
    f"{_DOMAIN}::Trunc",
    inputs="x:T scale:T zero_point:T in_bit_width:T out_bit_width:T",
    attributes={"rounding_mode": "FLOOR"},
    also=_OLDER,
)
trunc_2 = CustomOp(
    f"{_DOMAIN}::Trunc",
    version=2,
    inputs="x:T scale:T zero_point:T in_bit_width:T out_scale:T out_bit_width:T",
    attributes={"rounding_mode": "FLOOR", "narrow": False, "signed": True},
)
_ALL = (quant, int_quant, bipolar_quant, trunc, trunc_2)
_GRIDS = (quant, int_quant)


def _like_first(x: Any, *others: Any, **attributes: Any) -> Any:
    return x


for _op in _ALL:
    _op.infer(_like_first)


@quant.sample
@int_quant.sample
def _(rng: np.random.Generator) -> Any:
    x = rng.normal(size=(3, 4)).astype(np.float32)
    scale = np.array([[0.11, 0.23, 0.31, 0.17]], np.float32)
    return (x, scale, np.float32(1), np.float32(3)), {"signed": True, "narrow": False}


@bipolar_quant.sample
def _(rng: np.random.Generator) -> Any:
    return rng.normal(size=(3, 4)).astype(np.float32), np.array([0.11, 0.23, 0.31, 0.17], np.float32)


@trunc.sample
def _(rng: np.random.Generator) -> Any:
    x = rng.integers(-90, 90, (3, 4)).astype(np.float32) * np.float32(0.25)
    return x, np.float32(0.25), np.float32(0), np.float32(8), np.float32(5)


@trunc_2.sample
def _(rng: np.random.Generator) -> Any:
    x = rng.integers(-90, 90, (3, 4)).astype(np.float32) * np.float32(0.25)
    return x, np.float32(0.25), np.float32(0), np.float32(8), np.float32(1), np.float32(6)


# numpy


def _rounded(x: Any, mode: str) -> Any:
    """A tensor of numpy, rounded; the modes say what becomes of what is between two integers, or half-way."""
    mode, size = mode.upper(), np.abs(x)
    found = {
        "ROUND": lambda: np.round(x),
        "HALF_EVEN": lambda: np.round(x),
        "CEIL": lambda: np.ceil(x),
        "FLOOR": lambda: np.floor(x),
        "UP": lambda: np.sign(x) * np.ceil(size),
        "DOWN": lambda: np.trunc(x),
        "HALF_UP": lambda: np.sign(x) * np.floor(size + size.dtype.type(0.5)),
        "HALF_DOWN": lambda: np.sign(x) * np.ceil(size - size.dtype.type(0.5)),
    }.get(mode)
    if found is None:
        raise UnsupportedError(f"there is no rounding_mode {mode!r}")
    return found()


def _limits(bits: Any, signed: bool, narrow: bool) -> tuple[Any, Any]:
    """The least and the greatest integer; a power is rounded, since it is not exact everywhere."""
    half = np.round(bits.dtype.type(2) ** (bits - 1))
    return (-half + narrow, half - 1) if signed else (0 * half, 2 * half - 1 - narrow)


@quant.numpy
@int_quant.numpy
def _(x: Any, scale: Any, zero_point: Any, bit_width: Any, *, signed: bool, narrow: bool, rounding_mode: str) -> Any:
    low, high = _limits(bit_width, signed, narrow)
    grid = x / scale + zero_point
    on_grid = _rounded(np.clip(grid, low, high).astype(x.dtype), rounding_mode)
    if signed:
        on_grid = np.where(bit_width == 1, np.where(grid >= 0, 1, -1).astype(x.dtype), on_grid)
    return ((on_grid - zero_point) * scale).astype(x.dtype)


@bipolar_quant.numpy
def _(x: Any, scale: Any) -> Any:
    return np.where(x >= 0, 1, -1).astype(x.dtype) * scale


@trunc.numpy
def _(x: Any, scale: Any, zero_point: Any, in_bit_width: Any, out_bit_width: Any, *, rounding_mode: str) -> Any:
    step = np.round(x.dtype.type(2) ** (in_bit_width - out_bit_width))
    return (_rounded(np.round(x / scale + zero_point) / step, rounding_mode) - zero_point) * scale


@trunc_2.numpy
def _(
    x: Any,
    scale: Any,
    zero_point: Any,
    in_bit_width: Any,
    out_scale: Any,
    out_bit_width: Any,
    *,
    rounding_mode: str,
    narrow: bool,
    signed: bool,
) -> Any:
    step = (x.dtype.type(2) ** np.round(np.log2(out_scale / scale))).astype(x.dtype)
    low, high = _limits(out_bit_width, signed, narrow)
    grid = np.clip(np.round(x / scale + zero_point) / step, low, high).astype(x.dtype)
    return ((_rounded(grid, rounding_mode) - zero_point / step) * out_scale).astype(x.dtype)


# PyTorch


def _torch_straight(exact: Any, x: Any) -> Any:
    """What was rounded, with the gradient of what it was rounded from."""
    return exact.detach() + (x - x.detach())


def _torch_rounded(x: Any, mode: str) -> Any:
    mode, sign, size = mode.upper(), torch.sign(x), torch.abs(x)
    if mode in ("ROUND", "HALF_EVEN"):
        found = torch.round(x)
    elif mode == "CEIL":
        found = torch.ceil(x)
    elif mode == "FLOOR":
        found = torch.floor(x)
    elif mode == "UP":
        found = sign * torch.ceil(size)
    elif mode == "DOWN":
        found = sign * torch.floor(size)
    elif mode == "HALF_UP":
        found = sign * torch.floor(size + 0.5)
    elif mode == "HALF_DOWN":
        found = sign * torch.ceil(size - 0.5)
    else:
        raise ValueError(f"there is no rounding_mode {mode!r}")
    return _torch_straight(found, x)


def _torch_limits(bits: Any, signed: bool, narrow: bool) -> Any:
    half = torch.round(2.0 ** (bits - 1))
    return (-half + int(narrow), half - 1) if signed else (0 * half, 2 * half - 1 - int(narrow))


@quant.torch
@int_quant.torch
def _(x: Any, scale: Any, zero_point: Any, bit_width: Any, *, signed: bool, narrow: bool, rounding_mode: str) -> Any:
    low, high = _torch_limits(bit_width, signed, narrow)
    grid = x / scale + zero_point
    on_grid = _torch_rounded(torch.minimum(torch.maximum(grid, low), high), rounding_mode)
    if signed:
        sign = _torch_straight(torch.where(grid >= 0, torch.ones_like(grid), -torch.ones_like(grid)), grid)
        on_grid = torch.where(bit_width == 1, sign, on_grid)
    return (on_grid - zero_point) * scale


@bipolar_quant.torch
def _(x: Any, scale: Any) -> Any:
    return _torch_straight(torch.where(x >= 0, torch.ones_like(x), -torch.ones_like(x)), x) * scale


@trunc.torch
def _(x: Any, scale: Any, zero_point: Any, in_bit_width: Any, out_bit_width: Any, *, rounding_mode: str) -> Any:
    step = torch.round(2.0 ** (in_bit_width - out_bit_width))
    grid = x / scale + zero_point
    return (_torch_rounded(_torch_straight(torch.round(grid), grid) / step, rounding_mode) - zero_point) * scale


@trunc_2.torch
def _(
    x: Any,
    scale: Any,
    zero_point: Any,
    in_bit_width: Any,
    out_scale: Any,
    out_bit_width: Any,
    *,
    rounding_mode: str,
    narrow: bool,
    signed: bool,
) -> Any:
    step = 2.0 ** torch.round(torch.log2(out_scale / scale)).detach()
    low, high = _torch_limits(out_bit_width, signed, narrow)
    grid = x / scale + zero_point
    grid = torch.minimum(torch.maximum(_torch_straight(torch.round(grid), grid) / step, low), high)
    return (_torch_rounded(grid, rounding_mode) - zero_point / step) * out_scale


# TensorFlow


def _tf_straight(exact: Any, x: Any) -> Any:
    """What was rounded, with the gradient of what it was rounded from."""
    return tf.stop_gradient(exact) + (x - tf.stop_gradient(x))


def _tf_rounded(x: Any, mode: str) -> Any:
    mode, sign, size = mode.upper(), tf.sign(x), tf.abs(x)
    if mode in ("ROUND", "HALF_EVEN"):
        found = tf.round(x)
    elif mode == "CEIL":
        found = tf.math.ceil(x)
    elif mode == "FLOOR":
        found = tf.floor(x)
    elif mode == "UP":
        found = sign * tf.math.ceil(size)
    elif mode == "DOWN":
        found = sign * tf.floor(size)
    elif mode == "HALF_UP":
        found = sign * tf.floor(size + 0.5)
    elif mode == "HALF_DOWN":
        found = sign * tf.math.ceil(size - 0.5)
    else:
        raise ValueError(f"there is no rounding_mode {mode!r}")
    return _tf_straight(found, x)


def _tf_limits(bits: Any, signed: bool, narrow: bool) -> Any:
    half = tf.round(2.0 ** (bits - 1))
    return (-half + int(narrow), half - 1) if signed else (0 * half, 2 * half - 1 - int(narrow))


@quant.tensorflow
@int_quant.tensorflow
def _(x: Any, scale: Any, zero_point: Any, bit_width: Any, *, signed: bool, narrow: bool, rounding_mode: str) -> Any:
    low, high = _tf_limits(bit_width, signed, narrow)
    grid = x / scale + zero_point
    on_grid = _tf_rounded(tf.minimum(tf.maximum(grid, low), high), rounding_mode)
    if signed:
        sign = _tf_straight(tf.where(grid >= 0, tf.ones_like(grid), -tf.ones_like(grid)), grid)
        on_grid = tf.where(bit_width == 1, sign, on_grid)
    return (on_grid - zero_point) * scale


@bipolar_quant.tensorflow
def _(x: Any, scale: Any) -> Any:
    return _tf_straight(tf.where(x >= 0, tf.ones_like(x), -tf.ones_like(x)), x) * scale


@trunc.tensorflow
def _(x: Any, scale: Any, zero_point: Any, in_bit_width: Any, out_bit_width: Any, *, rounding_mode: str) -> Any:
    step = tf.round(2.0 ** (in_bit_width - out_bit_width))
    grid = x / scale + zero_point
    return (_tf_rounded(_tf_straight(tf.round(grid), grid) / step, rounding_mode) - zero_point) * scale


@trunc_2.tensorflow
def _(
    x: Any,
    scale: Any,
    zero_point: Any,
    in_bit_width: Any,
    out_scale: Any,
    out_bit_width: Any,
    *,
    rounding_mode: str,
    narrow: bool,
    signed: bool,
) -> Any:
    step = 2.0 ** tf.stop_gradient(tf.round(tf.math.log(out_scale / scale) / tf.math.log(tf.constant(2.0, x.dtype))))
    low, high = _tf_limits(out_bit_width, signed, narrow)
    grid = x / scale + zero_point
    grid = tf.minimum(tf.maximum(_tf_straight(tf.round(grid), grid) / step, low), high)
    return (_tf_rounded(grid, rounding_mode) - zero_point / step) * out_scale


# JAX


def _jax_straight(exact: Any, x: Any) -> Any:
    """What was rounded, with the gradient of what it was rounded from."""
    return lax.stop_gradient(exact) + (x - lax.stop_gradient(x))


def _jax_rounded(x: Any, mode: str) -> Any:
    mode, sign, size = mode.upper(), jnp.sign(x), jnp.abs(x)
    if mode in ("ROUND", "HALF_EVEN"):
        found = jnp.round(x)
    elif mode == "CEIL":
        found = jnp.ceil(x)
    elif mode == "FLOOR":
        found = jnp.floor(x)
    elif mode == "UP":
        found = sign * jnp.ceil(size)
    elif mode == "DOWN":
        found = sign * jnp.floor(size)
    elif mode == "HALF_UP":
        found = sign * jnp.floor(size + 0.5)
    elif mode == "HALF_DOWN":
        found = sign * jnp.ceil(size - 0.5)
    else:
        raise ValueError(f"there is no rounding_mode {mode!r}")
    return _jax_straight(found, x)


def _jax_limits(bits: Any, signed: bool, narrow: bool) -> Any:
    half = jnp.round(2.0 ** (bits - 1))
    return (-half + int(narrow), half - 1) if signed else (0 * half, 2 * half - 1 - int(narrow))


@quant.jax
@int_quant.jax
def _(x: Any, scale: Any, zero_point: Any, bit_width: Any, *, signed: bool, narrow: bool, rounding_mode: str) -> Any:
    low, high = _jax_limits(bit_width, signed, narrow)
    grid = x / scale + zero_point
    on_grid = _jax_rounded(jnp.minimum(jnp.maximum(grid, low), high), rounding_mode)
    if signed:
        sign = _jax_straight(jnp.where(grid >= 0, jnp.ones_like(grid), -jnp.ones_like(grid)), grid)
        on_grid = jnp.where(bit_width == 1, sign, on_grid)
    return (on_grid - zero_point) * scale


@bipolar_quant.jax
def _(x: Any, scale: Any) -> Any:
    return _jax_straight(jnp.where(x >= 0, jnp.ones_like(x), -jnp.ones_like(x)), x) * scale


@trunc.jax
def _(x: Any, scale: Any, zero_point: Any, in_bit_width: Any, out_bit_width: Any, *, rounding_mode: str) -> Any:
    step = jnp.round(2.0 ** (in_bit_width - out_bit_width))
    grid = x / scale + zero_point
    return (_jax_rounded(_jax_straight(jnp.round(grid), grid) / step, rounding_mode) - zero_point) * scale


@trunc_2.jax
def _(
    x: Any,
    scale: Any,
    zero_point: Any,
    in_bit_width: Any,
    out_scale: Any,
    out_bit_width: Any,
    *,
    rounding_mode: str,
    narrow: bool,
    signed: bool,
) -> Any:
    step = 2.0 ** lax.stop_gradient(jnp.round(jnp.log2(out_scale / scale)))
    low, high = _jax_limits(out_bit_width, signed, narrow)
    grid = x / scale + zero_point
    grid = jnp.minimum(jnp.maximum(_jax_straight(jnp.round(grid), grid) / step, low), high)
    return (_jax_rounded(grid, rounding_mode) - zero_point / step) * out_scale


# The gradient, in ONNX ops


def _between(c: Any, grid: Any, low: Any, high: Any) -> Any:
    """1 where a number is not clipped, and 0 elsewhere."""
    op = c.op
    return op.And(op.GreaterOrEqual(grid, low), op.LessOrEqual(grid, high)).cast(grid.dtype)


def _onnx_limits(c: Any, bits: Any, signed: bool, narrow: bool) -> tuple[Any, Any]:
    half = c.op.Round(c.op.Pow(c.op.like(2, bits), bits - 1))
    return (-half + int(narrow), half - 1) if signed else (half * 0, half * 2 - (1 + int(narrow)))


@quant.vjp(broadcasts=True, straight_through=True)
@int_quant.vjp(broadcasts=True, straight_through=True)
def _(c: Any, g: Any, x: Any, scale: Any, zero_point: Any, bits: Any, *, signed: bool, narrow: bool, **_: Any) -> Any:
    ratio = x / scale
    inside = _between(c, ratio + zero_point, *_onnx_limits(c, bits, signed, narrow))
    if signed:
        inside = c.op.where(c.op.Equal(bits, c.op.like(1, bits)), 1, inside)
    return g * inside, g * (c.y / scale - inside * ratio), g * (inside - 1) * scale, None


@bipolar_quant.vjp(broadcasts=True, straight_through=True)
def _(c: Any, g: Any, x: Any, scale: Any) -> Any:
    return g * scale, g * (c.y / scale)


@trunc.vjp(broadcasts=True, straight_through=True)
def _(c: Any, g: Any, x: Any, scale: Any, zero_point: Any, in_width: Any, out_width: Any, *, rounding_mode: str) -> Any:
    step = c.op.Round(c.op.Pow(c.op.like(2, x), in_width - out_width))
    return g / step, g * (c.y / scale - x / scale / step), g * scale * (1 / step - 1), None, None


@trunc_2.vjp(broadcasts=True, straight_through=True)
def _(
    c: Any,
    g: Any,
    x: Any,
    scale: Any,
    zero_point: Any,
    in_width: Any,
    out_scale: Any,
    out_width: Any,
    *,
    rounding_mode: str,
    narrow: bool,
    signed: bool,
) -> Any:
    op = c.op
    two = op.like(2, x)
    step = op.Pow(two, op.Round(op.Log(out_scale / scale) / op.Log(two)))
    ratio = x / scale
    grid = op.Round(ratio + zero_point) / step
    inside = _between(c, grid, *_onnx_limits(c, out_width, signed, narrow))
    slope = inside / step * out_scale
    return (
        g * slope / scale,
        -(g * slope * ratio / scale),
        g * (slope - out_scale / step),
        None,
        g * (c.y / out_scale),
        None,
    )
