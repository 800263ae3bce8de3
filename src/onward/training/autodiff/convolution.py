"""Convolutions seen from both sides: from big to small, from small to big, and from both to the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from onward.graph.build import Tensor
from onward.spec.window import Window
from onward.training.autodiff.whole_batch import WholeBatch
from onward.training.autodiff.windows import Ints, covered, moved, spatial

ALL = np.iinfo(np.int64).max
FEW_CHANNELS, SOME_CHANNELS, MANY_TAPS = 4, 16, 64
FEW_PLACES, SOME_PLACES = 16, 64
TAPS_AT_ONCE = 16
"""As many as the blocked kernels of ONNX Runtime make at once: gathered for all taps, it would take a lot."""
USUAL_BATCH = 32
COST_OF_GATHERING = 3
"""Where one form of a gradient becomes faster than another, or its graph too long. To gather a number costs about as
much as to turn three weights around."""

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
        if (whole := self.whole_batch(sizes, small, weights)) is not None:
            if self.is_few(small, whole):
                return whole.to_big(small, weights)
            if whole.weights[0] > SOME_CHANNELS:
                places = math.prod(whole.small)
                if set(strides) == {1} and places <= SOME_PLACES:
                    return whole.to_big_by_rows(small, weights)
                if set(strides) != {1} and places <= FEW_PLACES:
                    return whole.to_big_by_sums(small, weights)
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

    def whole_batch(self, big: Ints, small: Tensor, weights: Tensor) -> WholeBatch | None:
        """The forms for a whole batch, where all sizes but the batch's are known, and there are no groups."""
        steps, sizes = spatial(small, self.rank).known, weights.sizes
        if self.group > 1 or steps is None or sizes is None or big.known is None or self.begin.known is None:
            return None
        if math.prod((*steps, *sizes, *big.known)) == 0 or math.prod(sizes[2:]) > MANY_TAPS:
            return None
        return WholeBatch(tuple(big.known), tuple(steps), tuple(self.begin.known), self.window, tuple(sizes))

    def is_few(self, small: Tensor, whole: WholeBatch) -> bool:
        """So few places, of the whole batch, that gathering them number by number costs less than turning weights."""
        batch = small.dims[0] if small.dims is not None else None
        rows = (batch if isinstance(batch, int) else USUAL_BATCH) * math.prod(whole.small)
        return rows * COST_OF_GATHERING <= whole.weights[0]

    def _is_pointwise(self, pads: tuple[list[int], list[int]]) -> bool:
        """Every element of the small side comes from the one at the same place of the big side."""
        return self.kernel.is_(1) and set(self.window.strides) == {1} and not any((*pads[0], *pads[1]))

    def to_weights(self, big: Tensor, small: Tensor, like: Tensor) -> Tensor:
        """What each weight contributes: products of both sides summed over all places and the batch."""
        if like.sizes is None or self.kernel.known is None or math.prod(self.kernel.known) > MANY_TAPS:
            return self._swapped(big, small)
        form = self._weight_form(big, small, like)
        return big.op.Reshape(form(big, small, like.sizes), like.shape)

    def _weight_form(self, big: Tensor, small: Tensor, like: Tensor) -> Form:
        """The fastest form for weights like `like`, as benchmarks/gradients.py measures them."""
        assert like.sizes is not None
        channels, taps, places = like.sizes[1], math.prod(like.sizes[2:]), spatial(small, self.rank).known
        whole = self.whole_batch(spatial(big, self.rank), small, like)
        if whole is not None and self.is_few(small, whole):
            return lambda big, small, like: whole.to_weights(big, small)
        if taps == 1 and (whole is None or (set(self.window.strides) == {1} and math.prod(whole.small) > SOME_PLACES)):
            return self._by_places
        if self.group > 1 and channels > 1:
            return self._by_places
        if self.group > 1:
            if places is not None and self.rank == 2 and set(self.window.strides) == {1}:
                return self._by_rows
            known = big.dims is not None and isinstance(big.dims[0], int)
            return self._by_planes if known else lambda big, small, like: self._swapped(big, small)
        if channels <= FEW_CHANNELS and taps > 1:
            return self._by_columns
        return self._by_taps if whole is None else lambda big, small, like: whole.to_weights_by_taps(big, small)

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

    def _by_taps(self, big: Tensor, small: Tensor, like: list[int]) -> Tensor:
        """One product a tap, of places whose number is not known."""
        op, places = big.op, range(2, self.rank + 2)
        outputs, channels = like[:2]
        rows = op.Reshape(op.Transpose(small, perm=[1, 0, *places]), op.ints([outputs, -1]))
        taps = self._taps(op.Transpose(self._padded(big, small), perm=[0, *places, 1]), 1)
        parts = [rows @ op.Reshape(tap, op.ints([-1, channels])) for tap in taps]
        return op.Transpose(op.Reshape(op.Concat(*parts, axis=0), op.ints([-1, outputs, channels])), perm=[1, 2, 0])

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
        """The places that meet some taps as channels, by a convolution each of whose kernels picks one."""
        op = big.op
        outputs, channels = like[:2]
        taps, strides = math.prod(like[2:]), list(self.window.strides)
        big, pads = self.padded(big, small, [stride - 1 for stride in strides])
        planes = op.Reshape(big, op.Concat(op.ints([-1, 1]), spatial(big, self.rank).tensor, axis=0))
        rows = op.Reshape(small, op.ints([0, outputs, -1]))
        parts = []
        for picks in np.array_split(np.eye(taps).reshape(taps, 1, *like[2:]), range(TAPS_AT_ONCE, taps, TAPS_AT_ONCE)):
            kernels = op.constant(picks.astype(big.dtype.numpy()), big.dtype)
            found = op.Conv(planes, kernels, pads=pads, strides=strides, dilations=list(self.window.dilations))
            columns = op.Reshape(found, op.Concat(op.Shape(big, end=1), op.ints([channels * len(picks), -1]), axis=0))
            part = op.sum(rows @ op.Transpose(columns, perm=[0, 2, 1]), [0])
            parts.append(op.Reshape(part, op.ints([outputs, channels, len(picks)])))
        return op.Concat(*parts, axis=2) if len(parts) > 1 else parts[0]

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
