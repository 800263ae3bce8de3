"""Which of two sides that differ is alone: the reference evaluator of the onnx package is asked as well.

It is slow, and close to the text of the standard. So it is asked only where two sides differ, about models that are
not too large, and not for long. Where it agrees with one side and not with the other, the other is alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from onward.errors import OnwardError
from onward.gate.budget import within
from onward.model import Model
from onward.runners import RUNNERS
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.unsaturated import saturates_at
from onward.verification.doubts import random_ops
from onward.verification.locate import bisect as search
from onward.verification.pairs import by_names_of
from onward.verification.results import Arbitration, Culprit
from onward.verification.sides import Side

RUNTIME, REFERENCE = "onnxruntime", "reference"
SECONDS = 20.0
"""Within which the reference has to answer."""
QUICK = 2.0
"""Seconds of its answer up to which the node at which ONNX Runtime parts from it is looked for, which takes more."""
LARGEST = 2**28
"""Bytes of the weights of models that it is asked about."""

Finding = Literal["source", "other", "all", "none", "now one, now the other"]
"""Who is alone."""
UNDECIDED: dict[Finding, str] = {
    "all": "the reference agrees with neither",
    "none": "the reference lies between the two, and agrees with both",
    "now one, now the other": "the reference agrees with neither on all of the data",
}
Agrees = Callable[[Outputs, Outputs], bool]
Prepare = Callable[[str, Model], Run]


@dataclass(frozen=True)
class Case:
    """Inputs on which two sides differ, and what they make of them."""

    inputs: Inputs
    source: Outputs
    other: Outputs


def arbitrated(
    source: Side, other: Side, cases: Sequence[Case], agrees: Agrees, prepare: Prepare
) -> Arbitration | None:
    """Which of the two is alone in all cases; None where the reference has no say."""
    model = source.model or other.model
    if model is None or not cases or not _can_be_asked(model, source, other):
        return None
    began = time.perf_counter()
    try:
        with within(SECONDS, "the reference", watched=False):
            run = prepare(REFERENCE, model)
            found: set[Finding] = {_alone(case, run(case.inputs), agrees) for case in cases}
    except OnwardError as error:
        return Arbitration("", f"the reference could not be asked: {error}")
    seconds = time.perf_counter() - began
    alone: Finding = found.pop() if len(found) == 1 else "now one, now the other"
    if alone not in ("source", "other"):
        return Arbitration("", UNDECIDED[alone])
    side, agreeing = (source, other) if alone == "source" else (other, source)
    words = f"{called(side)} is alone: {called(agreeing)} and the reference agree"
    if not is_runtime(side):
        return Arbitration(alone, words)
    where = _where(model, side, cases[0].inputs, prepare) if seconds < QUICK else None
    if saturates_at(model, "" if where is None else where.op):
        words += "; ONNX Runtime saturates here: this processor adds its products of uint8 and int8 in 16 bits"
    return Arbitration(alone, words, where, blames_runtime=True)


def called(side: Side) -> str:
    """A side as people call it: ONNX Runtime, PyTorch, the result."""
    runner = RUNNERS.get(side.runner.partition(":")[0]) if side.runner else None
    return side.name if runner is None else runner.about.partition(",")[0]


def is_runtime(side: Side) -> bool:
    return side.runner.partition(":")[0] == RUNTIME


def _can_be_asked(model: Model, source: Side, other: Side) -> bool:
    """Of one model on two sides, which draws no random numbers."""
    if REFERENCE in (source.runner, other.runner) or random_ops(model):
        return False
    if source.model is not None and other.model is not None and source.model is not other.model:
        return False
    weights = (value.const_value for value in model.ir.graph.initializers.values())
    return sum(tensor.nbytes for tensor in weights if tensor is not None) <= LARGEST


def _alone(case: Case, reference: Outputs, agrees: Agrees) -> Finding:
    named = by_names_of(list(case.source), reference)
    source, other = agrees(case.source, named), agrees(named, case.other)
    if source == other:
        return "none" if source else "all"
    return "other" if source else "source"


def _where(model: Model, side: Side, inputs: Inputs, prepare: Prepare) -> Culprit | None:
    """The node at which ONNX Runtime parts from the reference, if it can be told."""
    ends = search.Subject(model, REFERENCE, prepare), search.Subject(model, side.runner, prepare)
    try:
        with within(SECONDS, "the search", watched=False):
            return search.bisect(*ends, inputs, noise={}, certain=True).culprit
    except OnwardError:
        return None
