"""Quantization with scales along axes, and exact products of quantized tensors."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onward.backends.torch.runtime.conv import conv_nd


def per_axis(parameter: Tensor, shape: Sequence[int], axis: int, block_size: int = 0) -> Tensor:
    """Scales or zero points so that they broadcast: one for the tensor, one per slice along `axis`, or per block."""
    if parameter.numel() == 1:
        return parameter.reshape(())
    if parameter.ndim == 1 and len(shape) > 1:
        parameter = parameter.reshape(-1, *[1] * (len(shape) - 1 - axis % len(shape)))
    return per_block(parameter, shape, axis, block_size) if block_size else parameter


def per_block(parameter: Tensor, shape: Sequence[int], axis: int, block_size: int) -> Tensor:
    """Scales or zero points, one for each `block_size` elements along `axis`, repeated for every element."""
    return parameter.repeat_interleave(block_size, dim=axis).narrow(axis, 0, shape[axis])


def per_row(parameter: Tensor) -> Tensor:
    """Zero points of the rows of a matrix so that they broadcast with it."""
    return parameter.reshape(-1, 1) if parameter.ndim == 1 else parameter


def dynamic_quantize(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`x` as uint8 over the range of its values, with the scale and the zero point."""
    values = x if x.numel() else x.new_zeros(1)
    low, high = torch.clamp(values.min(), max=0), torch.clamp(values.max(), min=0)
    scale = torch.where(high == low, 1.0, (high - low) / 255)
    zero_point = torch.round(torch.clamp(-low / scale, 0, 255))
    y = torch.clamp(torch.round(x / scale) + zero_point, 0, 255)
    return y.to(torch.uint8), scale, zero_point.to(torch.uint8)


