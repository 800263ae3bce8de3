"""The source of a verification: what it computes, what others are held against, and by which tolerance."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from onward.advice.options import option
from onward.errors import OnwardError, RunFailure, UnsupportedError
from onward.runners.calls import Inputs, Outputs
from onward.verification.arbitration import Case, arbitrated
from onward.verification.compare import compare, is_drowned
from onward.verification.data.regimes import RANDOM
from onward.verification.data.sets import DataSet, accepts, data_sets
from onward.verification.doubts import doubts, drawn_outputs, random_ops
from onward.verification.locate import bisect as search
from onward.verification.locate.reduce import reduce
from onward.verification.noise.spread import Noise, measure_noise, usual_sizes
from onward.verification.pairs import renamed
from onward.verification.results import Arbitration, OutputResult, SideResult, Trial
from onward.verification.sides import Options, Side

TOLD_APART = {"dtype", "missing", "shape", "type", "unexpected"}
"""Kinds of differences that random numbers do not explain."""
MOST_NAMES = 3
"""Of outputs with other names that a note tells of."""


@dataclass(frozen=True)
class Sample:
    """A set of inputs and what the source makes of it."""

    data: DataSet
    outputs: Outputs


@dataclass(frozen=True)
class Pair:
    """Two sets of outputs to be compared, or why one is missing."""

    label: str
    expected: Outputs
    actual: Outputs | None
    seconds: float = 0.0
    failure: str = ""


@dataclass
class Truth:
    """The source: what it makes of each set of inputs, and how far its own rounding carries."""

    side: Side
    samples: list[Sample]
    how: Options
    judged: Collection[str]
    """The names of the sides to come, which its noise is not measured by."""
    notes: list[str] = field(default_factory=list)
    is_given: bool = False
    """Whether the data is the user's."""

    @classmethod
    def of(cls, side: Side, inputs: Any, how: Options, judged: Collection[str]) -> Truth:
        """Run the source."""
        notes: list[str] = []
        samples: list[Sample] = []
        source = _Remembering(side)
        for data in source.explained(_data(source, inputs, how)):
            try:
                samples.append(Sample(data, source(data.inputs)))
            except RunFailure as error:
                if inputs is not None or not samples:  # the first set is one that the model ought to run on
                    raise
                notes.append(f"{side.name} does not run on {data.label} ({error}), so nothing is compared there")
        if not samples:
            raise UnsupportedError(f"{side.name} fails on all of the data")
        notes += doubts(side.model, [sample.outputs for sample in samples])
        return cls(side, samples, how, judged, notes, inputs is not None)

    def judge(self, other: Side) -> SideResult:
        """Run the other side on every sample, and compare."""
        pairs = [self._run(other, sample) for sample in self.samples]
        self._tell_names(other, pairs)
        trials = self._trials(pairs)
        if drowned := self._drowned(pairs, trials):
            self._replace(drowned)
            pairs = [self._run(other, self.samples[i]) if i in drowned else pair for i, pair in enumerate(pairs)]
            trials = self._trials(pairs)
            left = self._drowned(pairs, trials)
            trials = tuple(_undecided(trial, left[i]) if i in left else trial for i, trial in enumerate(trials))
        return SideResult(
            other.name, trials, seconds=other.seconds, arbitration=self._arbitration(other, pairs, trials)
        )

    def recorded(self) -> SideResult:
        """The source against the outputs that its data came with."""
        pairs = [Pair(s.data.label, s.data.expected, s.outputs) for s in self.samples if s.data.expected is not None]
        return SideResult(f"{self.side.name}, against the outputs recorded with the data", self._trials(pairs))

    def locate(self, other: Side, result: SideResult, all_nodes: bool, reduce_to: Path | None) -> SideResult:
        """The result with the node at which the two part."""
        if self.side.model is None or other.model is None:
            if result.status == "different":
                self.notes.append(f"{other.name} has no ONNX graph, so the node at which it differs is not looked for")
            return result
        statuses = [trial.status for trial in result.trials]
        differs = "different" in statuses
        inputs = self.samples[statuses.index("different") if differs else 0].data.inputs
        ends = (
            search.Subject(self.side.model, self.side.runner, self.how.prepare),
            search.Subject(other.model, other.runner, self.how.prepare),
        )
        found = search.bisect(*ends, inputs, noise=self._known, all_nodes=all_nodes, certain=differs)
        culprit = found.culprit if differs else None
        if found.remark:
            self.notes.append(found.remark)
        hidden = [] if differs else [e for e in found.profile if e.own is not None and e.own > e.allowed]
        if hidden:
            node = f"{hidden[0].node} ({hidden[0].op})"
            self.notes.append(
                f"the outputs of {other.name} agree, but {node} by itself is off by {hidden[0].own:.1e}, "
                f"beyond {hidden[0].allowed:.1e}: a difference that hardly shows in the outputs"
            )
        if culprit is not None and reduce_to is not None:
            try:
                culprit = replace(culprit, reduced=str(reduce(*ends, inputs, culprit, reduce_to)))
            except (OnwardError, OSError) as error:
                self.notes.append(f"no smaller model was written to {reduce_to}: {error}")
        return replace(result, culprit=culprit, profile=found.profile)

    @property
    def _sets(self) -> list[tuple[Inputs, Outputs]]:
        return [(sample.data.inputs, sample.outputs) for sample in self.samples]

    @cached_property
    def _sizes(self) -> Noise:
        return Noise() if self.side.model is None else usual_sizes(self.side.model, self._sets)

    @cached_property
    def _noise(self) -> Noise:
        if self.side.model is None:
            return Noise()
        found = measure_noise(
            self.side.model, self._sets, source=self.side.runner, judged=self.judged, prepare=self.how.prepare
        )
        if found.remark:
            self.notes.append(found.remark)
        return found

    _is_partial = False
    """Whether the noise is not that of all of the data."""

    @property
    def _known(self) -> Noise:
        """What is known of its noise so far: where two sides agree, no more is measured."""
        known: Noise = vars(self).get("_noise", self._sizes)
        return known

    def _arbitration(self, other: Side, pairs: list[Pair], trials: tuple[Trial, ...]) -> Arbitration | None:
        if not self.how.arbitrate:
            return None
        cases = [
            Case(sample.data.inputs, pair.expected, pair.actual)
            for sample, pair, trial in zip(self.samples, pairs, trials, strict=True)
            if trial.status == "different" and pair.actual is not None
        ]
        return arbitrated(self.side, other, cases, self._agree, self.how.prepare)

    def _agree(self, expected: Outputs, actual: Outputs) -> bool:
        return all(result.status == "same" for result in self._outputs(Pair("", expected, actual), self._known))

    def _drowned(self, pairs: list[Pair], trials: tuple[Trial, ...]) -> dict[int, OutputResult]:
        """The sets of inputs on which all that differs drowns in the source's rounding there, each with an output."""
        found: dict[int, OutputResult] = {}
        for place, (sample, pair, trial) in enumerate(zip(self.samples, pairs, trials, strict=True)):
            own = self._known.on(sample.data.inputs) if trial.status == "different" else None
            differing = [] if own is None else [r for r in self._outputs(pair, own) if r.status == "different"]
            if differing and all(map(is_drowned, differing)):
                found[place] = max(differing, key=lambda result: result.tolerance.noise_overall)
        return found

    def _replace(self, drowned: Mapping[int, OutputResult]) -> None:
        """Take other data in place of sets on which nothing can be told, where it is not the user's."""
        left_out = []
        for place, output in drowned.items():
            if self.is_given or (sample := self._another(place)) is None:
                continue
            left_out.append(self.samples[place].data.inputs)
            self.notes.append(
                f"on {self.samples[place].data.label} {_words(output)}; {sample.data.label} is compared in its place"
            )
            self.samples[place] = sample
        if left_out:
            known = self._noise.without(left_out)
            vars(self).pop("_sizes", None)
            vars(self)["_noise"], self._is_partial = known, True

    def _another(self, place: int) -> Sample | None:
        seed = self.how.seed + 1 + place
        how = replace(self.how, seed=seed, regimes=(RANDOM,), quick=True)
        try:
            data = next(_data(_Remembering(self.side), None, how))
            return Sample(replace(data, label=f"{data.label}, seed {seed}"), self.side(data.inputs))
        except OnwardError:
            return None

    def _tell_names(self, other: Side, pairs: list[Pair]) -> None:
        ran = next((pair for pair in pairs if pair.actual), None)
        if ran is not None and ran.actual and (found := renamed(list(ran.expected), list(ran.actual))):
            some = [f"{name!r} is {called!r}" for name, called in islice(found.items(), MOST_NAMES)]
            more = f", and {len(found) - len(some):,} more" if len(found) > len(some) else ""
            self.notes.append(
                f"{other.name} has other names for outputs, which are matched by position: {', '.join(some)}{more}"
            )

    def _run(self, other: Side, sample: Sample) -> Pair:
        began = time.perf_counter()
        actual, failure = None, ""
        try:
            actual = other(sample.data.inputs)
        except RunFailure as error:
            failure = str(error)
        return Pair(sample.data.label, sample.outputs, actual, time.perf_counter() - began, failure)

    def _trials(self, pairs: list[Pair]) -> tuple[Trial, ...]:
        """The source's noise is measured only where neither the dtype nor the usual size of an output explains a
        difference, then more thoroughly."""
        trials = self._compare(pairs, self._sizes)
        if self.how.atol is None and self.how.rtol is None:
            if _differ(trials):
                trials = self._compare(pairs, self._noise)
            if _differ(trials) and self._is_partial:
                del vars(self)["_noise"]
                self._is_partial = False
                trials = self._compare(pairs, self._noise)
            if _differ(trials) and self._noise.widen(lambda: self._is_settled(pairs)):
                trials = self._compare(pairs, self._noise)
        return trials

    def _is_settled(self, pairs: list[Pair]) -> bool:
        """Whether all agree by what is known of the noise, or what does not drowns in it."""
        trials = self._compare(pairs, self._noise)
        drowned = self._drowned(pairs, trials)
        return not any(trial.status == "different" for i, trial in enumerate(trials) if i not in drowned)

    def _compare(self, pairs: list[Pair], noise: Noise) -> tuple[Trial, ...]:
        return tuple(Trial(pair.label, self._outputs(pair, noise), pair.seconds, pair.failure) for pair in pairs)

    def _outputs(self, pair: Pair, noise: Noise) -> tuple[OutputResult, ...]:
        if pair.actual is None:
            return ()
        atol, rtol = self.how.atol, self.how.rtol
        found = compare(pair.expected, pair.actual, noise, quantized=noise.quantized, atol=atol, rtol=rtol)
        return tuple(self._excused(result) for result in found)

    def _excused(self, result: OutputResult) -> OutputResult:
        """Of what is drawn at random, the values say nothing."""
        if result.status == "same" or result.kind in TOLD_APART or result.name.partition("[")[0] not in self._drawn:
            return result
        reason = f"it is drawn at random ({', '.join(random_ops(self.side.model))}), so its values are not compared"
        return replace(result, status="failed", kind="drawn", reason=reason)

    @cached_property
    def _drawn(self) -> set[str]:
        return drawn_outputs(self.side.model)


