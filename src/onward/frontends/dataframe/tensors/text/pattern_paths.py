"""Patterns that can be followed in one way only: for those the longest match is the one that Python and Rust find.

ONNX Runtime's Tokenizer takes the longest of the matches that start first. Python and Rust take the first that their
order of trying gives. In a pattern where the next character always tells which part of it comes next, and where all
repeats are greedy, both are the same, and so is the piece that each part of the pattern takes.
"""

from __future__ import annotations

from itertools import combinations

from onward.frontends.dataframe.tensors.text.pattern_sets import Ranges, contains, overlap, refuse
from onward.frontends.dataframe.tensors.text.patterns import Alt, At, Chars, Group, Node, Pattern, Repeat, Seq, nullable

MOST = 1500
"""So many characters may a pattern have with its repeats written out."""


class _Places:
    """The characters of a pattern, numbered, and which can follow which."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.sets: list[Ranges] = []
        self.follow: list[set[int]] = []

    def add(self, node: Node) -> tuple[set[int], set[int], bool]:
        """The first places, the last ones, and whether it can be empty."""
        match node:
            case Chars(ranges):
                if len(self.sets) >= MOST:
                    raise refuse(self.pattern.text, f"is longer than {MOST} characters with its repeats")
                self.sets.append(ranges)
                self.follow.append(set())
                place = {len(self.sets) - 1}
                return place, place, False
            case Group(item, _):
                return self.add(item)
            case Seq(items):
                return self._sequence(list(items))
            case Alt(branches):
                if any(nullable(branch) for branch in branches[:-1]):
                    raise refuse(self.pattern.text, "prefers to find nothing")
                parts = [self.add(branch) for branch in branches]
                return set().union(*(p[0] for p in parts)), set().union(*(p[1] for p in parts)), parts[-1][2]
            case Repeat(item, least, most, greedy):
                if not greedy and least != most:
                    raise refuse(self.pattern.text, "repeats as rarely as it can")
                if nullable(item):
                    raise refuse(self.pattern.text, "repeats what can be empty")
                return self._repeat(item, least, most)
            case At():
                return set(), set(), True

    def _sequence(self, items: list[Node]) -> tuple[set[int], set[int], bool]:
        first: set[int] = set()
        last: set[int] = set()
        empty = True
        for item in items:
            starts, ends, may = self.add(item)
            for place in last:
                self.follow[place] |= starts
            first |= starts if empty else set()
            last = ends | (last if may else set())
            empty = empty and may
        return first, last, empty

    def _repeat(self, item: Node, least: int, most: int | None) -> tuple[set[int], set[int], bool]:
        copies: list[Node] = [item] * (max(least, 1) if most is None else least)
        if most is None:
            *head, tail = copies
            before = self._sequence(head)
            starts, ends, _ = self.add(tail)
            for place in ends:
                self.follow[place] |= starts
            for place in before[1]:
                self.follow[place] |= starts
            return (before[0] or starts), ends, least == 0
        optional: Node | None = None
        for _ in range(most - least):
            optional = Alt((item if optional is None else Seq((item, optional)), Seq(())))
        return self._sequence(copies if optional is None else [*copies, optional])


def check_one_way(pattern: Pattern, node: Node) -> None:
    """Refuse a pattern in which a character can belong to one part or another."""
    places = _Places(pattern)
    first, _, _ = places.add(node)
    done: set[frozenset[int]] = set()
    for following in [first, *places.follow]:
        key = frozenset(following)
        if key in done:
            continue
        done.add(key)
        for a, b in combinations(sorted(following), 2):
            if overlap(places.sets[a], places.sets[b]):
                raise refuse(pattern.text, "can be matched in more than one way")


def example(node: Node) -> str:
    """A text that it matches, and not an empty one if it can be otherwise."""
    match node:
        case Chars(ranges):
            printable = next((chr(c) for c in range(97, 123) if contains(ranges, c)), None)
            return printable or chr(next((low for low, _ in ranges), 0))
        case Group(item, _):
            return example(item)
        case Seq(items):
            return "".join(map(example, items))
        case Alt(branches):
            return example(branches[0])
        case Repeat(item, least, most, _):
            return example(item) * max(least, 0 if most == 0 else 1)
        case At():
            return ""
