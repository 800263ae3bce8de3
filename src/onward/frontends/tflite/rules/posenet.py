"""The op with which Coral's files of PoseNet and BodyPix end: from maps of body parts to the people in an image.

The parts of a body are a tree. From wherever a person is first seen, every other part is found along that tree, so all
beginnings are followed at once. Then the best are taken one by one, unless a person who was found before stands there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.decompose.loops import loop
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import custom_options
from onward.frontends.tflite.registry import rule
from onward.gate.bounds import check_room
from onward.graph.build import Tensor

PARTS = 17
"""Nose, eyes, ears, shoulders, elbows, wrists, hips, knees and ankles, the left one first."""
EDGES = (
    (0, 1), (1, 3), (0, 2), (2, 4), (0, 5), (5, 7), (7, 9), (5, 11), (11, 13), (13, 15),
    (0, 6), (6, 8), (8, 10), (6, 12), (12, 14), (14, 16),
)  # fmt: skip
"""Parts that are joined, in the order in which the map of middle offsets has them."""
LONGEST = 8
"""Edges from one part to the farthest: from ankle to ankle."""
REFINED, REFINED_MASKS = 5, 3
"""How often a place is moved by the offsets found there."""
MASK = 33
"""The side of the masks, which is fixed in the published kernel."""


@dataclass(frozen=True)
class Options:
    most: int
    least: float
    stride: int
    radius: float
    """Within which a part belongs to somebody who was found before, in steps of the maps."""

    @classmethod
    def of(cls, named: dict[str, Any]) -> Options:
        try:
            most, stride = int(named["max_detections"]), int(named["stride"])
            least, radius = (float(np.float32(named[key])) for key in ("score_threshold", "nms_radius"))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise UnsupportedError(
                f"its options have to be max_detections, score_threshold, stride and nms_radius, not {sorted(named)}"
            ) from error
        if most < 1 or stride < 1:
            raise UnsupportedError(f"{most} poses of maps with stride {stride} cannot be found")
        check_room("the masks of all poses", [most, MASK, MASK, 2 * PARTS], 4)
        return cls(most, least, stride, float(np.float32(radius) / np.float32(stride)))

    @property
    def least_logit(self) -> float:
        """The least score as the maps have it, before a sigmoid."""
        chance = self.least + 1e-6
        return -math.log(1 / chance - 1) if 0 < chance < 1 else math.inf


@rule("CUSTOM PosenetDecoderOp")
def poses(op: Writer, heat: Tensor, short: Tensor, middle: Tensor, far: Tensor | None = None) -> list[Tensor]:
    """Places and scores of the parts of each person, scores of people, how many there are, and the mask of each."""
    options = Options.of(custom_options(op))
    sizes = [_sizes(tensor) for tensor in (heat, short, middle)]
    down, across = sizes[0][1:3]
    if sizes != [[1, down, across, count] for count in (PARTS, 2 * PARTS, 4 * len(EDGES))]:
        raise UnsupportedError(f"maps of the sizes {sizes} are not those of one image with {PARTS} parts of a body")
    scores = _Map(op, heat, [down, across])
    near, joints = (_Map(op, tensor * (1 / options.stride), [down, across]) for tensor in (short, middle))
    begun = _beginnings(op, heat, options)
    part = op.Mod(begun, op.index(PARTS))
    places = _followed(op, near, joints, _root(op, near, begun, part), part)
    chances = op.Sigmoid(op.squeeze(scores.at(places, op.constant(np.arange(PARTS)[None, :, None])), [2]))
    kept = _kept(op, places, chances, part, options)
    results = _ranked(op, op.Gather(places, kept, axis=0), op.Gather(chances, kept, axis=0), options)
    if far is None:
        return results
    return [*results, _masks(op, far, results[0], results[3], options)]


def _sizes(tensor: Tensor) -> list[int]:
    if tensor.sizes is None:
        raise UnsupportedError("the sizes of its maps have to be known")
    return tensor.sizes


class _Map:
    """Numbers at each place of an image, read between places."""

    def __init__(self, op: Writer, tensor: Tensor, sizes: Sequence[int]) -> None:
        self.op, self.sizes, self.channels = op, sizes, _sizes(tensor)[3]
        self.numbers = op.flat(tensor)

    def at(self, places: Tensor, channel: Tensor) -> Tensor:
        """At places, the last axis of which is down and across, the numbers of these channels, weighed by nearness."""
        op = self.op
        low, high = op.Floor(places), op.Ceil(places)
        rest = places - low
        (top, left), (bottom, right), (lower, righter) = (
            op.many("Split", 2, x, op.ints([1, 1]), axis=2) for x in (low, high, rest)
        )
        rows = [
            (1.0 - righter) * self._read(row, left, channel) + righter * self._read(row, right, channel)
            for row in (top, bottom)
        ]
        return (1.0 - lower) * rows[0] + lower * rows[1]

    def _read(self, down: Tensor, across: Tensor, channel: Tensor) -> Tensor:
        where = down.cast(ir.DataType.INT64) * self.sizes[1] + across.cast(ir.DataType.INT64)
        return self.op.Gather(self.numbers, where * self.channels + channel)

    def moved(self, places: Tensor, channels: Tensor) -> Tensor:
        """Places moved by the offsets found there, within the image."""
        return self.inside(places + self.at(places, channels))

    def inside(self, places: Tensor) -> Tensor:
        last = self.op.constant(np.asarray(self.sizes, np.float32) - 1)
        return self.op.Min(self.op.Max(places, self.op.like(0, places)), last)

    def refined(self, places: Tensor, channels: Tensor, times: int) -> Tensor:
        (found,) = loop(self.op, lambda _, now: [self.moved(now[0], channels)], [places], rounds=self.op.index(times))
        return found


def _both(parts: Any, apart: int) -> np.ndarray[Any, Any]:
    """The channels of offsets down and across."""
    return np.stack([np.asarray(parts), np.asarray(parts) + apart], -1)


def _beginnings(op: Writer, heat: Tensor, options: Options) -> Tensor:
    """Numbers of the scores that are high enough, and the highest around them; the highest of all first."""
    pooled = op.MaxPool(op.transpose(heat, [0, 3, 1, 2]), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    highest = op.transpose(pooled, [0, 2, 3, 1])
    least = op.constant(np.asarray(options.least_logit, np.float32))
    numbers = op.squeeze(op.NonZero(op.flat(op.And(heat >= least, heat >= highest))), [0])
    _, order = op.many("TopK", 2, op.Gather(op.flat(heat), numbers), op.Shape(numbers), axis=0)
    return op.Gather(numbers, order)


def _root(op: Writer, near: _Map, begun: Tensor, part: Tensor) -> Tensor:
    """The places of beginnings, (N, 1, 2)."""
    place = op.Div(begun, op.index(PARTS))
    across = op.index(near.sizes[1])
    whole = op.Concat(*(op.unsqueeze(n, [1]) for n in (op.Div(place, across), op.Mod(place, across))), axis=1)
    channels = op.Gather(op.constant(_both(np.arange(PARTS), PARTS)), part, axis=0)
    return near.moved(op.unsqueeze(whole.cast(ir.DataType.FLOAT), [1]), op.unsqueeze(channels, [1]))


def _tree() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """For each part where one begins, and each other: the part before it on the way, and the channel of the offsets."""
    both = [*EDGES, *((b, a) for a, b in EDGES)]
    before, channel = np.zeros((2, PARTS, PARTS), np.int64)
    for root in range(PARTS):
        before[root] = channel[root] = 0
        reached, waiting = {root}, [root]
        while waiting:
            here = waiting.pop()
            for edge, (parent, child) in enumerate(both):
                if parent == here and child not in reached:
                    before[root, child] = here
                    # Offsets of the way back lie behind both of the way there; the published kernel, which is what
                    # the op means, reads those of the first edge one block too early.
                    channel[root, child] = edge + len(EDGES) if edge > len(EDGES) else edge
                    reached.add(child)
                    waiting.append(child)
    return before, channel


def _followed(op: Writer, near: _Map, joints: _Map, root: Tensor, part: Tensor) -> Tensor:
    """Places of all parts of each body, (N, 17, 2), from where it begins."""
    before, channel = _tree()
    parents = op.unsqueeze(op.Gather(op.constant(before), part, axis=0), [2])
    way = op.Gather(op.constant(_both(channel, len(EDGES))), part, axis=0)
    own = op.constant(_both(np.arange(PARTS), PARTS)[None])
    begins = op.unsqueeze(op.Equal(op.unsqueeze(part, [1]), op.constant(np.arange(PARTS)[None])), [2])
    start = op.Expand(root, op.ints([1, PARTS, 2]))
    parents = op.Expand(parents, op.Shape(start))

    def step(_: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        (places,) = states
        nearly = joints.moved(op.GatherElements(places, parents, axis=1), way)
        return [op.where(begins, start, near.refined(nearly, own, REFINED))]

    (found,) = loop(op, step, [start], rounds=op.index(LONGEST))
    return found


def _close(op: Writer, one: Tensor, other: Tensor, options: Options) -> Tensor:
    """Whether places are as near as those of one and the same person are."""
    down, across = (op.Gather(one, op.index(i), axis=-1) - op.Gather(other, op.index(i), axis=-1) for i in (0, 1))
    radius = np.float32(options.radius)
    return down * down + across * across <= op.constant(np.asarray(radius * radius))


def _kept(op: Writer, places: Tensor, chances: Tensor, part: Tensor, options: Options) -> Tensor:
    """Which bodies are taken: the best first, not where the same part of another has been found."""
    good = op.reduced("ReduceMean", chances, [1], keepdims=False) >= op.like(options.least, chances)

    def step(number: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        taken, count = states
        of_all = op.Gather(places, op.Gather(part, number), axis=1)
        there = op.And(_close(op, of_all, op.Gather(of_all, number, axis=0), options), taken)
        free = op.Equal(op.sum(there.cast(ir.DataType.INT32), keepdims=False), op.constant(np.zeros((), np.int32)))
        here = op.And(free, op.Gather(good, number))
        itself = op.Equal(op.Range(op.index(0), op.Size(taken), op.index(1)), number)
        return [op.Or(taken, op.And(itself, here)), count + here.cast(ir.DataType.INT64)]

    nobody = op.Not(op.Equal(part, part))
    taken, _ = loop(
        op,
        step,
        [nobody, op.index(0)],
        rounds=op.Size(part),
        goes_on=lambda states: states[1] < op.index(options.most),
    )
    return op.squeeze(op.NonZero(taken), [0])


def _ranked(op: Writer, places: Tensor, chances: Tensor, options: Options) -> list[Tensor]:
    """People by their scores, for which parts count that do not lie where those of a better one do; zeros behind."""
    missing = op.ints([options.most]) - op.Shape(places, start=0, end=1)
    sizes = [options.most, PARTS, 2]
    places, chances = (_filled(op, x, missing, sizes[:rank]) for x, rank in ((places, 3), (chances, 2)))
    mean = op.reduced("ReduceMean", chances, [1], keepdims=False)
    one, other = op.unsqueeze(mean, [1]), op.unsqueeze(mean, [0])
    earlier = op.constant(np.tri(options.most, k=-1, dtype=np.bool_))
    better = op.Or(other > one, op.And(op.Equal(other, one), earlier))
    close = _close(op, op.unsqueeze(places, [1]), op.unsqueeze(places, [0]), options)
    hidden = op.And(close, op.unsqueeze(better, [2])).cast(ir.DataType.INT32)
    seen = op.Equal(op.sum(hidden, [1], keepdims=False), op.constant(np.zeros((), np.int32)))
    scores = op.sum(op.where(seen, chances, op.like(0, chances)), [1], keepdims=False) / float(PARTS)
    someone = op.constant(np.arange(options.most)) < op.ints([options.most]) - missing
    scores = op.where(someone, scores, op.like(-1, scores))
    best, order = op.many("TopK", 2, scores, op.ints([options.most]), axis=0)
    there = op.And(best >= op.like(options.least, best), best >= op.like(0, best))
    parts = [op.Gather(places, order, axis=0) * float(options.stride), op.Gather(chances, order, axis=0), best]
    masks = [op.unsqueeze(there, list(range(1, rank))) if rank > 1 else there for rank in (3, 2, 1)]
    results = [op.where(mask, part, op.like(0, part)) for part, mask in zip(parts, masks, strict=True)]
    count = op.sum(there.cast(ir.DataType.FLOAT), [0], keepdims=True)
    return [*(op.unsqueeze(result, [0]) for result in results), count]


def _filled(op: Writer, tensor: Tensor, missing: Tensor, sizes: Sequence[int]) -> Tensor:
    """With zeros behind, so that there are as many as there can be."""
    none = op.ints([0] * (len(sizes) - 1))
    padded = op.Pad(tensor, op.Concat(op.ints([0]), none, missing, none, axis=0))
    return op.Reshape(padded, op.ints(sizes))


def _masks(op: Writer, far: Tensor, people: Tensor, count: Tensor, options: Options) -> Tensor:
    """Each place of the image belongs to the person whose parts are nearest to where its offsets lead."""
    if _sizes(far) != [1, MASK, MASK, 2 * PARTS]:
        raise UnsupportedError(f"masks of long offsets of the sizes {far.sizes}, where the op takes {MASK} by {MASK}")
    offsets = _Map(op, far * (1 / options.stride), [MASK, MASK])
    grid = np.stack(np.meshgrid(*[np.arange(MASK, dtype=np.float32)] * 2, indexing="ij"), -1).reshape(-1, 1, 2)
    start = op.constant(np.repeat(grid, PARTS, 1))
    leads = offsets.refined(start, op.constant(_both(np.arange(PARTS), PARTS)[None]), REFINED_MASKS)
    apart = op.unsqueeze(leads * float(options.stride), [1]) - people
    distance = op.sum(apart * apart, [2, 3], keepdims=False)
    numbers = op.constant(np.arange(options.most)[None])
    there = numbers < count.cast(ir.DataType.INT64)
    nearest = op.ArgMin(op.where(there, distance, op.like(math.inf, distance)), axis=1, keepdims=1)
    mask = op.And(op.Equal(nearest, numbers), there).cast(ir.DataType.FLOAT)
    return op.Reshape(op.transpose(mask, [1, 0]), op.ints([1, options.most, MASK, MASK]))
