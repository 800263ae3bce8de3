"""Which nodes have to stay in 32 bits, found by trying."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from onward.bits.candidates import Candidate
from onward.bits.judged import Judgement, Trial
from onward.bits.search import ranked_by

GROUPS = 16
"""Into how many parts a model is divided, to see which of them move the results most."""
FEW = 16
"""One node in so many stays if that makes the result as near as noise that is quickly found."""

Look = Callable[[Trial], Judgement]


@dataclass(frozen=True)
class Found:
    """What stays, what does not, and how good that is."""

    stay: Sequence[Candidate]
    rest: Sequence[Candidate]
    judgement: Judgement


@dataclass
class Search:
    """Tries which nodes of `left` can compute in 16 bits, by `attempt`; `lost` is what each loses by itself."""

    left: Sequence[Candidate]
    lost: Mapping[int, float]
    attempt: Callable[[Sequence[Candidate]], Trial]
    last: Judgement = field(default_factory=lambda: Judgement(()))
    """Of the last attempt that was not good."""
    _order: list[Candidate] = field(default_factory=list)

    def found(self, least: int) -> Found | None:
        """At least so many compute in 16 bits; None where that is too many."""
        if len(self.left) < least:
            return None
        whole = self.attempt(self.left)
        if whole.quick.is_good:
            return Found([], self.left, whole.quick)
        self.last = whole.thorough
        if not self.last.is_good:
            return self._fewest(lambda trial: trial.thorough, len(self.left) - least)
        return self._fewest(lambda trial: trial.quick, len(self.left) // FEW) or Found([], self.left, whole.thorough)

    def _fewest(self, look: Look, most: int) -> Found | None:
        """The fewest that have to stay, up to `most`: their number is doubled until it is enough, then bisected."""
        if not most:
            return None
        ranked = self._ranked(look)
        failed, step = 0, max(1, len(ranked) // 64)
        taken = min(step, most)
        while not (best := look(self.attempt(ranked[taken:]))).is_good:
            self.last = best
            if taken == most:
                return None
            failed, taken, step = taken, min(taken + step, most), 2 * step
        while taken - failed > 1:
            middle = (failed + taken) // 2
            tried = look(self.attempt(ranked[middle:]))
            failed, taken, best = (failed, middle, tried) if tried.is_good else (middle, taken, best)
        return Found(ranked[:taken], ranked[taken:], best)

    def _ranked(self, look: Look) -> list[Candidate]:
        """Those that move the results most first, by groups of neighbours, and in a group those that lose most."""
        if not self._order:
            self._order = ranked(self.left, self.lost, lambda group: look(self.attempt(group)).closeness)
        return self._order


def ranked(
    found: Sequence[Candidate], lost: Mapping[int, float], effect: Callable[[Sequence[Candidate]], float]
) -> list[Candidate]:
    size = -(-len(found) // GROUPS)
    groups = [found[first : first + size] for first in range(0, len(found), size)]
    effects = {number: effect(group) for number, group in enumerate(groups)}
    order = ranked_by(effects, effects.__getitem__)
    return [one for number in order for one in ranked_by(groups[number], lambda one: lost.get(id(one.node), 0.0))]
