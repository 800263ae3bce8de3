"""Fourier transforms and windows."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.numbers import scalar
from onward.backends.jax.target import dtype, ops, rule
from onward.spec.signal import DFT, STFT, CosineWindow, Made


@rule("DFT")
def dft(e: Emitter, x: Expr, dft_length: Expr | None = None, axis: Expr | None = None, *, p: DFT) -> Expr:
    along = -2 if axis is None else scalar(e, axis)
    keywords = given(
        length=None if dft_length is None else scalar(e, dft_length),
        axis=None if isinstance(along, int) and along == -2 else along,
    )
    return ops.dft(x, **keywords, **changed(p, "inverse", "onesided"))


@rule("STFT")
def stft(
    e: Emitter, signal: Expr, frame_step: Expr, window: Expr | None = None, frame_length: Expr | None = None, *, p: STFT
) -> Expr:
    keywords = given(window=window, frame_length=None if frame_length is None else scalar(e, frame_length))
    return ops.stft(signal, scalar(e, frame_step), **keywords, **changed(p, "onesided"))


def _window(op: str, *coefficients: float) -> None:
    """A window that is a sum of cosines: its coefficients."""

    @rule(op)
    def apply(e: Emitter, size: Expr, p: CosineWindow) -> Expr:
        return ops.cosine_window(scalar(e, size), coefficients, **changed(p, "periodic"), **_typed(p))


def _typed(p: Made) -> dict[str, Expr]:
    """The dtype to make, where it has to be said."""
    return {} if p.output_datatype == ir.DataType.FLOAT else {"dtype": dtype(p.output_datatype)}


_window("HannWindow", 0.5, -0.5)
_window("HammingWindow", 25 / 46, -21 / 46)
_window("BlackmanWindow", 0.42, -0.5, 0.08)


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
    return ops.mel_weight_matrix(*(scalar(e, x) for x in inputs), **_typed(p))
