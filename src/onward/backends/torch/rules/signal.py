"""Fourier transforms and windows."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter, exact
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import dtype, ops, rule, torch
from onward.spec.signal import DFT, STFT, CosineWindow, Made

_WIDE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@rule("DFT")
def dft(e: Emitter, x: Expr, dft_length: Expr | None = None, axis: Expr | None = None, *, p: DFT) -> Expr:
    length, dim = number(e, dft_length), -2 if axis is None else number(e, axis)
    shape = e.shape(x)
    parts = None if shape is None else shape[-1]
    usual = parts == (2 if p.inverse else 1) if p.onesided or p.inverse else parts in (1, 2)
    if usual and shape is not None and e.dtype(x) in _WIDE and isinstance(dim, int):
        signal = x.squeeze(-1) if parts == 1 else torch.view_as_complex(x.contiguous())
        where = {"dim": dim + 1 if dim < 0 else dim}
        where = {} if where["dim"] in (-1, len(shape) - 2) else where
        size = {} if length is None else {"n": length}
        if p.inverse and p.onesided:
            return torch.fft.irfft(signal, **size, **where).unsqueeze(-1)
        function = torch.fft.ifft if p.inverse else torch.fft.rfft if p.onesided else torch.fft.fft
        return torch.view_as_real(function(signal, **size, **where))
    plain = isinstance(dim, int) and dim == -2
    return ops.dft(x, **given(length=length, axis=None if plain else dim), **changed(p, "inverse", "onesided"))


@rule("STFT")
def stft(
    e: Emitter, signal: Expr, frame_step: Expr, window: Expr | None = None, frame_length: Expr | None = None, *, p: STFT
) -> Expr:
    keywords = given(window=window, frame_length=number(e, frame_length))
    return ops.stft(signal, number(e, frame_step), **keywords, **changed(p, "onesided"))


def _window(op: str, function: Expr, **more: float) -> None:
    """A window of PyTorch's own; it can make float ones only."""

    @rule(op)
    def apply(e: Emitter, size: Expr, p: CosineWindow) -> Expr:
        to = ir.DataType(p.output_datatype)
        how = {"periodic": p.periodic} if more or not p.periodic else {}
        kind = {"dtype": dtype(to)} if to == ir.DataType.DOUBLE else {}
        made = function(number(e, size), **how, **more, **kind, device=e.device)
        return made if to in _WIDE else made.to(dtype(to))


_window("HannWindow", torch.hann_window)
_window("HammingWindow", torch.hamming_window, alpha=25 / 46, beta=21 / 46)
_window("BlackmanWindow", torch.blackman_window)


@rule("MelWeightMatrix")
def mel_weight_matrix(
    e: Emitter,
    num_mel_bins: Expr,
    dft_length: Expr,
    sample_rate: Expr,
    lower_edge_hertz: Expr,
    upper_edge_hertz: Expr,
    p: Made,
) -> Expr:
    inputs = (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz)
    kind = {} if p.output_datatype == ir.DataType.FLOAT else {"dtype": dtype(p.output_datatype)}
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
