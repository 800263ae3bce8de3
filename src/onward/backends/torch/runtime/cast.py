"""Conversions to number formats that PyTorch does not have, and from and to strings."""

from typing import Any

import torch
from torch import Tensor

from onward.backends.shared.runtime.cast import formatted, parsed


def low_bits(x: Tensor, width: int, signed: bool) -> Tensor:
    """The lowest bits of whole numbers, as integers of that width held in bytes."""
    low = torch.bitwise_and(x.to(torch.int64), 2**width - 1)
    if not signed:
        return low.to(torch.uint8)
    sign = torch.bitwise_and(low, 2 ** (width - 1))
    return (low - 2 * sign).to(torch.int8)


def round_to_small_float(x: Tensor, mantissa: int, lowest_exponent: int, largest: float) -> Tensor:
    """The nearest values (ties to even) of a float format without infinities and NaN, held in float32."""
    x = torch.where(torch.isnan(x), -0.0, torch.clamp(x.to(torch.float32), -largest, largest))
    exponent = torch.frexp(x).exponent - 1
    step = torch.ldexp(torch.ones_like(x), torch.clamp(exponent, min=lowest_exponent) - mantissa)
    return torch.round(x / step) * step


def to_float8_e4m3fn(x: Tensor) -> Tensor:
    """As float8_e4m3fn, with NaN for what is too large."""
    return torch.where(torch.abs(x) > 464, float("nan"), x).to(torch.float8_e4m3fn)


def to_power_of_two(x: Tensor, saturate: bool, round_mode: str) -> Tensor:
    """As float8_e8m0fnu: the exponent alone, rounded "up", "down" or to the "nearest"."""
    number = x.to(torch.float32).view(torch.int32)
    exponent, fraction = (number >> 23) & 0xFF, number & 0x7FFFFF
    if round_mode == "up":
        up = fraction > 0
    elif round_mode == "nearest":
        up = (fraction > 0x400000) | ((fraction == 0x400000) & (exponent > 0))
    else:
        up = torch.zeros_like(fraction, dtype=torch.bool)
    highest = 0xFE if saturate else 0xFF
    rounded = torch.where(exponent == 0xFF, 0xFF, torch.clamp(exponent + up, max=highest))
    return rounded.to(torch.uint8).view(torch.float8_e8m0fnu)


FLOAT4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def float4_code(x: Tensor) -> Tensor:
    """The bit pattern of float4e2m1 values."""
    values = torch.tensor(FLOAT4_VALUES, device=x.device)
    return torch.searchsorted(values, torch.abs(x)) + 8 * torch.signbit(x)


def float4_value(code: Tensor) -> Tensor:
    """The inverse of `float4_code`."""
    values = torch.tensor([*FLOAT4_VALUES, *(-v for v in FLOAT4_VALUES)], device=code.device)
    return values[code.to(torch.int64) & 15]


def parse_numbers(strings: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Strings such as "3.14", "1e-5" or "-INF" as numbers."""
    return torch.from_numpy(parsed(strings, dtype.is_floating_point)).to(device).to(dtype)


def format_numbers(x: Tensor) -> Any:
    """Numbers as strings: 8 significant digits of a float."""
    x = x.detach().cpu()
    return formatted((x.to(torch.float64) if x.dtype.is_floating_point else x).numpy())
