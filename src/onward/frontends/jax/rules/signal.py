"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.frontends.jax.dimensions import Dim
from onward.frontends.jax.registry import rule
from onward.frontends.jax.rules.complex_numbers import pair
from onward.frontends.jax.values import Value
from onward.frontends.jax.writer import Writer
from onward.frontends.lax import signal
from onward.graph.build import Tensor

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
"""By the number of a kind."""


@rule("fft", whole=True)
def fft(op: Writer, x: Value, *, fft_type: Any, fft_lengths: Sequence[Dim]) -> Value:
    kind = KINDS[int(fft_type)] if not hasattr(fft_type, "name") else str(fft_type.name)
    axes = len(fft_lengths)
    if kind == "RFFT":
        assert isinstance(x, Tensor)
        return signal.rfft(op, x, axes)
    if kind == "IRFFT":
        (length,) = op.numbers_of(fft_lengths[-1:], "the length of a Fourier transform")
        return signal.irfft(op, pair(op, x), axes, length)
    return signal.fft(op, pair(op, x), axes, kind == "IFFT")
