"""Fourier transforms and windows."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import given, options
from onward.backends.emit.emitter import Emitter, exact
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import dtype, ops, rule, torch

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@rule("DFT")
def dft(
    e: Emitter,
    x: Expr,
    dft_length: Expr | None = None,
    axis: Expr | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Expr:
    length, dim = number(e, dft_length), -2 if axis is None else number(e, axis)
    shape = e.shape(x)
    parts = None if shape is None else shape[-1]
    usual = parts == (2 if inverse else 1) if onesided or inverse else parts in (1, 2)
    if usual and shape is not None and e.dtype(x) in _WIDE and isinstance(dim, int):
        signal = x.squeeze(-1) if parts == 1 else torch.view_as_complex(x.contiguous())
        where = {"dim": dim + 1 if dim < 0 else dim}
        where = {} if where["dim"] in (-1, len(shape) - 2) else where
        size = {} if length is None else {"n": length}
        if inverse and onesided:
            return torch.fft.irfft(signal, **size, **where).unsqueeze(-1)
        function = torch.fft.ifft if inverse else torch.fft.rfft if onesided else torch.fft.fft
        return torch.view_as_real(function(signal, **size, **where))
    plain = isinstance(dim, int) and dim == -2
    keywords = options(length=length, axis=None if plain else dim, inverse=bool(inverse), onesided=bool(onesided))
    return ops.dft(x, **keywords)


@rule("STFT")
def stft(
    e: Emitter,
    signal: Expr,
    frame_step: Expr,
    window: Expr | None = None,
    frame_length: Expr | None = None,
    *,
    onesided: int = 1,
) -> Expr:
    sides = None if onesided else False
    keywords = given(window=window, frame_length=number(e, frame_length), onesided=sides)
    return ops.stft(signal, number(e, frame_step), **keywords)


def _window(e: Emitter, function: Expr, size: Expr, periodic: int, to: int, **more: float) -> Expr:
    """A window of PyTorch's own; it can make float ones only."""
    how: dict[str, Any] = {"periodic": bool(periodic)} if more or not periodic else {}
    wide = ir.DataType(to) in _WIDE
    kind = {"dtype": dtype(to)} if wide and to != ir.DataType.FLOAT else {}
    made = function(number(e, size), **how, **more, **kind, device=e.device)
    return made if wide else made.to(dtype(to))


@rule("HannWindow")
def hann_window(e: Emitter, size: Expr, *, output_datatype: int = 1, periodic: int = 1) -> Expr:
    return _window(e, torch.hann_window, size, periodic, output_datatype)


@rule("HammingWindow")
def hamming_window(e: Emitter, size: Expr, *, output_datatype: int = 1, periodic: int = 1) -> Expr:
    return _window(e, torch.hamming_window, size, periodic, output_datatype, alpha=25 / 46, beta=21 / 46)


@rule("BlackmanWindow")
def blackman_window(e: Emitter, size: Expr, *, output_datatype: int = 1, periodic: int = 1) -> Expr:
    return _window(e, torch.blackman_window, size, periodic, output_datatype)


@rule("MelWeightMatrix")
def mel_weight_matrix(
    e: Emitter,
    num_mel_bins: Expr,
    dft_length: Expr,
    sample_rate: Expr,
    lower_edge_hertz: Expr,
    upper_edge_hertz: Expr,
    *,
    output_datatype: int = 1,
) -> Expr:
    inputs = (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz)
    kind = {} if output_datatype == ir.DataType.FLOAT else {"dtype": dtype(output_datatype)}
    return ops.mel_weight_matrix(*(number(e, x) for x in inputs), **kind, device=e.device)


def number(e: Emitter, x: Expr | None) -> Any:
    """An input of one element as a Python number, or an expression for one."""
    if x is None:
        return None
    constant = e.const(x)
    if constant is not None:
        return exact(constant).reshape(-1)[0].item()
    found = e.numbers(x)
    return found[0] if isinstance(found, list) else x.item()
