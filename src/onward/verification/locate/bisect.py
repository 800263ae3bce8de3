"""Finds the first node at which two models, or one model on two runners, part.

A stretch of the graph is run on both sides from the same values, those of the source. If what comes out differs it is
halved: the first half from the values that the stretch began with, the second from those that the source has in the
middle. So each half is judged by what it does itself, not by what it was handed, and a node that merely passes on or
magnifies an earlier error is not blamed. With one defect this takes O(log n) runs, of halves of halves: together no
more work than a few runs of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onward.errors import OnwardError
from onward.runners.calls import Inputs, Outputs
from onward.verification.compare import Error, compare
from onward.verification.locate.change import change
from onward.verification.locate.judge import Verdict, as_compared, errors, jittered_inputs, judge
from onward.verification.locate.pieces import Pieces, Subject, label
from onward.verification.locate.profile import Profiler, first_beyond
from onward.verification.noise.spread import Noise, measure_noise
from onward.verification.results import Culprit, NodeError

__all__ = ["Bisection", "Subject", "bisect"]

Judge = Callable[[Outputs, Outputs, Mapping[str, Error], Mapping[str, float]], dict[str, Verdict]]
"""Expected and actual values, the noise and the floors of each, to verdicts."""

TRIES = 5
"""How many places near the middle are tried where a runner cannot run a half."""


@dataclass(frozen=True)
class Bisection:
    """Where two sides part, if they do."""

    culprit: Culprit | None
    profile: tuple[NodeError, ...] = ()
    """Errors along the graph: of all values, or of those that the search came by."""
    remark: str = ""
    """Why no node is named though the outputs differ."""


def bisect(
    source: Subject,
    other: Subject,
    inputs: Inputs,
    *,
    noise: Mapping[str, Error] | None = None,
    all_nodes: bool = False,
    certain: bool = False,
) -> Bisection:
    """The first node of the source at which the two part on `inputs`, and errors along the graph.

    `noise` is the source's own, by output; it is measured where it is not given. With
    `all_nodes` every value is compared, all in one run of each side unless they are too large for that. The outputs are
    taken for different when that is `certain`, whatever the tolerance here says.
    """
    return _Search(Pieces(source, other), inputs).result(noise, all_nodes, certain)


@dataclass(frozen=True)
class _Stretch:
    """Nodes of the source, by their numbers, and what is known of them as a whole."""

    first: int
    last: int
    verdicts: Mapping[str, Verdict]
    failure: str = ""

    @property
    def differs(self) -> bool:
        return bool(self.failure) or _differs(self.verdicts)

    @property
    def worst(self) -> Verdict:
        if self.failure:
            return Verdict(float("inf"), 0.0)
        return max(self.verdicts.values(), key=lambda verdict: verdict.ratio, default=Verdict(0.0, 0.0))


def _differs(verdicts: Mapping[str, Verdict]) -> bool:
    return any(verdict.differs for verdict in verdicts.values())


class _OtherFails(OnwardError):
    """The other side cannot run a piece."""


class _Search:
    def __init__(self, pieces: Pieces, inputs: Inputs) -> None:
        self.pieces, self.inputs = pieces, inputs
        self.values: Inputs = dict(inputs)
        """The source's values, as far as they were computed."""
        self.paths: dict[str, Verdict] = {}
        """Of values that both sides computed from the model's inputs."""
        self.fails = False
        """The other side cannot run the whole: what is looked for is the node that it cannot run."""

    def result(self, noise: Mapping[str, Error] | None, all_nodes: bool, certain: bool) -> Bisection:
        end = len(self.pieces.nodes)
        whole = self._whole(end, noise)
        profiler = Profiler(self.pieces)
        profile = profiler.profile(0, end, self.inputs) if all_nodes and not whole.failure else []
        culprit, remark = None, ""
        if whole.differs or certain:
            blamed = first_beyond(profile)
            if blamed is not None:
                culprit = self._culprit_of(blamed)
            else:
                culprit, remark = self._explain(self._narrow(whole), profiler)
        return Bisection(culprit, tuple(profile or self._met(culprit)), remark)

    def _whole(self, end: int, noise: Mapping[str, Error] | None) -> _Stretch:
        """Judged as outputs are."""
        try:
            return self._check(0, end, judged=lambda expected, actual, *_: self._as_outputs(expected, actual, noise))
        except _OtherFails as error:
            self.fails = True
            return _Stretch(0, end, {}, str(error))

    def _as_outputs(self, expected: Outputs, actual: Outputs, noise: Mapping[str, Error] | None) -> dict[str, Verdict]:
        quantized = noise.quantized if isinstance(noise, Noise) else ()
        verdicts = as_compared(compare(expected, actual, noise, quantized=quantized))
        if noise is not None or not _differs(verdicts):
            return verdicts
        source, other = self.pieces.source.subject, self.pieces.other.subject
        sets, judged = [(self.inputs, expected)], [other.runner]
        measured = measure_noise(source.model, sets, source=source.runner, judged=judged, prepare=source.prepare)
        measured.widen()
        return self._as_outputs(expected, actual, measured)

    def _check(self, first: int, last: int, *, judged: Judge | None = None, inner: bool = False) -> _Stretch:
        """Run the nodes from `first` to before `last` on both sides, from the source's values at `first`.

        With `inner` all values in between are read, too, which keeps a runtime from fusing the nodes.
        """
        feeds = self._at(first)
        live = self.pieces.live(first, last)
        read = self.pieces.made(first, last) if inner else live
        run = self.pieces.source.prepare(read, feeds)
        found = run(feeds)
        self.values.update({name: found[name] for name in live})
        expected = {name: found[name] for name in self.pieces.shared(live)}
        if not expected:
            return _Stretch(first, last, {})
        try:
            actual = self.pieces.other.prepare(self.pieces.shared(read), feeds)(feeds)
        except OnwardError as error:
            if not self.fails:
                raise _OtherFails(str(error)) from error
            return _Stretch(first, last, {}, str(error))
        actual = {name: actual[name] for name in expected}
        floors = dict.fromkeys(expected, self.pieces.floor(first, last))
        verdicts = (judged or judge)(expected, actual, {}, floors)
        if judged is None and _differs(verdicts):
            verdicts = judge(expected, actual, errors(expected, run(jittered_inputs(feeds))), floors)
        if first == 0:
            self.paths.update(verdicts)
        return _Stretch(first, last, verdicts)

    def _at(self, position: int) -> Inputs:
        """The source's values that are known at a position."""
        return {name: value for name, value in self.values.items() if self.pieces.position(name) <= position}

    def _narrow(self, found: _Stretch) -> _Stretch:
        """Of a stretch that differs the first part of one node that does, else the smallest that was met."""
        for middle in self._middles(found.first, found.last):
            try:
                left = self._check(found.first, middle)
                best = self._narrow(left) if left.differs else None
                if best is not None and self._is_single(best):
                    return best
                right = self._check(middle, found.last)
            except OnwardError:
                continue
            narrowed = self._narrow(right) if right.differs else None
            if narrowed is not None and (best is None or self._is_single(narrowed)):
                return narrowed
            return best or found
        return found

    def _is_single(self, found: _Stretch) -> bool:
        """Whether there is no place inside at which both sides can be cut."""
        return not self._middles(found.first, found.last)

    def _middles(self, first: int, last: int) -> list[int]:
        """Positions inside, those near the middle first."""
        inside = self.pieces.cuts_between(first, last)[1:-1]
        return sorted(inside, key=lambda cut: abs(2 * cut - first - last))[:TRIES]

    def _explain(self, found: _Stretch, profiler: Profiler) -> tuple[Culprit | None, str]:
        """Who is to blame for a stretch that differs; a remark where no one is."""
        if found.differs and self._is_single(found):
            return self._culprit(found, found.failure), ""
        nodes = self.pieces.nodes[found.first : found.last]
        where = f"the {len(nodes)} nodes from {label(nodes[0])!r} to {label(nodes[-1])!r}"
        if found.failure:
            return self._culprit(found, f"{where} fail together, not one by one: {found.failure}"), ""
        blamed = first_beyond(profiler.profile(found.first, found.last, self._at(found.first), strict=True))
        if blamed is not None:
            return self._culprit_of(blamed, f"small by itself, it grows to {found.worst.error:.2g} in {where}"), ""
        if not found.differs or self._check(found.first, found.last, inner=True).worst.error > found.worst.error / 10:
            return None, f"no node is at fault by itself: differences of rounding grow in {where}"
        least = self._trimmed(found)
        count = least.last - least.first
        how = f"only shows in the fused whole of {count} nodes, and vanishes when a value in between is read"
        return self._culprit(least, how), ""

    def _trimmed(self, found: _Stretch) -> _Stretch:
        """The stretch without what can be left off at either end, found by halving what is left off."""
        for at_start in (True, False):
            cuts = self.pieces.cuts_between(found.first, found.last)
            step = (len(cuts) - 1) // 2
            while step and len(cuts) > step + 1:
                kept = cuts[step:] if at_start else cuts[:-step]
                tried = self._try(kept[0], kept[-1])
                if tried is not None and tried.differs:
                    found, cuts = tried, kept
                else:
                    step //= 2
        return found

    def _try(self, first: int, last: int) -> _Stretch | None:
        """A stretch that begins where not all of the source's values may have been computed yet."""
        try:
            feeds = self._at(first)
            if missing := [name for name in self.pieces.live(0, first) if name not in feeds]:
                self.values.update(self.pieces.source.prepare(missing, feeds)(feeds))
            return self._check(first, last)
        except OnwardError:
            return None

    def _culprit(self, found: _Stretch, how: str = "") -> Culprit:
        nodes = self.pieces.nodes[found.first : found.last]
        named = next((node for node in nodes if self.pieces.is_foreign(node)), nodes[0])
        wrong = tuple(name for name, verdict in found.verdicts.items() if verdict.differs)
        outputs = wrong or tuple(v.name for v in nodes[-1].outputs if v.name)
        if not how:
            how = self._change(named) if len(nodes) == 1 else f"the other computes {', '.join(outputs)} in another way"
        op = " + ".join(node.op_type for node in nodes)
        return Culprit(label(named), op, outputs, found.worst.error, found.worst.allowed, self.pieces.runs, how)

    def _culprit_of(self, entry: NodeError, how: str = "") -> Culprit:
        node = self.pieces.source.cutter.values[entry.value].producer()
        how = "; ".join(part for part in (how, self._change(node) if node is not None else "") if part)
        return Culprit(entry.node, entry.op, (entry.value,), entry.own or 0.0, entry.allowed, self.pieces.runs, how)

    def _change(self, node: ir.Node) -> str:
        """What the other model's file has in place of a node."""
        if self.pieces.is_one_model:
            return ""
        twins = (self.pieces.other.value(value.name or "") for value in node.outputs)
        twin = next((v.producer() for v in twins if v is not None), None)
        back = {here: name for name, here in self.pieces.other.names.items()}
        return f"in the other model {words}" if twin is not None and (words := change(node, twin, back)) else ""

    def _met(self, culprit: Culprit | None) -> Iterator[NodeError]:
        """What the search came by: errors at the cuts that were reached from the inputs, and the culprit's own."""
        for node in self.pieces.nodes:
            for name in (v.name for v in node.outputs if v.name):
                is_wrong = culprit is not None and name in culprit.outputs
                own = Verdict(culprit.own, culprit.allowed) if culprit is not None and is_wrong else None
                path = self.paths.get(name, own)
                if path is not None:
                    allowed = own.allowed if own is not None else path.allowed
                    own_error = own.error if own is not None else None
                    yield NodeError(name, label(node), node.op_type, path.error, own_error, allowed)
