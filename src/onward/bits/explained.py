"""How far rounding to 16 bits may move the outputs of a model."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import onnx_ir as ir

from onward.bits.probe import AS_IT_STANDS
from onward.model import Model, load
from onward.runners import prepare
from onward.runners.calls import Inputs, Outputs
from onward.verification.compare import measure
from onward.verification.metrics import Error, epsilon, is_float
from onward.verification.noise.jitter import jittered
from onward.verification.noise.spread import ENOUGH, JITTERS, MOST_JITTERS, SECONDS, measure_noise
from onward.verification.pairs import anywhere, pairs

Sets = Sequence[tuple[Inputs, Outputs]]


@dataclass(frozen=True)
class Explained:
    """By output, the error that rounding to 16 bits makes by itself; of integers, the share that changes."""

    source: Model
    half: ir.DataType
    sets: Sets

    @cached_property
    def quick(self) -> Mapping[str, Error]:
        """The noise of the model in 32 bits, as much larger as the rounding is.

        That is quickly found, and too little where the runs compared round alike.
        """
        noise, integers = measure_noise(self.source, list(self.sets)), set(_integers(self.sets))
        return {name: noise[name] if name in integers else self._coarser(noise[name]) for name in noise}

    @cached_property
    def measured(self) -> Mapping[str, Error]:
        """The same, or what runs tell in which each result is off by up to half a unit in the last place of 16 bits."""
        found, how = dict(self.quick), f"results moved as by rounding to {self.half.name.lower()}"
        with contextlib.suppress(Exception):  # of a runtime, of onnx, or for want of memory: then it is not measured
            for errors in self._moved():
                for name, error in errors.items():
                    if math.isfinite(error.worst) and error.samples:
                        found[anywhere(name)] = found.get(anywhere(name), Error()) | replace(error, scale=0.0, how=how)
        return found

    def _coarser(self, noise: Error) -> Error:
        least = epsilon(self.half.numpy())
        times = least / epsilon(ir.DataType.FLOAT.numpy())
        return replace(
            noise,
            worst=max(_finite(noise.worst) * times, least),
            overall=max(_finite(noise.overall) * times, least),
            how=f"rounding to {self.half.name.lower()}",
        )

    def _moved(self) -> Iterator[dict[str, Error]]:
        """How far the outputs are off in each run; few of them are run more often."""
        copy = load(jittered(self.source.to_proto(), unit=epsilon(self.half.numpy()) / 2))
        plain, moved = prepare(AS_IT_STANDS, self.source), prepare(AS_IT_STANDS, copy)
        expected = [plain(inputs) for inputs, _ in self.sets]
        began, samples = time.perf_counter(), 0
        for turn in range(MOST_JITTERS):
            for (inputs, _), outputs in zip(self.sets, expected, strict=True):
                errors = measure(outputs, moved(inputs), self.quick)
                samples += min((error.samples for error in errors.values() if error.samples), default=ENOUGH)
                yield errors
            if turn + 1 >= JITTERS and (samples >= ENOUGH or time.perf_counter() - began > SECONDS):
                return


def _integers(sets: Sets) -> Iterator[str]:
    """The names of outputs that are no floats."""
    for _, outputs in sets:
        for pair in pairs(outputs, outputs):
            if pair.expected is not None and not is_float(pair.expected.dtype):
                yield anywhere(pair.name)


def _finite(number: float) -> float:
    return number if math.isfinite(number) else 0.0
