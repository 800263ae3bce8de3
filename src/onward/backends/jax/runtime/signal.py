"""Fourier transforms of numbers held as (real, imaginary) pairs, windows, and the mel scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def to_complex(x: Array) -> Array:
    """The last axis, of one (real) or two elements, as one real or complex number."""
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return x[..., 0] if x.shape[-1] == 1 else lax.complex(x[..., 0], x[..., 1])


def to_pairs(x: Array) -> Array:
    """Complex numbers with their real and imaginary parts along a new last axis."""
    return jnp.stack([x.real, x.imag], -1)


def dft(x: Array, length: int | None = None, axis: int = -2, inverse: bool = False, onesided: bool = False) -> Array:
    """The discrete Fourier transform along an axis of `x`, whose last axis holds real and imaginary parts."""
    signal, dim = to_complex(x), axis % x.ndim
    if inverse and onesided:
        y = jnp.fft.irfft(signal, length, dim)[..., None]
    elif inverse:
        y = to_pairs(jnp.fft.ifft(signal, length, dim))
    else:
        y = jnp.moveaxis(to_pairs(spectrum(jnp.moveaxis(signal, dim, -1), length, onesided)), -2, dim)
    return y.astype(x.dtype)


def spectrum(x: Array, length: int | None, onesided: bool) -> Array:
    """The Fourier transform of real or complex numbers along the last axis, or its first half."""
    size = x.shape[-1] if length is None else length
    if jnp.iscomplexobj(x):
        return jnp.fft.fft(x, size)[..., : size // 2 + 1 if onesided else size]
    half = jnp.fft.rfft(x, size)  # exact where the spectrum of a real signal is real
    mirrored = jnp.conj(half[..., 1 : (size + 1) // 2][..., ::-1])
    return half if onesided else jnp.concatenate([half, mirrored], -1)


def stft(
    signal: Array,
    frame_step: int,
    window: Array | None = None,
    frame_length: int | None = None,
    onesided: bool = True,
) -> Array:
    """The Fourier transform of each frame of a signal (batch, length, 1 or 2): (batch, frames, bins, 2)."""
    numbers = to_complex(signal)
    if frame_length is None:
        frame_length = numbers.shape[1] if window is None else window.shape[0]
    count = (numbers.shape[1] - frame_length) // frame_step + 1
    frames = numbers[:, np.arange(count)[:, None] * frame_step + np.arange(frame_length)]
    if window is not None:
        frames = frames * window.astype(signal.dtype)
    return to_pairs(spectrum(frames, None, onesided)).astype(signal.dtype)


def cosine_window(size: int, coefficients: Sequence[float], periodic: bool = True, dtype: Any = jnp.float32) -> Array:
    """A sum of cosines over one period, which ends after the last element, or with it if not periodic."""
    angle = 2 * math.pi * np.arange(size) / (size if periodic else max(size - 1, 1))
    total = sum(coefficient * np.cos(i * angle) for i, coefficient in enumerate(coefficients))
    exact = np.asarray(total, np.float64)
    made = exact if jnp.issubdtype(dtype, jnp.floating) else exact.astype(np.float32)  # a peak of almost 1 is 1
    return jnp.asarray(made.astype(dtype))


def mel_weight_matrix(
    mel_bins: int,
    dft_length: int,
    sample_rate: int,
    lower_hertz: float,
    upper_hertz: float,
    dtype: Any = jnp.float32,
) -> Array:
    """The matrix that turns a spectrum of dft_length // 2 + 1 frequencies into one of `mel_bins` triangles."""
    low, high = (2595 * math.log10(1 + hertz / 700) for hertz in (lower_hertz, upper_hertz))
    step = (high - low) / (mel_bins + 2)
    corners = [
        math.floor((dft_length + 1) * 700 * (10 ** ((i * step + low) / 2595) - 1) / sample_rate)
        for i in range(mel_bins + 2)
    ]
    weights = np.zeros((dft_length // 2 + 1, mel_bins))
    for i, (start, peak, end) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
        for j in range(start, peak + 1):
            weights[j, i] = (j - start) / (peak - start) if peak > start else 1.0
        for j in range(peak, end):
            weights[j, i] = (end - j) / (end - peak)
    return jnp.asarray(weights.astype(dtype))
