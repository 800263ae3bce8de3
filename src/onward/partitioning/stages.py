"""Which stage each node of a graph runs in: stages alternate between a target and the fallback.

Nodes are numbers in topological order. A node has a side, or none if it may run on either. The stage of a node is the
longest alternation of sides on a path to it (early), or the number of stages less that of a path from it (late). So
no stage depends on a later one, the number of stages is the least that any split into parts can have, and all of it
takes one walk over the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

TARGET, FALLBACK, EITHER = 0, 1, -1
Stages = list[int]
"""The stage of each node, from 0 without gaps."""


def stages(sides: Sequence[int], reads: Sequence[Sequence[int]], cost: Callable[[Stages], float]) -> Stages:
    """The stages of nodes with these sides, each of which reads the results of others before it.

    There are as few stages as can be; of the ways to have so few that are tried, early and late, the one with the
    least `cost` is taken.
    """
    users = _users(reads)
    found: list[Stages] = []
    for first in (TARGET, FALLBACK):
        early = _early(sides, reads, first)
        found += [early, _late(sides, users, early)]
    dense = [_without_gaps(one) for one in found]
    fewest = min(_count(one) for one in dense)
    return min((one for one in dense if _count(one) == fewest), key=cost)


def _users(reads: Sequence[Sequence[int]]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in reads]
    for node, sources in enumerate(reads):
        for source in sources:
            found[source].append(node)
    return found


def _early(sides: Sequence[int], reads: Sequence[Sequence[int]], first: int) -> Stages:
    """Each node as soon as what it reads is there; stages of even numbers are on the side `first`."""
    found: Stages = []
    for side, sources in zip(sides, reads, strict=True):
        least = max((found[source] for source in sources), default=0)
        found.append(least + (side != EITHER and (least % 2) != (side != first)))
    return found


def _late(sides: Sequence[int], users: Sequence[Sequence[int]], early: Stages) -> Stages:
    """Each node just before its result is needed; as many stages as there are early, on the same sides."""
    last = max(early, default=0)
    found = [last] * len(early)
    for node in reversed(range(len(early))):
        latest = min((found[user] for user in users[node]), default=last)
        found[node] = latest - (sides[node] != EITHER and (latest - early[node]) % 2)
    return found


def _without_gaps(given: Stages) -> Stages:
    number = {stage: place for place, stage in enumerate(sorted(set(given)))}
    return [number[stage] for stage in given]


def _count(given: Stages) -> int:
    return len(set(given))
