"""Fourier transforms and windows."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.target import Rule
from onward.backends.matlab.target import axis_dim, class_of, ops, rank_of, row, rule, take
from onward.backends.shared.signal import WINDOWS
from onward.spec.signal import DFT, STFT, CosineWindow, Made


def number(e: Emitter, x: Expr | None) -> Any:
    """An input of one number: that number, or the array of one; None where there is none."""
    found = None if x is None else e.scalar(x, 1)
    return x if found is None else found


@rule("DFT")
def dft(e: Emitter, x: Expr, dft_length: Expr | None = None, axis: Expr | None = None, *, p: DFT) -> Expr:
    along: Any = -2 if axis is None else number(e, axis)
    rank = rank_of(e, x)
    dim = axis_dim(e, x, along) if isinstance(along, int) else ops.axes_to_dims(along, rank, True)
    return ops.dft(x, dim, number(e, dft_length), p.inverse, p.onesided)


@rule("STFT")
def stft(
    e: Emitter, x: Expr, step: Expr, window: Expr | None = None, frame_length: Expr | None = None, *, p: STFT
) -> Expr:
    return ops.stft(x, number(e, step), window, number(e, frame_length), p.onesided)


def _window(coefficients: tuple[float, ...]) -> Rule:
    def made(e: Emitter, size: Expr, p: CosineWindow) -> Expr:
        return ops.cosine_window(number(e, size), row(coefficients), p.periodic, class_of(p.output_datatype))

    return made


take({op: _window(coefficients) for op, coefficients in WINDOWS.items()})


@rule("MelWeightMatrix")
def mel_weight_matrix(
    e: Emitter, bins: Expr, dft_length: Expr, sample_rate: Expr, lower: Expr, upper: Expr, p: Made
) -> Expr:
    numbers = [number(e, x) for x in (bins, dft_length, sample_rate, lower, upper)]
    return ops.mel_weight_matrix(*numbers, class_of(p.output_datatype))
