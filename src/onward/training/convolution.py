"""Convolutions seen from both sides: from big to small, from small to big, and from both to the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onward.spec.window import Window
from onward.training.build import Tensor
from onward.training.windows import Ints, covered, moved, spatial

ALL = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Convolution:
    """How the big side (the input of a Conv, the output of a ConvTranspose) and the small side lie on each other.

    The weights are [small channels, big channels / group, *kernel] in both ops. `begin` is what is padded before the
    big side, so that the windows cover it.
    """

    window: Window
    kernel: Ints
    begin: Ints
    group: int
    rank: int

    def full(self, small: Tensor) -> Ints:
        """What all windows span: the size of the big side with its padding."""
        return covered(spatial(small, self.rank), self.kernel, self.window)

    def padding(self, big: Ints, full: Ints) -> tuple[list[int], list[int]] | None:
        """The padding before and after the big side, a negative one being elements that no window reaches; None where
        it is not known, or the beginning is cut off."""
        end = full - self.begin - big
        if self.begin.known is None or end.known is None or min(self.begin.known) < 0:
            return None
        return self.begin.known, end.known

    def to_small(self, big: Tensor, weights: Tensor, small: Tensor) -> Tensor:
        """The convolution, of the size of `small`."""
        op, full = big.op, self.full(small)
        pads = self.padding(spatial(big, self.rank), full)
        strides, dilations = list(self.window.strides), list(self.window.dilations)
        given = {"strides": strides, "dilations": dilations, "group": self.group}
        if pads is not None and all(-end < stride for end, stride in zip(pads[1], strides, strict=True)):
            return op.Conv(big, weights, pads=[*pads[0], *(max(end, 0) for end in pads[1])], **given)
        return op.Conv(moved(big, self.begin, full, self.rank), weights, **given)

    def to_big(self, small: Tensor, weights: Tensor, sizes: Ints) -> Tensor:
        """The transposed convolution, of the given sizes."""
        op, full = small.op, self.full(small)
        pads = self.padding(sizes, full)
        strides, dilations = list(self.window.strides), list(self.window.dilations)
        if pads is not None and self._is_pointwise(pads) and self.group == 1:
            return op.Conv(small, op.Transpose(weights, perm=[1, 0, *range(2, self.rank + 2)]))
        given = {"strides": strides, "dilations": dilations, "group": self.group}
        if pads is not None and all(-end < stride for end, stride in zip(pads[1], strides, strict=True)):
            begin, end = pads
            more = [max(-n, 0) for n in end]
            return op.ConvTranspose(
                small,
                weights,
                pads=[*begin, *(max(n, 0) for n in end)],
                output_padding=more if any(more) else None,
                **given,
            )
        return moved(op.ConvTranspose(small, weights, **given), -self.begin, sizes, self.rank)

    def _is_pointwise(self, pads: tuple[list[int], list[int]]) -> bool:
        """Every element of the small side comes from the one at the same place of the big side."""
        return self.kernel.is_(1) and set(self.window.strides) == {1} and not any((*pads[0], *pads[1]))

    def to_weights(self, big: Tensor, small: Tensor, like: Tensor) -> Tensor:
        """What each weight contributes: products of both sides summed over all places and the batch."""
        return self._swapped(big, small)

    def _swapped(self, big: Tensor, small: Tensor) -> Tensor:
        """The small side as the kernel: the form for kernels of unknown sizes."""
        op, full = big.op, self.full(small)
        strides, dilations = list(self.window.strides), list(self.window.dilations)
        pads = self.padding(spatial(big, self.rank), full)
        attribute = None
        if pads is not None and min(pads[1]) >= 0:
            attribute = [*pads[0], *pads[1]]
        else:
            big = moved(big, self.begin, full, self.rank)
        found = op.Conv(
            self._channels_first(big),
            op.Transpose(small, perm=[1, 0, *range(2, self.rank + 2)]),
            strides=dilations,
            dilations=strides,
            pads=attribute,
            group=self.group,
        )
        return op.Transpose(found, perm=[1, 0, *range(2, self.rank + 2)])

    def _channels_first(self, big: Tensor) -> Tensor:
        """[channels of a group, group * batch, ...]."""
        op, rest = big.op, range(self.rank)
        if self.group == 1:
            return op.Transpose(big, perm=[1, 0, *(2 + i for i in rest)])
        sizes = spatial(big, self.rank).tensor
        apart = op.Reshape(big, op.Concat(op.ints([0, self.group, -1]), sizes, axis=0))
        turned = op.Transpose(apart, perm=[2, 1, 0, *(3 + i for i in rest)])
        return op.Reshape(turned, op.Concat(op.ints([0, -1]), sizes, axis=0))