def quantized_matmul(
    a: Tensor,
    b: Tensor,
    a_zero_point: Tensor | int = 0,
    b_zero_point: Tensor | int = 0,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """The int32 product of 8-bit matrices; `dtype` is a float type in which all its sums are exact."""
    dtype = accumulator(dtype, a)
    return ((a.to(dtype) - a_zero_point) @ (b.to(dtype) - b_zero_point)).to(torch.int32)


def quantized_conv(
    x: Tensor,
    weight: Tensor,
    x_zero_point: Tensor | int = 0,
    w_zero_point: Tensor | int = 0,
    stride: Sequence[int] | None = None,
    padding: Sequence[int] | str | None = None,
    dilation: Sequence[int] | None = None,
    groups: int = 1,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """The int32 convolution of 8-bit tensors; `dtype` is a float type in which all its sums are exact."""
    dtype = accumulator(dtype, x)
    if isinstance(w_zero_point, Tensor) and w_zero_point.ndim == 1:
        w_zero_point = w_zero_point.reshape(-1, *[1] * (weight.ndim - 1))
    signal, kernel = x.to(dtype) - x_zero_point, weight.to(dtype) - w_zero_point
    return conv_nd(signal, kernel, None, stride, padding, dilation, groups).to(torch.int32)


def accumulator(dtype: torch.dtype, x: Tensor) -> torch.dtype:
    """Double precision off the CPU, where single precision may be less than it says (TF32)."""
    return dtype if x.device.type == "cpu" else torch.float64


def fake_quantize(
    x: Tensor, scale: Tensor | float, zero_point: Tensor | int = 0, low: int = 0, high: int = 255
) -> Tensor:
    """`x` rounded to steps of `scale`, as integers from `low` to `high` hold it."""
    codes = torch.clamp(torch.round(x / scale) + zero_point, low, high)
    return (codes - zero_point) * scale


class FakeQuantize(nn.Module):
    """Rounds numbers as integers from `low` to `high` hold them."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, low: int = 0, high: int = 255) -> None:
        super().__init__()
        self.low, self.high = low, high
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("zero_point", torch.zeros((), dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        return fake_quantize(x, self.scale, self.zero_point, self.low, self.high)


class Int8Linear(nn.Module):
    """A linear layer whose weight is kept in 8 bits, with one scale, or one for each output.

    Those without a sign have a zero point, or one for each output, unless something else is said.
    """

    weight: Tensor
    scale: Tensor
    zero_point: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        per_channel: bool = False,
        zero_point: bool | None = None,
        dtype: torch.dtype = torch.int8,
    ) -> None:
        super().__init__()
        each = out_features if per_channel else ()
        self.register_buffer("weight", torch.zeros(out_features, in_features, dtype=dtype))
        self.register_buffer("scale", torch.ones(each))
        has_offset = dtype == torch.uint8 if zero_point is None else zero_point
        self.register_buffer("zero_point", torch.zeros(each, dtype=dtype) if has_offset else None)
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, decoded(self.weight, self.scale, self.zero_point), self.bias)


class DynamicLinear(Int8Linear):
    """A linear layer of 8-bit weights whose input is rounded to 8 bits over the range of its values.

    `sums` is a float type in which all sums are exact.
    """

    def __init__(
        self, in_features: int, out_features: int, *, sums: torch.dtype = torch.float32, **options: Any
    ) -> None:
        super().__init__(in_features, out_features, **options)
        self.sums = sums

    def forward(self, x: Tensor) -> Tensor:
        codes, scale, offset = dynamic_quantize(x)
        own = 0 if self.zero_point is None else self.zero_point
        y = quantized_matmul(codes, self.weight.T, offset, own, self.sums).to(torch.float32) * (scale * self.scale)
        return y if self.bias is None else y + self.bias


class Int8Conv(nn.Module):
    """A convolution whose weight is kept in 8 bits, with one scale, or one for each channel that it makes.

    Those without a sign have a zero point, or one for each channel, unless something else is said.
    """

    weight: Tensor
    scale: Tensor
    zero_point: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        *,
        bias: bool = True,
        per_channel: bool = False,
        zero_point: bool | None = None,
        dtype: torch.dtype = torch.int8,
    ) -> None:
        super().__init__()
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        each = out_channels if per_channel else ()
        self.register_buffer("weight", torch.zeros(out_channels, in_channels // groups, *kernel_size, dtype=dtype))
        self.register_buffer("scale", torch.ones(each))
        has_offset = dtype == torch.uint8 if zero_point is None else zero_point
        self.register_buffer("zero_point", torch.zeros(each, dtype=dtype) if has_offset else None)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        conv = (F.conv1d, F.conv2d, F.conv3d)[weight.ndim - 3]
        return conv(x, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolve(x, decoded(self.weight, self.scale, self.zero_point), self.bias)


class DynamicConv(Int8Conv):
    """A convolution of 8-bit weights whose input is rounded to 8 bits over the range of its values.

    `sums` is a float type in which all sums are exact; with `whole_bias`, the bias is rounded as these are.
    """

    def __init__(
        self, *sizes: Any, sums: torch.dtype = torch.float32, whole_bias: bool = False, **options: Any
    ) -> None:
        super().__init__(*sizes, **options)
        self.sums, self.whole_bias = sums, whole_bias

    def forward(self, x: Tensor) -> Tensor:
        codes, scale, offset = dynamic_quantize(x)
        sums, step = accumulator(self.sums, x), scale * self.scale
        weight = self.weight.to(sums) - (0 if self.zero_point is None else self.zero_point)
        y = self.convolve(codes.to(sums) - offset, weight).to(torch.int32)
        if self.bias is None:
            return y.to(torch.float32) * step
        bias = self.bias.reshape(-1, *[1] * (y.ndim - 2))
        if self.whole_bias:
            return (y + torch.floor(bias / step).to(torch.int32)).to(torch.float32) * step
        return y.to(torch.float32) * step + bias


def decoded(weight: Tensor, scale: Tensor, zero_point: Tensor | None) -> Tensor:
    """What 8-bit weights stand for; scales and zero points are of the whole, or of each slice of the first axis."""
    after = [1] * (weight.ndim - 1)
    codes = weight.to(torch.float32)
    if zero_point is not None:
        codes = codes - zero_point.reshape(-1, *after)
    return codes * scale.reshape(-1, *after)


class QuantizedLinear(nn.Module):
    """A linear layer whose weight is of numbers of a few bits: each block of a row has its scale and zero point.

    `weight` holds the codes, several to a byte, as they are saved. `unpack` makes numbers of them, once, after loading;
    set `full` to None to save memory, and they are made anew for each call.
    """

    weight: Tensor
    scales: Tensor
    zero_points: Tensor | None
    full: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bits: int,
        block_size: int,
        bias: bool = False,
        zero_points: torch.dtype | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.in_features, self.bits, self.block_size = in_features, bits, block_size
        blocks = -(-in_features // block_size)
        codes = torch.zeros(out_features, blocks * block_size * bits // 8, dtype=torch.uint8)
        points = None if zero_points is None else torch.zeros(out_features, blocks, dtype=zero_points)
        self.register_buffer("weight", codes)
        self.register_buffer("scales", torch.ones(out_features, blocks, dtype=dtype))
        self.register_buffer("zero_points", points)
        self.register_buffer("full", None, persistent=False)
        self.bias = nn.Parameter(torch.zeros(out_features, dtype=dtype)) if bias else None

    def numbers(self) -> Tensor:
        """The weight, (out, in)."""
        shifts = torch.arange(0, 8, self.bits, dtype=torch.uint8, device=self.weight.device)
        codes = (self.weight.unsqueeze(-1) >> shifts) & (2**self.bits - 1)
        blocks = codes.reshape(*self.scales.shape, self.block_size).float()
        middle = 2 ** (self.bits - 1) if self.zero_points is None else self.zero_points.unsqueeze(-1)
        whole: Tensor = (blocks - middle) * self.scales.unsqueeze(-1).float()
        return whole.flatten(1)[:, : self.in_features].to(self.scales.dtype)

    def unpack(self) -> None:
        self.full = self.numbers()

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self.unpack()

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.numbers() if self.full is None else self.full, self.bias)
