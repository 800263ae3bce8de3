"""Fourier transforms."""

from __future__ import annotations

from onward.frontends.lax.sizes import part
from onward.frontends.tensorflow.values import Complex
from onward.frontends.writer import Writer
from onward.graph.build import Tensor


def transformed(op: Writer, x: Complex | Tensor, axis: int, inverse: bool = False, onesided: bool = False) -> Complex:
    """Along one axis, which counts from the end."""
    if isinstance(x, Complex):
        both = op.Concat(op.unsqueeze(x.real, [-1]), op.unsqueeze(x.imaginary, [-1]), axis=-1)
    else:
        both = op.unsqueeze(x, [-1])
    where = op.rank(both, "the signal") - 1 + axis
    flags = {"inverse": int(inverse), "onesided": int(onesided)}
    y = op.DFT(both, None, op.index(where), **flags)
    return Complex(*(op.squeeze(op.Gather(y, op.ints([i]), axis=-1), [-1]) for i in (0, 1)))


def fft(op: Writer, x: Complex, axes: int, inverse: bool) -> Complex:
    """Along the last axes."""
    for axis in range(1, axes + 1):
        x = transformed(op, x, -axis, inverse)
    return x


def rfft(op: Writer, x: Tensor, axes: int) -> Complex:
    """Of real numbers along the last axes, of the last of which one half is left out."""
    y = transformed(op, x, -1, onesided=True)
    for axis in range(2, axes + 1):
        y = transformed(op, y, -axis)
    return y


def mirrored(op: Writer, half: Complex, begin: Tensor) -> Complex:
    """With the half that is left out, from this place on backwards: it mirrors the one that is there."""
    last = op.ints([op.rank(half.real, "the signal") - 1])

    def other(x: Tensor) -> Tensor:
        return op.Slice(x, begin, op.ints([0]), last, op.ints([-1]))

    return Complex(
        op.Concat(half.real, other(half.real), axis=-1),
        op.Concat(half.imaginary, -other(half.imaginary), axis=-1),
    )


def irfft(op: Writer, x: Complex, axes: int, length: int) -> Tensor:
    """Back to so many real numbers."""
    for axis in range(2, axes + 1):
        x = transformed(op, x, -axis, inverse=True)
    whole = x if length <= 2 else mirrored(op, x, op.ints([(length - 1) // 2]))
    if length == 1:
        rank = op.rank(x.real, "the signal")
        whole = Complex(part(op, x.real, rank - 1, 0, 1), part(op, x.imaginary, rank - 1, 0, 1))
    return transformed(op, whole, -1, inverse=True).real
