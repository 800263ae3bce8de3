"""Convolutions as one product of matrices for a whole batch, whose rows are gathered by tables of places.

ONNX Runtime's convolutions multiply once a sample. Where a map has few places, that product is thin, and all weights
are read again for each sample; here they are read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.graph.build import Tensor
from onward.spec.window import Window

Table = npt.NDArray[Any]


@dataclass(frozen=True)
class WholeBatch:
    """Forms of a convolution without groups, between sides whose places are known; the batch is not.

    Weights are [outputs (channels of the small side), channels (of the big side), *kernel].
    """

    big: tuple[int, ...]
    small: tuple[int, ...]
    begin: tuple[int, ...]
    window: Window
    weights: tuple[int, ...]

    @property
    def taps(self) -> int:
        return int(np.prod(self.weights[2:]))

    @cached_property
    def met(self) -> Table:
        """[small places, taps]: the place of the big side that a tap meets, or one behind all where there is none."""
        places = np.zeros((1, 1), np.int64)
        inside = np.ones((1, 1), bool)
        for size, steps, taps, stride, jump, begin in zip(
            self.big,
            self.small,
            self.weights[2:],
            self.window.strides,
            self.window.dilations,
            self.begin,
            strict=True,
        ):
            along = np.arange(steps)[:, None] * stride + np.arange(taps) * jump - begin
            places = _outer(places * size, along, np.add)
            inside = _outer(inside, (along >= 0) & (along < size), np.logical_and)
        return np.where(inside, places, np.prod(self.big, dtype=np.int64))

    @cached_property
    def meeting(self) -> Table:
        """[big places, taps]: the place of the small side that meets this one with a tap, or one behind all."""
        steps, taps = self.met.shape
        found = np.full((int(np.prod(self.big)) + 1, taps), steps, np.int64)
        for tap in range(taps):
            found[self.met[:, tap], tap] = np.arange(steps)
        return found[:-1]

    @cached_property
    def sources(self) -> Table:
        """[big places, most]: the pairs (small place, tap) that meet a place, as one number; filled up with one behind
        all pairs."""
        steps, taps = self.met.shape
        pairs = np.where(self.meeting < steps, self.meeting * taps + np.arange(taps), steps * taps)
        pairs.sort(axis=1)
        most = max(1, int((pairs < steps * taps).sum(axis=1).max(initial=0)))
        found: Table = pairs[:, :most]
        return found

    def columns(self, big: Tensor) -> Tensor:
        """[batch * small places, channels * taps], as the weights lie: gathered number by number."""
        op, channels, places = big.op, self.weights[1], int(np.prod(self.big))
        starts = np.arange(channels)[:, None] * places
        at = np.where(self.met[:, None] < places, self.met[:, None] + starts, channels * places)
        flat = op.Reshape(big, op.ints([0, channels * places]))
        return op.Reshape(_gathered(flat, at, channels * places), op.ints([-1, channels * self.taps]))

    def rows(self, small: Tensor) -> Tensor:
        """[batch * small places, outputs]."""
        op = small.op
        return op.Reshape(self._channels_last(small), op.ints([-1, self.weights[0]]))

    def matrix(self, weights: Tensor) -> Tensor:
        return weights.op.Reshape(weights, weights.op.ints([self.weights[0], -1]))

    def to_small(self, big: Tensor, weights: Tensor, bias: Tensor | None = None) -> Tensor:
        """The weights are read as they lie."""
        op = big.op
        product = op.Gemm(self.columns(big), self.matrix(weights), bias, transB=1)
        return self._channels_first(product, self.small)

    def to_weights(self, big: Tensor, small: Tensor) -> Tensor:
        """[outputs, channels * taps]: written as the weights lie."""
        return big.op.Gemm(self.rows(small), self.columns(big), transA=1)

    def to_weights_by_taps(self, big: Tensor, small: Tensor) -> Tensor:
        """One product a tap: what it meets is small enough to stay in a cache."""
        op, (outputs, channels) = big.op, self.weights[:2]
        places = int(np.prod(self.big))
        last = op.Reshape(self._channels_last(big), op.ints([0, places, channels]))
        filled = _with_zero(last, self.met, places)
        first = op.Transpose(small, perm=[1, 0, *range(2, 2 + len(self.small))])
        rows = op.Reshape(first, op.ints([outputs, -1]))
        parts = []
        for tap in self.met.T:
            still = np.array_equal(tap, np.arange(places))
            met = last if still else op.Gather(filled, op.constant(tap), axis=1)
            parts.append(rows @ op.Reshape(met, op.ints([-1, channels])))
        if len(parts) == 1:
            return parts[0]
        joined = op.Reshape(op.Concat(*parts, axis=0), op.ints([-1, outputs, channels]))
        return op.Transpose(joined, perm=[1, 2, 0])

    def to_big(self, small: Tensor, weights: Tensor) -> Tensor:
        """What each small place gives through each weight, read as they lie, then gathered number by number."""
        op, channels, taps = small.op, self.weights[1], self.taps
        pairs = self.met.size
        at = self.sources.T[:, None]
        place, tap = at // taps, at % taps
        at = np.where(at < pairs, (place * channels + np.arange(channels)[:, None]) * taps + tap, pairs * channels)
        product = op.Reshape(self.rows(small) @ self.matrix(weights), op.ints([-1, pairs * channels]))
        found = _gathered(product, at, pairs * channels)
        shape = [-1, len(at), channels, *self.big]
        return op.sum(op.Reshape(found, op.ints(shape)), [1], keepdims=False)

    def to_big_by_rows(self, small: Tensor, weights: Tensor) -> Tensor:
        """All that a big place comes from side by side, then one product; for strides of 1."""
        op, (outputs, channels) = small.op, self.weights[:2]
        steps = len(self.met)
        last = op.Reshape(self._channels_last(small), op.ints([0, steps, outputs]))
        found = op.Reshape(_gathered(last, self.meeting, steps), op.ints([-1, self.taps * outputs]))
        turned = op.Transpose(weights, perm=[*range(2, len(self.weights)), 0, 1])
        return self._channels_first(found @ op.Reshape(turned, op.ints([-1, channels])), self.big)

    def to_big_by_sums(self, small: Tensor, weights: Tensor) -> Tensor:
        """What each small place gives through each tap, gathered by rows and added up; for larger strides, where most
        taps do not meet a place."""
        op, (outputs, channels) = small.op, self.weights[:2]
        turned = op.Reshape(self._channels_last(weights), op.ints([outputs, -1]))
        pairs = op.Reshape(self.rows(small) @ turned, op.ints([-1, self.met.size, channels]))
        found = _gathered(pairs, self.sources, self.met.size)
        total = op.sum(op.Reshape(found, op.ints([-1, self.sources.shape[1], channels])), [1], keepdims=False)
        return self._channels_first(total, self.big)

    def _channels_last(self, x: Tensor) -> Tensor:
        return x.op.Transpose(x, perm=[0, *range(2, 2 + len(self.big)), 1])

    def _channels_first(self, rows: Tensor, places: Sequence[int]) -> Tensor:
        """[batch * places, channels] as [batch, channels, *places]."""
        op, count = rows.op, int(np.prod(places))
        assert rows.dims is not None
        channels = rows.dims[1]
        assert isinstance(channels, int)
        turned = op.Transpose(op.Reshape(rows, op.ints([-1, count, channels])), perm=[0, 2, 1])
        return op.Reshape(turned, op.ints([-1, channels, *places]))


def _outer(before: Table, along: Table, combine: Any) -> Table:
    """Tables of places and taps for one axis more."""
    (a, b), (c, d) = before.shape, along.shape
    made: Table = combine(before[:, None, :, None], along[None, :, None, :])
    return made.reshape(a * c, b * d)


def _gathered(x: Tensor, at: Table, size: int) -> Tensor:
    """Entries of axis 1, which has `size`; the one behind all is zero."""
    return x.op.Gather(_with_zero(x, at, size), x.op.constant(at.ravel()), axis=1)


def _with_zero(x: Tensor, at: Table, size: int) -> Tensor:
    """`x` with zeros behind axis 1, if the table asks for them."""
    if not (at == size).any():
        return x
    assert x.rank is not None
    end = [int(axis == 1) for axis in range(x.rank)]
    return x.op.Pad(x, x.op.ints([*[0] * x.rank, *end]))
