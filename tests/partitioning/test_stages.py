"""Stages of random graphs: each node once, nothing read before it is made, and as few as any split can have."""

import itertools
import random

import pytest

from onward.partitioning.stages import EITHER, FALLBACK, TARGET, stages


def graph(seed: int, size: int) -> tuple[list[int], list[list[int]]]:
    """Sides and what each node reads."""
    draw = random.Random(seed)
    sides = [draw.choice([TARGET, TARGET, FALLBACK, EITHER]) for _ in range(size)]
    reads = [sorted(draw.sample(range(n), min(n, draw.choice([0, 1, 1, 2, 3])))) for n in range(size)]
    return sides, reads


def is_valid(sides: list[int], reads: list[list[int]], found: list[int]) -> bool:
    in_order = all(found[source] <= found[node] for node, sources in enumerate(reads) for source in sources)
    pure = all(
        len({sides[n] for n, stage in enumerate(found) if stage == number} - {EITHER}) <= 1 for number in set(found)
    )
    return in_order and pure and set(found) == set(range(len(set(found))))


def fewest(sides: list[int], reads: list[list[int]]) -> int:
    """By trying every way to number the parts."""
    for count in itertools.count(1):
        if any(is_valid(sides, reads, list(way)) for way in itertools.product(range(count), repeat=len(sides))):
            return count
    raise AssertionError


@pytest.mark.parametrize("part", range(4))
def test_stages_of_random_graphs_are_in_order_and_on_one_side(part: int) -> None:
    for seed in range(part * 1250, (part + 1) * 1250):
        sides, reads = graph(seed, 1 + seed % 60)
        assert is_valid(sides, reads, stages(sides, reads, cost=lambda one: 0)), seed


def test_there_are_as_few_stages_as_any_split_has() -> None:
    for seed in range(300):
        sides, reads = graph(seed, 1 + seed % 6)
        assert len(set(stages(sides, reads, cost=lambda one: 0))) == fewest(sides, reads), seed


def test_of_the_splits_with_the_fewest_parts_the_cheapest_is_taken() -> None:
    """A node that both a first and a last stage could take is where the cost says."""
    sides, reads = [TARGET, FALLBACK, TARGET, TARGET], [[], [0], [1], []]
    assert stages(sides, reads, cost=lambda one: one[3])[3] == 0
    assert stages(sides, reads, cost=lambda one: -one[3])[3] == 2
