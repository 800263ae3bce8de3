"""Fourier transforms and windows by helpers, which are named alike in every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.spec.signal import DFT, STFT, CosineWindow, Made

Number = Callable[[Emitter, Expr, ir.DataType], Any]
"""An input that holds one number, which a backend knows in a type: as that number, or as an expression for it."""

WINDOWS = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
"""The coefficients of windows that are sums of cosines."""


def rules(number: Number) -> dict[str, Rule]:
    """The rules of a backend that knows numbers so."""

    def count(e: Emitter, x: Expr | None) -> Any:
        return None if x is None else number(e, x, ir.DataType.INT64)

    def dft(e: Emitter, x: Expr, dft_length: Expr | None = None, axis: Expr | None = None, *, p: DFT) -> Expr:
        along = count(e, axis)
        axis_option = None if isinstance(along, int) and along == -2 else along
        return ops.dft(x, **given(length=count(e, dft_length), axis=axis_option), **changed(p, "inverse", "onesided"))

    def stft(
        e: Emitter, x: Expr, step: Expr, window: Expr | None = None, frame_length: Expr | None = None, *, p: STFT
    ) -> Expr:
        keywords = given(window=window, frame_length=count(e, frame_length))
        return ops.stft(x, count(e, step), **keywords, **changed(p, "onesided"))

    def window(coefficients: tuple[float, ...]) -> Rule:
        def made(e: Emitter, size: Expr, p: CosineWindow) -> Expr:
            return ops.cosine_window(count(e, size), list(coefficients), **changed(p, "periodic"), **_typed(e, p))

        return made

    def mel_weight_matrix(
        e: Emitter, bins: Expr, dft_length: Expr, sample_rate: Expr, lower: Expr, upper: Expr, p: Made
    ) -> Expr:
        counts = (count(e, x) for x in (bins, dft_length, sample_rate))
        edges = (number(e, x, ir.DataType.DOUBLE) for x in (lower, upper))
        return ops.mel_weight_matrix(*counts, *edges, **_typed(e, p))

    windows = {op: window(coefficients) for op, coefficients in WINDOWS.items()}
    return {"DFT": dft, "STFT": stft, "MelWeightMatrix": mel_weight_matrix, **windows}


def _typed(e: Emitter, p: Made) -> dict[str, Expr]:
    """The dtype to make, where it has to be said."""
    return {} if p.output_datatype == ir.DataType.FLOAT else {"dtype": e.target.dtype(p.output_datatype)}
