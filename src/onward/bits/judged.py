"""Whether a model in 16 bits is as near to the original as rounding explains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from onward.verification.metrics import Error
from onward.verification.results import OutputResult

Made = Callable[[Model], Model]
"""Puts a model into 16 bits: the original, or a copy of it with as many nodes."""


@dataclass(frozen=True)
class Judgement:
    """What was compared, set by set."""

    outputs: tuple[OutputResult, ...]
    elsewhere: tuple[OutputResult, ...] = ()
    """Outputs that differ because near races go another way; what these are decided by is among the others."""

    @property
    def is_good(self) -> bool:
        return all(one.status == "same" for one in self.outputs)

    @property
    def closeness(self) -> float:
        return max((one.closeness for one in self.outputs), default=0.0)


@dataclass(frozen=True)
class Trial:
    """A model in 16 bits; the second look at it takes more effort than the first."""

    _made: Made
    _plain: _Comparison
    _opened: Callable[[], _Comparison | None]

    @cached_property
    def quick(self) -> Judgement:
        """By noise that is quickly found."""
        return self._plain.held_against(self._outputs, self._plain.explained.quick)

    @cached_property
    def thorough(self) -> Judgement:
        """By noise that is measured in 16 bits, and where that does not explain it, by what decisions are made of."""
        plain = self._plain.held_against(self._outputs, self._plain.explained.measured)
        changed = tuple(one for one in plain.outputs if one.status != "same" or _is_another(one))
        if not changed or (opened := self._opened()) is None:
            return Judgement(plain.outputs, changed) if plain.is_good else plain
        found = opened.held_against(opened.run(self._made(opened.source)), opened.explained.measured)
        if found.is_good or plain.is_good:
            return Judgement((found if found.is_good else plain).outputs, changed)
        return min(found, plain, key=lambda one: one.closeness)

    @cached_property
    def _outputs(self) -> list[Outputs]:
        return self._plain.run(self._made(self._plain.source))


def _is_another(result: OutputResult) -> bool:
    """Whether there are other integers in an output, be it excused or not."""
    found = result.metrics
    return not result.dtype.startswith(("float", "bfloat")) and found.max_steps is None and found.overall > 0


class Judge:
    """Holds models in 16 bits against the original."""

    def __init__(self, source: Model, half: ir.DataType, samples: Sequence[Inputs]) -> None:
        self._source, self._half, self._samples = source, half, samples
        self._plain = _Comparison(source, half, samples)

    def tried(self, made: Made) -> Trial:
        return Trial(made, self._plain, lambda: self._opened)

    @cached_property
    def _opened(self) -> _Comparison | None:
        found: Decided | None = decided(self._source, self._samples)
        return None if found is None else _Comparison(found.model, self._half, found.samples)


class _Comparison:
    def __init__(self, source: Model, half: ir.DataType, samples: Sequence[Inputs]) -> None:
        self.source, self._half, self._samples = source, half, samples
        run = prepare("onnxruntime", source)
        self._expected: list[Outputs] = [run(inputs) for inputs in samples]
        self.explained = Explained(source, half, list(zip(samples, self._expected, strict=True)))

    def run(self, made: Model) -> list[Outputs]:
        run = prepare(AS_IT_STANDS, rounding(made, self._half, list(candidates(made.ir, self._half, self._half))))
        return [run(inputs) for inputs in self._samples]

    def held_against(self, found: Sequence[Outputs], errors: Mapping[str, Error]) -> Judgement:
        pairs = zip(self._expected, found, strict=True)
        return Judgement(tuple(one for pair in pairs for one in compare(*pair, errors)))
