"""Whether a model in 16 bits is as near to the original as rounding explains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import onnx_ir as ir

from onward.bits.candidates import candidates
from onward.bits.decided import Decided, decided
from onward.bits.explained import Explained
from onward.bits.probe import AS_IT_STANDS, rounding
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs, Outputs
from onward.verification.compare import compare
from onward.verification.results import OutputResult

Made = Callable[[Model], Model]
"""Puts a model into 16 bits: the original, or a copy of it with as many nodes."""


@dataclass(frozen=True)
class Judgement:
    """What was compared, set by set."""

    outputs: tuple[OutputResult, ...]
    elsewhere: tuple[OutputResult, ...] = ()
    """Outputs that differ because near races went another way; what these are decided by is among the others."""

    @property
    def is_good(self) -> bool:
        return all(one.status == "same" for one in self.outputs)

    @property
    def closeness(self) -> float:
        return max((one.closeness for one in self.outputs), default=0.0)


class Judge:
    """Holds models in 16 bits against the original, with more effort only where a difference shows."""

    def __init__(self, source: Model, half: ir.DataType, samples: Sequence[Inputs]) -> None:
        self._source, self._half, self._samples = source, half, samples
        self._plain = _Comparison(source, half, samples)

    def judge(self, made: Made) -> Judgement:
        plain = self._plain.judge(made(self._source))
        if plain.is_good or (opened := self._opened) is None:
            return plain
        found = opened.judge(made(opened.source))
        if not found.is_good:
            return found if found.closeness < plain.closeness else plain
        return Judgement(found.outputs, tuple(one for one in plain.outputs if one.status != "same"))

    @cached_property
    def _opened(self) -> _Comparison | None:
        found: Decided | None = decided(self._source, self._samples)
        return None if found is None else _Comparison(found.model, self._half, found.samples)


class _Comparison:
    def __init__(self, source: Model, half: ir.DataType, samples: Sequence[Inputs]) -> None:
        self.source, self._half, self._samples = source, half, samples
        run = prepare("onnxruntime", source)
        self._expected: list[Outputs] = [run(inputs) for inputs in samples]
        self._explained = Explained(source, half, list(zip(samples, self._expected, strict=True)))

    def judge(self, made: Model) -> Judgement:
        run = prepare(AS_IT_STANDS, rounding(made, self._half, list(candidates(made.ir, self._half, self._half))))
        found = [run(inputs) for inputs in self._samples]
        result = self._held_against(found)
        return result if result.is_good or not self._explained.widen() else self._held_against(found)

    def _held_against(self, found: Sequence[Outputs]) -> Judgement:
        pairs = zip(self._expected, found, strict=True)
        return Judgement(tuple(one for pair in pairs for one in compare(*pair, self._explained.errors)))
