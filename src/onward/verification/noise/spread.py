"""How far apart two faithful runs of one model may be.

Every engine rounds in its own way, and a model may amplify that: a quantised one turns the last bit of a float into a
whole step. So a model is compared with itself: with optimisations off and on, in double precision where a runtime
takes it, and, where that does not settle the matter, with copies whose intermediate results are all off by one unit in
the last place. Only runs of one engine are held against each other: a defect of another is never taken for noise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from onward import runners
from onward.model import Model, load
from onward.runners.calls import Inputs, Outputs, Run
from onward.verification.compare import measure
from onward.verification.metrics import Error, is_float, rms
from onward.verification.noise.in_double import in_double, narrowed, widened
from onward.verification.noise.jitter import jittered
from onward.verification.pairs import anywhere, pairs

__all__ = ["Noise", "jittered", "measure_noise"]

OPTIMIZED, PLAIN = "onnxruntime", "onnxruntime:unoptimized"
JITTERS = 4
"""How often each set of inputs is run on a copy that rounds differently, and at most where outputs are small."""
MOST_JITTERS = 12
ENOUGH, SECONDS = 256, 10.0
"""Elements of noise after which one more run says little; time after which a small output is not run more often."""
LARGE, BEYOND = 1e-4, 30.0
"""A difference by optimisations that is looked into, and how many times the noise of rounding it may be."""
HUGE = 1e3
BOUNDED = {"Sigmoid", "HardSigmoid", "Tanh", "Erf", "Softsign"}
"""Ops whose results are measured by 1, however small they are."""
KEEPING = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Identity", "Slice", "Concat", "Gather", "Split"}
# fmt: off
SINGLE_ONLY = {
    "AveragePool", "Celu", "Conv", "ConvTranspose", "DequantizeLinear", "Elu", "Erf", "Gelu", "GlobalAveragePool",
    "GlobalMaxPool", "HardSigmoid", "InstanceNormalization", "LRN", "LeakyRelu", "MeanVarianceNormalization", "PRelu",
    "QLinearConv", "QLinearMatMul", "QuantizeLinear", "DynamicQuantizeLinear", "RNN", "Resize", "Selu", "Softplus",
    "Softsign", "ThresholdedRelu", "Upsample",
}
# fmt: on
"""Common ops that ONNX Runtime has in single precision only."""
QUANTIZING = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinear", "QGemm")

OPTIMISATIONS = "optimisations off against on"
DOUBLE = "single against double precision"
JITTER = "results moved by a unit in the last place"

Sets = Sequence[tuple[Inputs, Outputs]]
Found = dict[str, Error]
Prepare = Callable[[str, Model], Run]
Until = Callable[[], bool]
"""Whether what is known of noise is enough."""


@dataclass
class Noise(Mapping[str, Error]):
    """The noise of each output of a model, by name; positions in sequences are left out: `s[]`."""

    errors: Found = field(default_factory=dict)
    how: str = ""
    """What it was measured by."""
    remark: str = ""
    """What else came to light."""
    quantized: frozenset[str] = frozenset()
    """Outputs that are steps of a quantised scale; their noise is in steps."""
    by_set: list[tuple[Inputs, Found]] = field(default_factory=list, repr=False)
    """The same for each set of inputs alone."""
    _further: list[Callable[[Noise, Until], bool]] = field(default_factory=list, repr=False)
    """What measures more; each says whether it could go on."""
    _measurements: int = 0

    def widen(self, until: Until = lambda: False) -> bool:
        """Measure more thoroughly, no further than `until` is true; False if there is no more to be learnt.

        It takes many runs, so it is only worth it where a difference shows.
        """
        before = self._measurements
        self._further = [step for step in self._further if step(self, until)]
        return self._measurements > before

    def add(self, how: str, found: Sequence[Found]) -> None:
        """Take another measurement, set by set, into account; what could not be compared says nothing."""
        for place, errors in enumerate(found):
            usable = {name: error for name, error in errors.items() if np.isfinite(error.worst) and error.samples}
            for name, error in usable.items():
                for pool in (self.errors, self.by_set[place][1]):
                    pool[anywhere(name)] = pool.get(anywhere(name), Error()) | replace(error, how=how)
            self._measurements += bool(usable)
            if usable and how not in self.how:
                self.how = f"{self.how}; {how}" if self.how else how

    def on(self, inputs: Inputs) -> Noise | None:
        """What was measured on one set of inputs alone; None where nothing was."""
        errors = next((errors for measured, errors in self.by_set if measured is inputs), None)
        return None if errors is None else Noise(errors, self.how, quantized=self.quantized)

    def without(self, left_out: Sequence[Inputs]) -> Noise:
        """What was measured on the other sets."""
        kept = [item for item in self.by_set if not any(item[0] is inputs for inputs in left_out)]
        return Noise(_pooled(errors for _, errors in kept), self.how, self.remark, self.quantized, kept)

    def __getitem__(self, name: str) -> Error:
        return self.errors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.errors)

    def __len__(self) -> int:
        return len(self.errors)


def measure_noise(
    model: Model,
    sets: Sets,
    *,
    source: str = OPTIMIZED,
    judged: Collection[str] = (),
    prepare: Prepare = runners.prepare,
) -> Noise:
    """The noise of `model` on sets of inputs, each with the outputs of the runner `source`, pooled over the sets.

    Where the same model is `judged` on the very runners that its noise would be measured by, other ways have to do.
    `prepare` makes the runs, for those that are to take place in processes of their own.
    """
    noise, ordinary = usual_sizes(model, sets), _ordinary(sets)
    noise.by_set = [(inputs, dict(noise.errors)) for inputs, _ in ordinary]
    engine = _OnnxRuntime(model, ordinary, source, noise, prepare)
    if not {OPTIMIZED, PLAIN} <= {source, *judged}:
        noise.add(OPTIMISATIONS, engine.plausible(engine.optimisations()))
    noise.add(DOUBLE, engine.double())
    noise._further.append(engine.widen)
    return noise


def usual_sizes(model: Model, sets: Sets) -> Noise:
    """What is known of noise before anything more is run: how large each output is on ordinary data."""
    ordinary = _ordinary(sets)
    return Noise(_scales(model, ordinary[0][1]) if ordinary else {}, quantized=quantized_outputs(model))


@dataclass
class _OnnxRuntime:
    """Runs the model in several ways, each once for every set of inputs."""

    model: Model
    sets: Sets
    source: str
    noise: Noise
    prepare: Prepare
    _runs: dict[str, list[Outputs]] = field(default_factory=dict)
    _is_widened: bool = False
    _rounds: int = 0
    """How often each set was run on a copy that rounds differently."""
    _seconds: float = 0.0

    def outputs(self, runner: str) -> list[Outputs]:
        """Of the model itself, in single precision; none where it does not run."""
        if runner == self.source:
            return [outputs for _, outputs in self.sets]
        if runner not in self._runs:
            run = _attempt(lambda: self.prepare(runner, self.model))
            self._runs[runner] = list(self._each(run))
        return self._runs[runner]

    def optimisations(self) -> list[Found]:
        return self._apart(self.outputs(OPTIMIZED), self.outputs(PLAIN))

    def plausible(self, by_set: list[Found]) -> list[Found]:
        """Without what is far beyond rounding: there, optimisations have changed what the model computes."""
        optimisations = _pooled(by_set)
        large = {n for n, error in optimisations.items() if error.worst > LARGE and n not in self.noise.quantized}
        quantizing = any(node.op_type.startswith(QUANTIZING) for node in self.model.ir.graph)
        if not large or quantizing:
            return by_set
        self.widen(self.noise, lambda: False)
        limits = {name: BEYOND * self.noise.errors[name].worst for name in large if name in self.noise.errors}
        kept = {n: e for n, e in optimisations.items() if n not in large or e.worst <= limits.get(n, np.inf)}
        changed = sorted(optimisations.keys() - kept.keys())
        if changed:
            worst = max(optimisations[name].worst for name in changed)
            self.noise.remark = (
                f"ONNX Runtime's optimisations change {', '.join(changed)} by {worst:.1e}, beyond rounding"
            )
        return [{name: error for name, error in found.items() if name in kept} for found in by_set]

    def double(self) -> list[Found]:
        """In double precision, for which ONNX Runtime has no kernels of many ops."""
        if any(node.domain not in ("", "ai.onnx") or node.op_type in SINGLE_ONLY for node in self.model.ir.graph):
            return []
        return self._apart(
            self.outputs(PLAIN), list(self._each(_attempt(lambda: _in_double(self.prepare, PLAIN, self.model))))
        )

    def widen(self, noise: Noise, until: Until) -> bool:
        """On copies that round differently; in double precision on PyTorch if ONNX Runtime does not run the model.

        To its end only once: a second time says no more. It stops where `until` is true, as long as it says enough of
        every output by then. Whether it could go on.
        """
        if self._is_widened:
            return False
        if not (plain := self.outputs(PLAIN)):
            self._is_widened = True
            wide = list(self._each(_attempt(lambda: _in_double(self.prepare, "torch", self.model))))
            noise.add(DOUBLE, self._apart(self.outputs("torch"), wide))
            return False
        began = time.perf_counter() - self._seconds
        while self._rounds < MOST_JITTERS:
            enough = all(error.samples >= ENOUGH for error in noise.errors.values() if error.samples)
            if self._rounds >= JITTERS and (enough or self._seconds > SECONDS):
                break
            if self._rounds and enough and until():
                return True
            if not any(found := self._apart(plain, list(self._each(self._moved)))):
                break
            noise.add(JITTER, found)
            self._rounds, self._seconds = self._rounds + 1, time.perf_counter() - began
        self._is_widened = True
        return False

    @cached_property
    def _moved(self) -> Run | None:
        """A copy that rounds differently."""
        run: Run | None = _attempt(lambda: self.prepare(PLAIN, load(jittered(self.model.to_proto()))))
        return run

    def _each(self, run: Run | None) -> Iterator[Outputs]:
        """The outputs for each set, up to the first that fails."""
        for inputs, _ in self.sets if run is not None else ():
            outputs = _attempt(lambda inputs=inputs: run(inputs))  # type: ignore[misc]
            if outputs is None:
                return
            yield outputs

    def _apart(self, one: list[Outputs], other: list[Outputs]) -> list[Found]:
        """The errors of each set."""
        by_set: list[Found] = []
        for expected, actual in zip(one, other, strict=False):
            found = measure(expected, actual, self.noise.errors, self.noise.quantized)
            finite = [{anywhere(n): replace(e, scale=0.0)} for n, e in found.items() if np.isfinite(e.worst)]
            by_set.append(_pooled(finite))
        return by_set


def _pooled(several: Iterable[Found]) -> Found:
    """The largest of each output."""
    pooled: Found = {}
    for found in several:
        for name, error in found.items():
            pooled[name] = pooled.get(name, Error()) | error
    return pooled


def quantized_outputs(model: Model) -> frozenset[str]:
    """The outputs that are steps of a quantised scale, not numbers of their own."""
    made_by = {value.name or "": _maker(value) for value in model.ir.graph.outputs}
    return frozenset(name for name, op in made_by.items() if op.startswith(QUANTIZING))


def _maker(value: ir.Value) -> str:
    """The op whose results an output holds, perhaps in another shape."""
    node = value.producer()
    while node is not None and node.op_type in KEEPING and node.inputs and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return "" if node is None else node.op_type


def _scales(model: Model, outputs: Outputs) -> Found:
    """The size of each output on ordinary data, as a noise of nothing yet."""
    bounded = {value.name for value in model.ir.graph.outputs if _maker(value) in BOUNDED}
    found: Found = {}
    for pair in pairs(outputs, outputs):
        if pair.expected is not None and is_float(pair.expected.dtype):
            scale = max(rms(pair.expected), 1.0 if pair.name in bounded else 0.0)
            found[anywhere(pair.name)] = Error(scale=scale)
    return found


def _ordinary(sets: Sets) -> Sets:
    """The sets on which noise is measured: finite numbers, and none far larger than the first set has."""
    usual = _size(sets[0][0]) if sets else 0.0
    return [item for item in sets if _size(item[0]) <= HUGE * max(usual, 1.0)] or sets


def _size(inputs: Inputs) -> float:
    """The largest number; infinite where there is NaN, infinity, or nothing."""
    arrays = [value for value in inputs.values() if isinstance(value, np.ndarray)]
    floats = [array for array in arrays if is_float(array.dtype)]
    if not all(array.size for array in arrays) or not all(np.isfinite(array).all() for array in floats):
        return float("inf")
    return max((float(np.abs(array).max()) for array in floats), default=0.0)


def _in_double(prepare: Prepare, runner: str, model: Model) -> Run:
    run = prepare(runner, load(in_double(model.to_proto())))
    like = {value.name: value.dtype == ir.DataType.FLOAT for value in model.ir.graph.outputs}

    def narrow(inputs: Inputs) -> Outputs:
        outputs = run({name: widened(value) for name, value in inputs.items()})
        return {name: narrowed(value) if like.get(name, True) else value for name, value in outputs.items()}

    return narrow


def _attempt(action: Callable[[], Any]) -> Any:
    """What it gives, or None if it fails: a measurement that cannot be made is left out."""
    try:
        return action()
    except Exception:  # of a runtime, of onnx, or for want of memory
        return None