def _undecided(trial: Trial, output: OutputResult) -> Trial:
    """Where nothing can be told, and there is no other data."""
    reason = f"{_words(output)}: compare on data that the model is made for ({option('inputs')})"
    found = [
        replace(result, status="failed", kind="drowned", reason=reason) if result.status == "different" else result
        for result in trial.outputs
    ]
    return replace(trial, outputs=tuple(found))


def _words(drowned: OutputResult) -> str:
    share = 100 * drowned.tolerance.noise_overall
    return f"rounding alone moves {drowned.name} by {share:.0f} % of its size, so nothing can be told there"


def _differ(trials: tuple[Trial, ...]) -> bool:
    return any(trial.status == "different" for trial in trials)


class _Remembering:
    """A side that is asked first whether it runs on inputs, and then for what comes out."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._last: tuple[Inputs, Outputs] | None = None
        self._failure: RunFailure | None = None

    def __call__(self, inputs: Inputs) -> Outputs:
        if self._last is None or self._last[0] is not inputs:
            try:
                self._last = inputs, self.side(inputs)
            except RunFailure as error:
                self._failure = error
                raise
        return self._last[1]

    def explained(self, sets: Iterator[DataSet]) -> Iterator[DataSet]:
        """The sets; where none can be found that the side runs on, what it says of the last one."""
        try:
            yield from sets
        except UnsupportedError as error:
            if self._failure is None:
                raise
            raise UnsupportedError(f"{error} The last attempt: {self._failure}") from error


def _data(source: _Remembering, inputs: Any, how: Options) -> Iterator[DataSet]:
    model = source.side.model if source.side.model is not None else source.side.slots
    few: dict[str, Any] = {"regimes": how.regimes[:1], "sizes": 1} if how.quick else {"regimes": how.regimes}
    sets = data_sets(model, inputs=inputs, dims=how.dims, seed=how.seed, hard=how.hard, runs=accepts(source), **few)
    return islice(sets, 1) if how.quick else sets
