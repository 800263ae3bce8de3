"""Layers of images."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.errors import UnsupportedError
from onward.spec.conv import Conv
from onward.spec.norm import BatchNorm
from onward_numpy.target import rule


@rule("Conv")
def conv(e: Emitter, x: Expr, weight: Expr, bias: Expr | None = None, *, p: Conv) -> Expr:
    win = p.window
    if win is None or win.begin is None or win.end is None:
        raise UnsupportedError("the padding depends on sizes that are not known")
    pads = tuple(zip(win.begin, win.end, strict=True))
    return ops.convolve(x, weight, bias, win.strides, win.dilations, pads, p.group)


@rule("BatchNormalization")
def batch_norm(e: Emitter, x: Expr, scale: Expr, bias: Expr, mean: Expr, var: Expr, p: BatchNorm) -> Expr:
    if p.training_mode:
        raise UnsupportedError("NumPy has no training mode")
    return ops.batch_norm(x, scale, bias, mean, var, p.epsilon)
