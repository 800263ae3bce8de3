"""Proves that models are the same: runs a source and others on the same data and compares what comes out."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import onnx

from onward import runners
from onward.advice.nearest import meant
from onward.errors import MissingPackageError, OnwardError, RunFailure, UnsupportedError, UntrustedError
from onward.gate import trusting
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.runners import RUNNERS
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.full_precision import REMARK, may_round
from onward.verification.compare import compare, tolerance
from onward.verification.data.sets import DataSet, accepts, data_sets
from onward.verification.environment import environment
from onward.verification.locate import bisect as search
from onward.verification.locate.reduce import reduce
from onward.verification.metrics import FILL, Array, Error, is_float, rms
from onward.verification.noise.spread import Noise, measure_noise, usual_sizes
from onward.verification.results import OutputResult, Report, SideResult, Trial
from onward.verification.sides import Options, Side, Source, label, open_side, read

Progress = Callable[[str], None]
"""Told what is being done, a few words at a time."""
RANDOM_OPS = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
Other: TypeAlias = Source | Side


def verify(
    model: Other,
    against: Other | Iterable[Other] = "torch",
    *,
    source: str = "onnxruntime",
    inputs: Any = None,
    bisect: bool = False,
    all_nodes: bool = False,
    reduce_to: str | os.PathLike[str] | None = None,
    progress: Progress = lambda words: None,
    trust: bool = False,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    regimes: Sequence[str] = ("random", "zeros"),
    hard: bool = False,
    atol: float | None = None,
    rtol: float | None = None,
    isolate: bool = False,
    timeout: float | None = None,
    memory: int | None = None,
    quick: bool = False,
) -> Report:
    """Run `model` on `source`, run each of `against` on the same data, and compare.

    `model` is an ONNX model, or a file or folder of a framework (a generated package, `.pt2`, SavedModel, `.keras`,
    `.tflite`), or a side that is open already. Each of `against` is the name of a runner for the same model (`torch`,
    `torch:compile`, `openvino`), or another model or file; a `Path` is always a file. `inputs` are arrays by name, a
    list of such, or a path (`.npz`, `.npy`, images, a folder of test data sets); without them data is generated that
    fits the graph. With `bisect` the first node that differs is named, with `all_nodes` every value inside is compared,
    and `reduce_to` is a folder for the smallest model that still differs. `trust` lets code in
    files, and beside them, be executed; without it such files are refused.

    Generated data follows `dims` (sizes of dynamic dimensions by name), `seed` and `regimes`; with `hard` it holds NaN,
    infinities, denormals and an empty batch as well. With `quick` a single set is compared, given or generated.
    `atol` and `rtol` replace the tolerance by noise. `isolate` gives each runner a process of its own, which `timeout`,
    in seconds, and `memory`, in bytes, may limit. A runner that is not installed is left out, with a note, if there is
    another one to compare with.

    >>> import onward
    >>> onward.verify("examples/digits/digits.onnx", "torch").status
    'same'
    """
    how = Options(dims, seed, tuple(regimes), hard, atol, rtol, isolate, timeout, memory, quick)
    with trusting(trust):
        return _verified(model, _several(against), source, inputs, bisect, all_nodes, reduce_to, progress, how)


def _verified(
    model: Other,
    others: list[Other],
    source: str,
    inputs: Any,
    bisect: bool,
    all_nodes: bool,
    reduce_to: str | os.PathLike[str] | None,
    progress: Progress,
    how: Options,
) -> Report:
    began = time.perf_counter()
    progress(f"running {label(model)} on {source}")
    try:
        given = model if isinstance(model, Side) else read(model)
        begun = _begun(others, given, how)
        side = given if isinstance(given, Side) else open_side(given, source, how)
        truth = Truth.of(side, inputs, how, [label(other) for other in others])
    except RunFailure as error:
        raise error if str(error).startswith(source) else RunFailure(f"{source}: {error}") from error
    report = Report(label(model), truth.side.name, environment=dict(environment()), notes=truth.notes)
    report.data = [sample.data.label for sample in truth.samples]
    report.remark = _remark(truth.side)
    if report.remark:
        report.notes.append(f"{report.source} runs {report.remark}")
    report.blank, report.drawn = _blank(truth.samples), random_ops(truth.side.model)
    if any(sample.data.expected is not None for sample in truth.samples):
        report.sides.append(truth.recorded())
    absent: list[MissingPackageError] = []
    for other in others:
        progress(f"running {label(other)}")
        try:
            side = other if isinstance(other, Side) else _open(other, truth.side, source, how, begun)
        except UntrustedError:
            raise
        except OnwardError as error:
            if isinstance(error, MissingPackageError) and isinstance(other, str) and _is_runner(other):
                absent.append(error)
                report.notes.append(f"{other} is left out: {error}")
            else:
                report.sides.append(SideResult(label(other), failure=str(error)))
            continue
        result = truth.judge(side)
        searched = (bisect or reduce_to is not None) and result.status == "different"
        if searched or (all_nodes and result.trials):
            progress(f"comparing {side.name} node by node")
            try:
                result = truth.locate(side, result, all_nodes, None if reduce_to is None else Path(reduce_to))
            except OnwardError as error:  # the verdict stands
                truth.notes.append(f"{side.name} could not be compared node by node: {error}")
        side.close()
        report.notes += [f"{side.name}: {note}" for note in side.notes]
        report.sides.append(result)
    truth.side.close()
    if absent and len(absent) == len(others):
        raise absent[0]
    if truth.side.model is not None:
        report.graph = list(outline(truth.side.model))
    report.seconds = time.perf_counter() - began
    return report


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
        return cls(side, samples, how, judged, [*notes, *_doubts(side.model, samples)])

    def judge(self, other: Side) -> SideResult:
        """Run the other side on every sample, and compare."""
        return SideResult(other.name, self._trials([self._run(other, s) for s in self.samples]), seconds=other.seconds)

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

    @property
    def _known(self) -> Noise:
        """What is known of its noise so far: where two sides agree, no more is measured."""
        known: Noise = vars(self).get("_noise", self._sizes)
        return known

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
            if _differ(trials) and self._noise.widen():
                trials = self._compare(pairs, self._noise)
        return trials

    def _compare(self, pairs: list[Pair], noise: Noise) -> tuple[Trial, ...]:
        return tuple(Trial(pair.label, self._outputs(pair, noise), pair.seconds, pair.failure) for pair in pairs)

    def _outputs(self, pair: Pair, noise: Noise) -> tuple[OutputResult, ...]:
        if pair.actual is None:
            return ()
        atol, rtol = self.how.atol, self.how.rtol
        return tuple(compare(pair.expected, pair.actual, noise, quantized=noise.quantized, atol=atol, rtol=rtol))


def _remark(source: Side) -> str:
    return REMARK if source.runner.startswith("onnxruntime") and source.model and may_round(source.model) else ""


def _doubts(model: Model | None, samples: list[Sample]) -> Iterator[str]:
    """Why agreement, or a difference, may say little."""
    if drawn := random_ops(model):
        yield f"the source draws random numbers ({', '.join(drawn)}), so that even two runs of it may not agree"
    for name in samples[0].outputs:
        arrays = [sample.outputs[name] for sample in samples]
        if not all(isinstance(array, np.ndarray) for array in arrays):
            continue
        floats = all(is_float(array.dtype) for array in arrays)
        if not any(array.size for array in arrays):
            found = "is empty"
        elif floats and not any(np.isfinite(array).any() for array in arrays):
            found = "has no finite number"
        elif floats and not any(array.any() for array in arrays):
            found = "is zero"
        elif floats and all(_overshadowed(array) for array in arrays):
            found = "has a few elements next to which the others are smaller than what it may be off by"
        else:
            continue
        yield f"the output {name!r} {found}, for all of the data, so that agreement there says little"


def _overshadowed(array: Array) -> bool:
    """Whether most elements could be wrong without being noticed, because others are huge."""
    sizes = np.abs(array[np.isfinite(array)]).astype(np.float64)
    if not sizes.size or sizes.max() < FILL:
        return False
    allowed = tolerance(array.dtype, Error(), array.size).worst * rms(array)
    return bool(np.mean(sizes < allowed) > 0.5)


def _blank(samples: list[Sample]) -> str:
    """Why agreement would say nothing at all; '' where there is something that could differ."""
    outputs = [value for sample in samples for value in sample.outputs.values()]
    if not outputs:
        return "the source has no output"
    if any(map(_tells, outputs)):
        return ""
    return (
        "no output has a finite number in it, for any of the data"
        if any(map(_holds, outputs))
        else ("every output is empty, for all of the data")
    )


def _holds(value: Any) -> bool:
    """Whether there is anything in an output."""
    return any(array.size for array in _arrays(value))


def _tells(value: Any) -> bool:
    """Whether there is a number in an output, or a text."""
    return any(array.size and not (is_float(array.dtype) and not np.isfinite(array).any()) for array in _arrays(value))


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, Mapping):
        yield from (array for item in value.values() for array in _arrays(item))
    elif isinstance(value, list | tuple):
        yield from (array for item in value for array in _arrays(item))
    elif value is not None:
        yield np.asarray(value)


def random_ops(model: Model | None) -> list[str]:
    if model is None:
        return []
    graphs = [model.ir.graph, *(function.graph for function in model.ir.functions.values())]
    return sorted({node.op_type for graph in graphs for node in all_nodes(graph) if node.op_type in RANDOM_OPS})


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


def _several(against: Other | Iterable[Other]) -> list[Other]:
    if isinstance(against, str | os.PathLike | bytes | onnx.ModelProto | Model | Side):
        return [against]
    return list(cast(Iterable[Other], against))


def _begun(others: list[Other], model: Other, how: Options) -> dict[str, Callable[[], Run]]:
    """The first of the others, where it can be prepared while the source is; by the name of its runner."""
    first = others[0] if others else None
    if not isinstance(first, str) or not isinstance(model, Model) or how.is_isolated or not _is_runner(first):
        return {}
    try:
        return {first: runners.start(first, model)}
    except UnsupportedError:  # what `_open` will say
        return {}


def _is_runner(other: str) -> bool:
    return runners.is_known(other) or not Path(other).exists()


def _open(other: Source, truth: Side, runner: str, how: Options, begun: dict[str, Callable[[], Run]]) -> Side:
    """Another runner for the source's model, or another model."""
    if not isinstance(other, str) or not _is_runner(other):
        return open_side(other, runner, how, name=label(other))
    if not runners.is_known(other):
        near = meant(other, RUNNERS)
        raise UnsupportedError(
            f"there is neither a file nor a runner {other!r}; runners are {', '.join(RUNNERS)}{near}"
        )
    if truth.model is None:
        raise UnsupportedError(f"{truth.name} is not an ONNX model, so it cannot be run on {other}")
    return open_side(truth.model, other, how, prepared=begun.pop(other, None))


def _data(source: _Remembering, inputs: Any, how: Options) -> Iterator[DataSet]:
    model = source.side.model if source.side.model is not None else source.side.slots
    few: dict[str, Any] = {"regimes": how.regimes[:1], "sizes": 1} if how.quick else {"regimes": how.regimes}
    sets = data_sets(model, inputs=inputs, dims=how.dims, seed=how.seed, hard=how.hard, runs=accepts(source), **few)
    return itertools.islice(sets, 1) if how.quick else sets


def outline(model: Model) -> Iterator[dict[str, Any]]:
    """The nodes of a graph, for a picture of it."""
    for node in model.ir.graph:
        yield {
            "name": node.name or "",
            "op": node.op_type,
            "inputs": [value.name for value in node.inputs if value is not None],
            "outputs": [value.name for value in node.outputs],
        }
