"""People in an image, as the published kernel finds them, which is written here as loops with queues."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from lite import Flat, named, on_runtime

from onward.errors import UnsupportedError

PARTS, STEPS = 17, 16
JOINED = [(0, 1), (1, 3), (0, 2), (2, 4), (0, 5), (5, 7), (7, 9), (5, 11), (11, 13), (13, 15)]
JOINED += [(0, 6), (6, 8), (8, 10), (6, 12), (12, 14), (14, 16)]
WAYS = [*JOINED, *((b, a) for a, b in JOINED)]


def maps(seed: int, down: int, across: int, level: float, stride: int, masks: bool = False) -> list[Any]:
    """Scores at random; offsets are smooth, so that a last bit does not lead to another place."""
    rng = np.random.default_rng(seed)
    y, x = np.arange(down)[:, None, None], np.arange(across)[:, None]
    heat = rng.normal(level, 2, (1, down, across, PARTS))
    waves = [far * np.sin(0.4 * y - 0.3 * x + rng.uniform(0, 6, n))[None] for far, n in ((0.4, 34), (1.5, 64), (3, 34))]
    return [heat.astype(np.float32), *((wave * stride).astype(np.float32) for wave in waves[: 3 if masks else 2])]


def lite(arrays: list[Any], options: bytes, op: str = "PosenetDecoderOp", **scale: Any) -> bytes:
    flat = Flat()
    graph = flat.graph()
    graph.output(*graph.op(op, [graph.input(x, **scale) for x in arrays], [np.float32] * (len(arrays) + 1)))
    graph.made.operators[-1].customOptions = np.frombuffer(options, np.uint8)
    return flat.bytes()


class Decoder:
    """As the kernel goes about it: root by root, and from each the best part that is in reach."""

    def __init__(self, heat: Any, short: Any, middle: Any, stride: int) -> None:
        self.heat, self.short, self.middle = heat[0], short[0] / np.float32(stride), middle[0] / np.float32(stride)
        self.last = np.asarray(self.heat.shape[:2], np.float32) - 1

    def at(self, values: Any, place: Any, channels: Any) -> Any:
        low, high = np.floor(place).astype(int), np.ceil(place).astype(int)
        y, x = place - low.astype(np.float32)
        rows = [
            (1 - x) * values[row, low[1]][channels] + x * values[row, high[1]][channels] for row in (low[0], high[0])
        ]
        return (1 - y) * rows[0] + y * rows[1]

    def moved(self, values: Any, place: Any, channels: Any) -> Any:
        return np.clip(place + self.at(values, place, channels), np.float32(0), self.last)

    def roots(self, least: float) -> list[tuple[float, int, Any, int]]:
        found: list[tuple[float, int, Any, int]] = []
        for y, x, part in np.ndindex(self.heat.shape):
            score = self.heat[y, x, part]
            window = self.heat[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2, part]
            if score >= least and score >= window.max():
                place = self.moved(self.short, np.asarray([y, x], np.float32), [part, part + PARTS])
                heapq.heappush(found, (-score, len(found), place, part))
        return found

    def body(self, place: Any, part: int) -> tuple[Any, Any]:
        places, scores = np.zeros((PARTS, 2), np.float32), np.zeros(PARTS, np.float32)
        done: set[int] = set()
        queue = [(-self.at(self.heat, place, [part])[0], 0, place, part)]
        while queue:
            score, _, here, part = heapq.heappop(queue)
            done.add(part)
            places[part], scores[part] = here, 1 / (1 + math.exp(score))
            for way, (parent, child) in enumerate(WAYS):
                if parent == part and child not in done:
                    first = way + STEPS if way > STEPS else way
                    there = self.moved(self.middle, here, [first, first + STEPS])
                    for _ in range(5):
                        there = self.moved(self.short, there, [child, child + PARTS])
                    heapq.heappush(queue, (-self.at(self.heat, there, [child])[0], way, there, child))
        return places, scores

    def people(self, most: int, least: float, radius: float) -> list[tuple[float, Any, Any]]:
        queue, found = self.roots(-math.log(1 / (least + 1e-6) - 1)), []
        while queue and len(found) < most:
            _, _, place, part = heapq.heappop(queue)
            if all(self.apart(place, places[part]) > radius**2 for places, _ in found):
                places, scores = self.body(place, part)
                if scores.mean() >= least:
                    found.append((places, scores))
        found.sort(key=lambda one: -one[1].mean())
        ranked = []
        for i, (places, scores) in enumerate(found):
            hidden = [any(self.apart(a, b[0][k]) <= radius**2 for b in found[:i]) for k, a in enumerate(places)]
            ranked.append((float(np.where(hidden, 0, scores).sum() / PARTS), places, scores))
        return sorted((one for one in ranked if one[0] >= least), key=lambda one: -one[0])

    @staticmethod
    def apart(a: Any, b: Any) -> float:
        return float(((a - b) ** 2).sum())


@pytest.mark.parametrize(("seed", "level", "stride", "most"), [(24, -1, 16, 8), (36, 1, 8, 3), (2, -9, 16, 2)])
def test_people_as_the_kernel_finds_them(seed: int, level: float, stride: int, most: int) -> None:
    arrays = maps(seed, 9, 7, level, stride)
    options = named(max_detections=most, score_threshold=0.25, stride=stride, nms_radius=20.0)
    places, parts, scores, count = on_runtime(lite(arrays, options), *arrays)
    wanted = Decoder(*arrays, stride).people(most, 0.25, 20 / stride)
    assert count.tolist() == [len(wanted)] and len(wanted) == {24: 2, 36: 3, 2: 0}[seed]
    assert places.shape == (1, most, PARTS, 2) and not places[0, len(wanted) :].any()
    for i, (score, place, part) in enumerate(wanted):
        np.testing.assert_allclose(scores[0, i], score, rtol=1e-5)
        np.testing.assert_allclose(parts[0, i], part, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(places[0, i], place * stride, rtol=1e-4, atol=1e-3)


def test_what_the_published_kernel_gave() -> None:
    """Numbers of a run of it: scores, the nose and the right ankle of the best, and how large each mask is."""
    *arrays, _ = maps(3, 9, 7, 0, 16, masks=True)
    arrays.append(maps(4, 33, 33, 0, 16, masks=True)[3])
    options = named(max_detections=6, score_threshold=0.25, stride=16, nms_radius=20.0)
    places, _, scores, count, masks = on_runtime(lite(arrays, options), *arrays)
    assert count.tolist() == [4]
    np.testing.assert_allclose(scores[0], [0.53648067, 0.51878983, 0.49842879, 0.38532883, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(places[0, 0, [0, 16]], [[115.06932, 82.9664], [103.424675, 96]], rtol=1e-5)
    assert masks.shape == (1, 6, 33, 33)
    np.testing.assert_allclose(masks.sum((0, 2, 3)), [855, 18, 0, 216, 0, 0], atol=2)


def test_maps_of_bytes() -> None:
    arrays, scale, zero = maps(3, 9, 7, 0, 16), 0.25, 128
    whole = [np.clip(np.round(x / scale) + zero, 0, 255).astype(np.uint8) for x in arrays]
    numbers = [(x.astype(np.float32) - zero) * np.float32(scale) for x in whole]
    options = named(max_detections=4, score_threshold=0.25, stride=16, nms_radius=20.0)
    found = on_runtime(lite(whole, options, scale=scale, zero=zero), *whole)
    for one, other in zip(found, on_runtime(lite(numbers, options), *numbers), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert found[3] > 1


@pytest.mark.parametrize(
    ("sizes", "options", "said"),
    [
        ((9, 7), {"stride": 0}, "2 poses of maps with stride 0 cannot be found"),
        ((9, 7), {"max_detections": 1 << 40}, "the masks of all poses"),
        ((9, 7), {"nms_radius": []}, r"options have to be max_detections"),
        ((0, 7), {}, "are not those of one image"),
    ],
)
def test_what_is_refused(sizes: tuple[int, int], options: dict[str, Any], said: str) -> None:
    arrays = maps(0, 9, 7, 0, 16)
    arrays[0] = arrays[0][:, : sizes[0], : sizes[1]]
    known = {"max_detections": 2, "score_threshold": 0.25, "stride": 16, "nms_radius": 20.0}
    with pytest.raises(UnsupportedError, match=said):
        on_runtime(lite(arrays, named(**known | options)), *arrays)


@pytest.mark.parametrize(
    ("op", "said"),
    [
        ("edgetpu-custom-op", "code for Coral's Edge TPU: convert the file that its compiler was given"),
        ("LabOp", r"op\.from_tensorflow\('LabOp'\): `onward plugins new my\.lab::LabOp` prints one to fill in"),
    ],
)
def test_custom_ops_that_nothing_knows(op: str, said: str) -> None:
    arrays = maps(0, 9, 7, 0, 16)
    with pytest.raises(UnsupportedError, match=said):
        on_runtime(lite(arrays, b"", op), *arrays)
