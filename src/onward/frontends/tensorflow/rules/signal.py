"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Complex
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def transformed(op: Writer, x: Complex | Tensor, axis: int, inverse: bool = False, onesided: bool = False) -> Complex:
    """Along one axis, which counts from the end."""
    op.need(17, "a Fourier transform")
    if isinstance(x, Complex):
        both = op.Concat(op.unsqueeze(x.real, [-1]), op.unsqueeze(x.imaginary, [-1]), axis=-1)
    else:
        both = op.unsqueeze(x, [-1])
    where = op.rank(both, "the signal") - 1 + axis
    flags = {"inverse": int(inverse), "onesided": int(onesided)}
    y = op.DFT(both, None, op.index(where), **flags) if op.opset >= 20 else op.DFT(both, axis=where, **flags)
    return Complex(*(op.squeeze(op.Gather(y, op.ints([i]), axis=-1), [-1]) for i in (0, 1)))


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
        for axis in range(1, axes + 1):
            x = transformed(op, x, -axis, inverse)
        return x

    return function


def _of_real(axes: int) -> Callable[..., Complex]:
    def function(op: Writer, x: Tensor, lengths: Tensor) -> Complex:
        for i, size in enumerate(_each(op, lengths, axes)):
            x = fitted(op, x, size, i - axes)
        y = transformed(op, x, -1, onesided=True)
        for axis in range(2, axes + 1):
            y = transformed(op, y, -axis)
        return y

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
            half = transformed(op, half, -axis, inverse=True)
        rank = op.rank(half.real, "the signal")
        last = op.ints([rank - 1])

        def mirrored(part: Tensor) -> Tensor:
            return op.Slice(part, start, op.ints([0]), last, op.ints([-1]))

        full = Complex(
            op.Concat(half.real, mirrored(half.real), axis=-1),
            op.Concat(half.imaginary, -mirrored(half.imaginary), axis=-1),
        )
        return transformed(op, full, -1, inverse=True).real

    return function


for _axes, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    rule(f"FFT{_suffix}")(_plain(_axes, inverse=False))
    rule(f"IFFT{_suffix}")(_plain(_axes, inverse=True))
    rule(f"RFFT{_suffix}")(_of_real(_axes))
    rule(f"IRFFT{_suffix}")(_to_real(_axes))
