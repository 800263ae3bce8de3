"""Gradients of Fourier transforms: linear maps, whose transposes are transforms the other way."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.build import Builder, Tensor
from onward.spec.signal import DFT, STFT
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp
from onward.training.autodiff.vjp.elementwise import constant_of
from onward.training.autodiff.vjp.index import gather


@vjp("DFT")
def dft(
    c: Context, g: Tensor, x: Tensor, length: Tensor | None = None, axis: Tensor | None = None, *, p: DFT
) -> Gradients:
    """The input may be longer than the transform, which then cuts it, or shorter, and is filled up with zeros."""
    op = c.op
    if p.inverse and p.onesided:
        raise c.refuse("it is an inverse transform of one side")
    along = op.index(-2) if axis is None else axis
    at = constant_of(along)
    if at is None or x.rank is None:
        raise c.refuse("the axis is not a constant, or the rank of the input is not known")
    place = int(at.flat[0]) % x.rank
    size = op.Shape(x, start=place, end=place + 1)
    count = op.Squeeze(size, op.ints([0])) if length is None else length.cast(size.dtype)
    back = transposed(g, op.Reshape(count, op.ints([])), along, p.inverse)
    back = op.Slice(back, op.ints([0]), op.Shape(x, start=-1), op.ints([-1]))
    if length is None:
        return back
    taken = op.Slice(back, op.ints([0]), size, op.ints([place]))
    rest = op.Concat(op.ints([0]), size - op.Shape(taken, start=place, end=place + 1), axis=0)
    return op.Pad(taken, rest, None, op.ints([place]))


def transposed(g: Tensor, count: Tensor, axis: Tensor, inverse: bool = False) -> Tensor:
    """The transpose of a transform of `count` elements (a scalar); one side of the result may be all there is."""
    factor = count.cast(g.dtype)
    found = g.op.DFT(g, count, axis, inverse=int(not inverse))
    return found / factor if inverse else found * factor


@vjp("STFT")
def stft(
    c: Context,
    g: Tensor,
    signal: Tensor,
    frame_step: Tensor,
    window: Tensor | None = None,
    frame_length: Tensor | None = None,
    *,
    p: STFT,
) -> Gradients:
    """Frames that overlap are added up where they were taken."""
    op = c.op
    if frame_length is not None:
        count = op.Reshape(frame_length, op.ints([])).cast(ir.DataType.INT64)
    elif window is not None:
        count = op.Squeeze(op.Shape(window), op.ints([0]))
    else:
        raise c.refuse("it has neither a window nor a length of frames")
    places = _places(op, op.Squeeze(op.Shape(g, start=1, end=2), op.ints([0])), frame_step, count)
    frames = transposed(g, count, op.index(2))
    frames = op.Slice(frames, op.ints([0]), op.Shape(signal, start=-1), op.ints([-1]))
    if window is None:
        return gather(c, frames, signal, places, axis=1)
    weights = op.Unsqueeze(window, op.ints([1]))
    of_window = op.sum(frames * op.Gather(signal, places, axis=1), [0, 1, 3], keepdims=False)
    of_signal = gather(c, frames * weights, signal, places, axis=1)
    assert isinstance(of_signal, Tensor)
    return of_signal, None, of_window


def _places(op: Builder, frames: Tensor, step: Tensor, count: Tensor) -> Tensor:
    """Which samples each frame has: frames by samples."""
    zero, one = op.index(0), op.index(1)
    starts = op.Range(zero, frames, one) * op.Reshape(step, op.ints([])).cast(ir.DataType.INT64)
    return op.Unsqueeze(starts, op.ints([1])) + op.Range(zero, count, one)


no_gradient("made from whole numbers alone", "HannWindow", "HammingWindow", "BlackmanWindow")
no_gradient("bounds are rounded to whole bins: constant between its steps", "MelWeightMatrix")
