"""Convolutions seen from both sides: from big to small, from small to big, and from both to the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from onward.spec.window import Window
from onward.training.build import Tensor
from onward.training.windows import Ints, covered, moved, spatial

ALL = np.iinfo(np.int64).max
FEW_CHANNELS, FEW_PLACES, MANY_TAPS = 4, 16, 64
"""Where one form of a gradient becomes faster than another, or its graph too long."""

Form = Callable[[Tensor, Tensor, list[int]], Tensor]
"""Of the big side, the small side and the sizes of the weights."""


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

    def padded(self, big: Tensor, small: Tensor, slack: Sequence[int]) -> tuple[Tensor, list[int] | None]:
        """The big side and the padding for a node to add; padded already, where a node cannot, or more than `slack`
        elements at an end are beyond all windows."""
        pads = self.padding(spatial(big, self.rank), self.full(small))
        if pads is not None and all(-end <= most for end, most in zip(pads[1], slack, strict=True)):
            return big, [*pads[0], *(max(end, 0) for end in pads[1])]
        return self._padded(big, small), None

    def to_small(self, big: Tensor, weights: Tensor, small: Tensor) -> Tensor:
        """The convolution, of the size of `small`."""
        strides, dilations = list(self.window.strides), list(self.window.dilations)
        big, pads = self.padded(big, small, [stride - 1 for stride in strides])
        return big.op.Conv(big, weights, pads=pads, strides=strides, dilations=dilations, group=self.group)

    def to_big(self, small: Tensor, weights: Tensor, sizes: Ints) -> Tensor:
        """The transposed convolution, of the given sizes."""
        op, full = small.op, self.full(small)
        pads = self.padding(sizes, full)
        strides, dilations = list(self.window.strides), list(self.window.dilations)
        if pads is not None and self._is_pointwise(pads) and self.group == 1:
            return op.Conv(small, op.Transpose(weights, perm=[1, 0, *range(2, self.rank + 2)]))
        if self._is_small(small, weights):
            return self._from_columns(small, weights, sizes)
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

    def _is_small(self, small: Tensor, weights: Tensor) -> bool:
        """So few places that one product over the whole batch beats one a sample."""
        places = spatial(small, self.rank).known
        if weights.sizes is None or places is None or self.group > 1 or set(self.window.strides) != {1}:
            return False
        taps = math.prod(weights.sizes[2:])
        return math.prod(places) <= FEW_PLACES and taps <= MANY_TAPS and weights.sizes[0] > 4 * FEW_CHANNELS

    def _from_columns(self, small: Tensor, weights: Tensor, sizes: Ints) -> Tensor:
        """What each place of the small side gives through each tap, moved there and added up; channels last."""
        op, places = small.op, list(range(2, self.rank + 2))
        assert weights.sizes is not None
        outputs, channels, *kernel = weights.sizes
        last = op.Transpose(small, perm=[0, *places, 1])
        matrix = op.Reshape(op.Transpose(weights, perm=[0, *places, 1]), op.ints([outputs, -1]))
        shape = op.Concat(op.Shape(last, end=-1), op.ints([math.prod(kernel) * channels]), axis=0)
        product = op.Reshape(op.Reshape(last, op.ints([-1, outputs])) @ matrix, shape)
        parts = op.many("Split", math.prod(kernel), product, axis=-1, num_outputs=math.prod(kernel))
        total = op.total([self._at_tap(part, tap) for part, tap in zip(parts, np.ndindex(*kernel), strict=True)])
        return moved(
            op.Transpose(total, perm=[0, self.rank + 1, *range(1, self.rank + 1)]), -self.begin, sizes, self.rank
        )

    def _at_tap(self, part: Tensor, tap: tuple[int, ...]) -> Tensor:
        """What goes through one tap, in place among all that the windows span; channels last."""
        assert self.kernel.known is not None
        before = [i * d for i, d in zip(tap, self.window.dilations, strict=True)]
        after = [(n - 1) * d - b for n, d, b in zip(self.kernel.known, self.window.dilations, before, strict=True)]
        return part.op.Pad(part, part.op.ints([0, *before, 0, 0, *after, 0]))

    def _is_pointwise(self, pads: tuple[list[int], list[int]]) -> bool:
        """Every element of the small side comes from the one at the same place of the big side."""
        return self.kernel.is_(1) and set(self.window.strides) == {1} and not any((*pads[0], *pads[1]))

    def to_weights(self, big: Tensor, small: Tensor, like: Tensor) -> Tensor:
        """What each weight contributes: products of both sides summed over all places and the batch."""
        if like.sizes is None or self.kernel.known is None or math.prod(self.kernel.known) > MANY_TAPS:
            return self._swapped(big, small)
        form = self._weight_form(big, small, like.sizes)
        return big.op.Reshape(form(big, small, like.sizes), like.shape)

    def _weight_form(self, big: Tensor, small: Tensor, like: list[int]) -> Form:
        """The fastest form for weights of the sizes `like`, as benchmarks/gradients.py measures them."""
        channels, taps, places = like[1], math.prod(like[2:]), spatial(small, self.rank).known
        if taps == 1:
            return self._by_places
        if self.group > 1 and channels > 1:
            return self._by_places
        if self.group > 1:
            width = spatial(small, self.rank).known
            if width is not None and self.rank == 2 and set(self.window.strides) == {1}:
                return self._by_rows
            known = big.dims is not None and isinstance(big.dims[0], int)
            return self._by_planes if known else lambda big, small, like: self._swapped(big, small)
        if channels <= FEW_CHANNELS:
            return self._by_columns
        few = places is not None and math.prod(places) <= FEW_PLACES
        return self._by_joined_taps if few else self._by_taps

    def _taps(self, x: Tensor, first: int) -> list[Tensor]:
        """What each tap of the kernel meets of the padded big side, whose spatial axes begin at `first`."""
        op, found = x.op, []
        assert self.kernel.known is not None
        axes = op.ints(range(first, first + self.rank))
        for tap in np.ndindex(*self.kernel.known):
            starts = [i * d for i, d in zip(tap, self.window.dilations, strict=True)]
            rests = [(n - 1 - i) * d for n, i, d in zip(self.kernel.known, tap, self.window.dilations, strict=True)]
            ends = [-rest if rest else ALL for rest in rests]
            still = not any(starts) and set(ends) == {ALL} and set(self.window.strides) == {1}
            found.append(x if still else op.Slice(x, starts, ends, axes, list(self.window.strides)))
        return found

    def _padded(self, big: Tensor, small: Tensor) -> Tensor:
        return moved(big, self.begin, self.full(small), self.rank)

    def _rows(self, big: Tensor, small: Tensor) -> tuple[list[Tensor], Tensor]:
        """What each tap meets, channels last, and the small side, channels first."""
        op, places = big.op, range(2, self.rank + 2)
        taps = self._taps(op.Transpose(self._padded(big, small), perm=[0, *places, 1]), 1)
        return taps, op.Reshape(
            op.Transpose(small, perm=[1, 0, *places]), op.Concat(op.Shape(small, start=1, end=2), op.ints([-1]), axis=0)
        )

    def _by_taps(self, big: Tensor, small: Tensor, like: list[int]) -> Tensor:
        """One product a tap."""
        op = big.op
        taps, rows = self._rows(big, small)
        outputs, channels = like[:2]
        parts = [rows @ op.Reshape(tap, op.ints([-1, channels])) for tap in taps]
        return op.Transpose(op.Reshape(op.Concat(*parts, axis=0), op.ints([-1, outputs, channels])), perm=[1, 2, 0])

    def _by_joined_taps(self, big: Tensor, small: Tensor, like: list[int]) -> Tensor:
        """One product for all taps."""
        op = big.op
        taps, rows = self._rows(big, small)
        outputs, channels = like[:2]
        joined = op.Reshape(op.Concat(*taps, axis=-1), op.ints([-1, len(taps) * channels]))
        return op.Transpose(op.Reshape(rows @ joined, op.ints([outputs, -1, channels])), perm=[0, 2, 1])

    def _by_places(self, big: Tensor, small: Tensor, like: list[int]) -> Tensor:
        """One product a tap, sample and group."""
        op, group = big.op, self.group
        outputs, channels = like[:2]
        rows = op.Reshape(small, op.ints([0, group, outputs // group, -1]))
        parts = []
        for tap in self._taps(self._padded(big, small), 2):
            columns = op.Transpose(op.Reshape(tap, op.ints([0, group, channels, -1])), perm=[0, 1, 3, 2])
            parts.append(op.sum(rows @ columns, [0]))
        joined = op.Reshape(op.Concat(*parts, axis=0), op.ints([-1, outputs, channels]))
        return op.Transpose(joined, perm=[1, 2, 0])

    def _by_columns(self, big: Tensor, small: Tensor, like: list[int]) -> Tensor:
        """The places that meet each tap as channels, by a convolution each of whose kernels picks one."""
        op = big.op
        outputs, channels = like[:2]
        taps, strides = math.prod(like[2:]), list(self.window.strides)
        picks = op.constant(np.eye(taps).reshape(taps, 1, *like[2:]).astype(big.dtype.numpy()), big.dtype)
        big, pads = self.padded(big, small, [stride - 1 for stride in strides])
        planes = op.Reshape(big, op.Concat(op.ints([-1, 1]), spatial(big, self.rank).tensor, axis=0))
        columns = op.Reshape(
            op.Conv(planes, picks, pads=pads, strides=strides, dilations=list(self.window.dilations)),
            op.Concat(op.Shape(big, end=1), op.ints([channels * taps, -1]), axis=0),
        )
        rows = op.Reshape(small, op.ints([0, outputs, -1]))
        return op.sum(rows @ op.Transpose(columns, perm=[0, 2, 1]), [0])

    def _by_rows(self, big: Tensor, small: Tensor, like: list[int]) -> Tensor:
        """One product a row of the kernel, of all columns with all columns; then the sums of its diagonals."""
        op = big.op
        outputs, _, height, width = like
        steps, (jump, hop) = spatial(small, 2).known, self.window.dilations
        assert steps is not None
        span = steps[1] + (width - 1) * hop
        picks = np.zeros((steps[1], span, width), big.dtype.numpy())
        for place, tap in np.ndindex(steps[1], width):
            picks[place, place + tap * hop, tap] = 1
        columns = op.Reshape(small, op.ints([0, self.group, -1, *steps]))
        columns = op.Transpose(columns, perm=[0, 1, 2, 4, 3])
        padded = op.Unsqueeze(self._padded(big, small), op.ints([2]))
        parts = []
        for tap in range(height):
            rows = op.Slice(padded, [tap * jump], [tap * jump + steps[0]], [3])
            parts.append(op.Reshape(op.sum(columns @ rows, [0]), op.ints([outputs, 1, steps[1] * span])))
        return op.Concat(*parts, axis=1) @ op.constant(picks.reshape(-1, width), big.dtype)

    def _by_planes(self, big: Tensor, small: Tensor, like: list[int]) -> Tensor:
        """Each channel of each sample a group of its own, with the small side as its kernel."""
        op = big.op
        assert big.dims is not None
        batch = big.dims[0]
        assert isinstance(batch, int)
        big, pads = self.padded(big, small, [0] * self.rank)
        found = op.Conv(
            op.Reshape(big, op.Concat(op.ints([1, -1]), spatial(big, self.rank).tensor, axis=0)),
            op.Reshape(small, op.Concat(op.ints([-1, 1]), spatial(small, self.rank).tensor, axis=0)),
            pads=pads,
            strides=list(self.window.dilations),
            dilations=list(self.window.strides),
            group=batch * self.group,
        )
        return op.sum(op.Reshape(found, op.ints([batch, -1])), [0])

    def _swapped(self, big: Tensor, small: Tensor) -> Tensor:
        """The small side as the kernel: the form for kernels of unknown sizes."""
        op = big.op
        big, pads = self.padded(big, small, [0] * self.rank)
        found = op.Conv(
            self._channels_first(big),
            op.Transpose(small, perm=[1, 0, *range(2, self.rank + 2)]),
            strides=list(self.window.dilations),
            dilations=list(self.window.strides),
            pads=pads,
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
