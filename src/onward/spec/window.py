"""Sliding windows, as convolutions and pools describe them: sizes, steps and padding of each spatial axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """One entry per spatial axis. `begin` and `end` are None where padding depends on sizes not known yet."""

    kernel: Ints
    strides: Ints
    dilations: Ints
    begin: Ints | None
    end: Ints | None
    same: str = ""
    """Padding is automatic; the larger half of an odd amount goes to the end ("upper") or the beginning ("lower")."""

    @property
    def lower(self) -> bool:
        return self.same == "lower"

    @property
    def extents(self) -> Ints:
        """How many elements a window spans, gaps included."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    @property
    def symmetric(self) -> bool:
        """Both ends of every axis are padded by the same known amount."""
        return self.begin is not None and self.begin == self.end

    @property
    def unpadded(self) -> bool:
        return self.begin is not None and not any((*self.begin, *(self.end or ())))


def window(
    kernel: Sequence[int],
    sizes: Sequence[int | None] | None,
    *,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    pool: bool = False,
) -> Window:
    """The window of a node over an input whose spatial `sizes` may be unknown."""
    rank = len(kernel)
    kernel = tuple(kernel)
    strides = tuple(strides or (1,) * rank)
    dilations = tuple(dilations or (1,) * rank)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        same = "lower" if auto_pad == "SAME_LOWER" else "upper"
        bare = Window(kernel, strides, dilations, None, None, same)
        spans = kernel if pool else bare.extents
        ends = [
            same_pads(size, span, stride, bare.lower, pool)
            for size, span, stride in zip(sizes or (None,) * rank, spans, strides, strict=True)
        ]
        if any(pair is None for pair in ends):
            return bare
        begin, end = zip(*(pair for pair in ends if pair is not None), strict=True)
        return Window(kernel, strides, dilations, begin, end, same)
    if auto_pad == "VALID" or not pads:
        begin = end = (0,) * rank
    else:
        begin, end = tuple(pads[:rank]), tuple(pads[rank:])
    return Window(kernel, strides, dilations, begin, end)


def same_pads(size: int | None, span: int, stride: int, lower: bool, pool: bool) -> tuple[int, int] | None:
    """The padding that leaves ceil(size / stride) windows, or None where it depends on an unknown size.

    A convolution never pads by less than nothing. A pool whose stride is larger than its kernel does: its windows
    lie in the middle. Nor does a pool know of dilations here. Both is what ONNX Runtime and ONNX's reference do.
    """
    if size is None:
        if stride > 1:
            return None
        size = span
    total = (-(-size // stride) - 1) * stride + span - size
    if not pool:
        total = max(total, 0)
    begin = int((total + 1) / 2) if lower else int(total / 2)
    return begin, total - begin


@dataclass(frozen=True)
class Transposed:
    """The window of a transposed convolution, the amount `begin` it cuts off the beginning of its output, and
    by how much its output is longer than one from whose end the same amount is cut (negative: shorter)."""

    window: Window
    begin: Ints
    extra: Ints


def transposed(
    kernel: Sequence[int],
    sizes: Sequence[int | None] | None,
    *,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    output_padding: Sequence[int] | None,
    output_shape: Sequence[int] | None,
) -> Transposed | None:
    """The window of a ConvTranspose node, or None where padding depends on a size not known yet."""
    explicit = pads if auto_pad == "NOTSET" else None
    win = window(kernel, None, strides=strides, dilations=dilations, pads=explicit, auto_pad="NOTSET")
    rank = len(kernel)
    more = tuple(output_padding or (0,) * rank)
    begin, end = win.begin or (0,) * rank, win.end or (0,) * rank
    if output_shape:
        known = [n for n in sizes or () if n is not None]
        if len(known) < rank:
            return None
        full = [(n - 1) * s + extent + m for n, s, extent, m in zip(known, win.strides, win.extents, more, strict=True)]
        cuts = [max(f - out, 0) for f, out in zip(full, output_shape[-rank:], strict=True)]
        begin = tuple(n // 2 if auto_pad == "SAME_UPPER" else n - n // 2 for n in cuts)
        end = tuple(f - out - b for f, out, b in zip(full, output_shape[-rank:], begin, strict=True))
    elif auto_pad.startswith("SAME"):
        cuts = [max(extent + m - s, 0) for s, extent, m in zip(win.strides, win.extents, more, strict=True)]
        begin = tuple(n // 2 if auto_pad == "SAME_UPPER" else n - n // 2 for n in cuts)
        end = tuple(n - b for n, b in zip(cuts, begin, strict=True))
    extra = tuple(m + b - c for m, b, c in zip(more, begin, end, strict=True))
    return Transposed(win, begin, extra)
