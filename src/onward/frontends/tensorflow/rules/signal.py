"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable

from onward.frontends.lax import signal
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Complex
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def fitted(op: Writer, x: Tensor, length: Tensor, axis: int) -> Tensor:
    """Cut, or filled up with zeros, to a length, which is a vector of one."""
    rank = op.rank(x, "the signal")
    place = rank + axis
    size, known = x.dims[place] if x.dims is not None else None, op.known(length)
    if known is not None and size == known[0]:
        return x
    cut = op.Slice(x, op.ints([0]), length, op.ints([place]))
    if known is not None and isinstance(size, int) and size > known[0]:
        return cut
    missing = length - op.Gather(op.Shape(cut), op.ints([place]))
    behind = op.Concat(op.ints([0] * (rank + place)), missing, op.ints([0] * (rank - place - 1)), axis=0)
    return op.Pad(cut, behind)


def _each(op: Writer, lengths: Tensor, count: int) -> list[Tensor]:
    """The length along each axis, as a vector of one."""
    known, whole = op.known(lengths), op.int64(lengths)
    if known is not None:
        return [op.ints([int(n)]) for n in known]
    return [op.Slice(whole, op.ints([i]), op.ints([i + 1])) for i in range(count)]


def _plain(axes: int, inverse: bool) -> Callable[..., Complex]:
    def function(op: Writer, x: Complex) -> Complex:
        return signal.fft(op, x, axes, inverse)

    return function


def _of_real(axes: int) -> Callable[..., Complex]:
    def function(op: Writer, x: Tensor, lengths: Tensor) -> Complex:
        for i, size in enumerate(_each(op, lengths, axes)):
            x = fitted(op, x, size, i - axes)
        return signal.rfft(op, x, axes)

    return function


def _to_real(axes: int) -> Callable[..., Tensor]:
    def function(op: Writer, x: Complex, lengths: Tensor) -> Tensor:
        """The half that is left out mirrors the one that is there."""
        sizes = _each(op, lengths, axes)
        known = op.known(sizes[-1])
        if known is None:
            half_size = op.Div(sizes[-1], op.ints([2])) + op.ints([1])
            start = op.Div(sizes[-1] - op.ints([1]), op.ints([2]))
        else:
            half_size, start = op.ints([int(known[0]) // 2 + 1]), op.ints([(int(known[0]) - 1) // 2])
        wanted = [*sizes[:-1], half_size]
        parts = [x.real, x.imaginary]
        for i, size in enumerate(wanted):
            parts = [fitted(op, part, size, i - axes) for part in parts]
        half = Complex(*parts)
        for axis in range(2, axes + 1):
            half = signal.transformed(op, half, -axis, inverse=True)
        return signal.transformed(op, signal.mirrored(op, half, start), -1, inverse=True).real

    return function


for _axes, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    rule(f"FFT{_suffix}")(_plain(_axes, inverse=False))
    rule(f"IFFT{_suffix}")(_plain(_axes, inverse=True))
    rule(f"RFFT{_suffix}")(_of_real(_axes))
    rule(f"IRFFT{_suffix}")(_to_real(_axes))
