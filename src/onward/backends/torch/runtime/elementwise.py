"""Elementwise functions whose edge cases differ from PyTorch's, and those on strings."""

from typing import Any

import numpy as np
import torch
from torch import Tensor


def sinh(x: Tensor) -> Tensor:
    """The hyperbolic sine up to where it overflows itself: `torch.sinh` does so where `exp` does."""
    return 2 * torch.sinh(x / 2) * torch.cosh(x / 2)


def cosh(x: Tensor) -> Tensor:
    """The hyperbolic cosine up to where it overflows itself: `torch.cosh` does so where `exp` does."""
    half = torch.sinh(x / 2)
    return 2 * half * half + 1


def integer_divide(a: Tensor, b: Tensor) -> Tensor:
    """Integers divided, rounded towards zero. The smallest by -1 is itself; PyTorch's division ends the process."""
    opposite = b == -1
    return torch.where(opposite, -a, torch.div(a, torch.where(opposite, 1, b), rounding_mode="trunc"))


def float_remainder(a: Tensor, b: Tensor) -> Tensor:
    """`torch.fmod` of floats; single precision is widened, in which the quotient might overflow."""
    return (
        torch.fmod(a.to(torch.float64), b.to(torch.float64)).to(a.dtype)
        if a.dtype == torch.float32
        else torch.fmod(a, b)
    )


def float_modulo(a: Tensor, b: Tensor) -> Tensor:
    """The remainder of dividing floats, with the sign of the divisor, of zeros too, and right by infinities."""
    rest = float_remainder(a, b)
    rest = torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return torch.where(rest == 0, torch.copysign(rest, b), rest)


def power(x: Tensor, exponent: float) -> Tensor:
    """x ** exponent for every x: for 0.5 and -0.5 PyTorch takes the root, which differs at -0.0 and at -infinity."""
    return torch.pow(x, torch.full((), exponent, dtype=x.dtype, device=x.device))


def float_sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; NaN of NaN."""
    return torch.where(torch.isnan(x), x, torch.sign(x))


def uint64_shift_right(x: Tensor, amount: Tensor) -> Tensor:
    """A right shift of uint64 that fills with zeros."""
    by, signed = amount.view(torch.int64), x.view(torch.int64)
    return torch.where(by == 0, signed, ((signed >> 1) & (2**63 - 1)) >> (by - 1)).view(torch.uint64)


def string_equal(a: Any, b: Any, device: torch.device) -> Tensor:
    """Where two string arrays are equal."""
    return torch.from_numpy(np.asarray(a == b, dtype=bool)).to(device)


def string_where(test: Tensor, yes: Any, no: Any) -> Any:
    """Strings of `yes` where `test` is true, of `no` elsewhere."""
    return np.where(test.cpu().numpy(), yes, no)
