"""Fourier transforms of numbers held as (real, imaginary) pairs, and the mel scale."""

import math

import torch
from torch import Tensor


def to_complex(x: Tensor) -> Tensor:
    """The last axis, of one (real) or two elements, as one real or complex number."""
    if x.dtype not in (torch.float32, torch.float64):
        x = x.float()
    return x.squeeze(-1) if x.shape[-1] == 1 else torch.view_as_complex(x.contiguous())


def dft(x: Tensor, length: int | None = None, axis: int = -2, inverse: bool = False, onesided: bool = False) -> Tensor:
    """The discrete Fourier transform along an axis of `x`, whose last axis holds real and imaginary parts."""
    signal, dim = to_complex(x), axis % x.ndim
    y: Tensor
    if inverse and onesided:
        y = torch.fft.irfft(signal, length, dim).unsqueeze(-1)
    elif inverse:
        y = torch.view_as_real(torch.fft.ifft(signal, length, dim).resolve_conj())
    elif onesided and not signal.is_complex():
        y = torch.view_as_real(torch.fft.rfft(signal, length, dim))
    else:
        full = torch.fft.fft(signal, length, dim)
        y = torch.view_as_real(full.narrow(dim, 0, full.shape[dim] // 2 + 1) if onesided else full)
    return y.to(x.dtype)


def stft(
    signal: Tensor,
    frame_step: int,
    window: Tensor | None = None,
    frame_length: int | None = None,
    onesided: bool = True,
) -> Tensor:
    """The Fourier transform of each frame of a signal (batch, length, 1 or 2): (batch, frames, bins, 2)."""
    numbers = to_complex(signal)
    if frame_length is None:
        frame_length = numbers.shape[1] if window is None else window.shape[0]
    frames = numbers.unfold(1, frame_length, frame_step)
    if window is not None:
        frames = frames * window.to(signal.dtype)
    if onesided and not frames.is_complex():
        y = torch.fft.rfft(frames)
    else:
        y = torch.fft.fft(frames)[..., : frame_length // 2 + 1 if onesided else None]
    return torch.view_as_real(y).to(signal.dtype)


def mel_weight_matrix(
    mel_bins: int,
    dft_length: int,
    sample_rate: int,
    lower_hertz: float,
    upper_hertz: float,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> Tensor:
    """The matrix that turns a spectrum of dft_length // 2 + 1 frequencies into one of `mel_bins` triangles."""
    low, high = (2595 * math.log10(1 + hertz / 700) for hertz in (lower_hertz, upper_hertz))
    step = (high - low) / (mel_bins + 2)
    corners = [
        math.floor((dft_length + 1) * 700 * (10 ** ((i * step + low) / 2595) - 1) / sample_rate)
        for i in range(mel_bins + 2)
    ]
    weights = torch.zeros(dft_length // 2 + 1, mel_bins, dtype=torch.float64)
    for i, (start, peak, end) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
        for j in range(start, peak + 1):
            weights[j, i] = (j - start) / (peak - start) if peak > start else 1.0
        for j in range(peak, end):
            weights[j, i] = (end - j) / (end - peak)
    return weights.to(dtype).to(device)
