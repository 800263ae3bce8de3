"""Whether the result of a conversion is still the same model: what every conversion ends with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onward import runners
from onward.errors import (
    NotVerifiedWarning,
    OnwardError,
    RunFailure,
    RuntimeDiffersWarning,
    UnsupportedError,
    VerificationError,
)
from onward.gate.budget import SECONDS, within
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run, failures, plainly
from onward.runners.undisturbed import undisturbed
from onward.verification.environment import environment
from onward.verification.pairs import by_names_of
from onward.verification.results import Arbitration, OutputResult, Report
from onward.verification.sides import Side
from onward.verification.verify import verify

REFEREES = ("onnxruntime", "reference")
"""What says how an ONNX model behaves: the first that runs it."""


@dataclass(frozen=True)
class Verdict:
    """What a comparison comes to, and why, in a few words."""

    status: Literal["verified", "not verified", "not the same", "different"]
    """`not the same`: by no more than what the user asked for explains, such as smaller numbers."""
    words: str
    warning: str = ""
    """What a user has to know though the result is right."""

    def __str__(self) -> str:
        warning = f"; {self.warning}" if self.warning else ""
        return f"{self.status}{',' if self.status == 'not the same' else ':'} {self.words}{warning}"


def compared(
    original: Model | Side,
    run: Run,
    *,
    on: str | None = None,
    data: Any = None,
    **how: Any,
) -> Report:
    """What the result of a conversion makes of the same inputs as the original: of those given, or made up.

    An ONNX model is run `on` a runner, the first of those that can unless one is named. `how`: as `verify` takes it.
    """
    result = Side("the result", _guarded("the result", run))
    referees = [on] if on else REFEREES
    for number, referee in enumerate(referees, 1):
        try:
            return _verified(original, result, source=referee, inputs=data, **how)
        except OnwardError:
            if number == len(referees):
                raise
    raise AssertionError("unreachable")


def compared_with_source(
    model: Model, run: Run, name: str, *, graph: Model | None = None, data: Any = None, **how: Any
) -> Report:
    """What an ONNX model makes of the same inputs as the model that it was made of: of a framework, or `graph`."""
    source = source_side(graph or model, run, name)
    failure: OnwardError | None = None
    report: Report | None = None
    for referee in REFEREES:
        try:
            result = Side("the ONNX model", runners.prepare(referee, model), model, referee)
        except (UnsupportedError, RunFailure) as error:
            failure = failure or error
            continue
        report = _verified(source, result, inputs=data, **how)
        if not report.failure:
            return report
    if report is None:
        assert failure is not None
        raise failure
    return report


def _verified(original: Model | Side, result: Side, **how: Any) -> Report:
    """What `verify` finds. A result that only the kernels which accelerate a framework disagree with is right."""
    found = verify(original, result, **how)
    plain = original.plainly if isinstance(original, Side) else None
    if found.status != "different" or plain is None:
        return found
    try:
        report = verify(plain, result, **how)
    except OnwardError:  # there are ops that only accelerated kernels compute
        return found
    if report.status != "same":
        return found
    worst = found.worst
    report.notes.append(f"accelerated kernels differ: {f'{worst.name}: {worst.reason}' if worst else found.status}")
    return report


def source_side(model: Model, run: Run, name: str) -> Side:
    """The model of a framework, with the graph that it became, and under the names of that.

    It has no runner: the noise of the graph is never told by what the framework makes of it.
    """
    names = [value.name or "" for value in model.ir.graph.outputs]
    guarded, plain = _guarded(name, run), plainly(run)
    other = None if plain is None else source_side(model, plain, f"{name} without accelerated kernels")
    return Side(name, lambda inputs: by_names_of(names, guarded(inputs)), model, plainly=other)


def verdict(report: Report, excuse: str | None = None, too_far: str = "") -> Verdict:
    """How original and result compare. By `excuse` values may differ, unless `too_far` says that it explains less."""
    if report.unchecked:
        return Verdict("not verified", report.unchecked)
    worst, side = report.worst, report.sides[-1]
    sets = f"{len(side.trials)} set{'s' if len(side.trials) != 1 else ''} of inputs"
    if report.status == "failed" and report.failure:
        return Verdict("different", f"{side.name} does not run: {report.failure}")
    if report.unknown is not None and report.unknown.kind == "drowned" and report.status == "failed":
        return Verdict("not verified", f"{report.unknown.name}: {report.unknown.reason}")
    if report.status == "failed":
        return Verdict(
            "not verified", f"it draws random numbers ({', '.join(report.drawn)}), which are others each time"
        )
    if report.status == "same" and (report.blank or worst is None):
        return Verdict("not verified", report.blank or "there is no output to compare")
    assert worst is not None
    remark = f" ({report.remark})" if report.remark else ""
    if report.status == "same":
        return Verdict(
            "verified",
            f"worst error {worst.metrics.worst:.1e}, allowed {worst.tolerance.worst:.1e}"
            f" ({worst.tolerance.why}), over {sets} against {report.source}{remark}",
        )
    ruling = side.arbitration
    others_agree = all(one.status == "same" for one in report.sides[:-1]) and not any(t.failure for t in side.trials)
    if ruling is not None and ruling.blames_runtime and others_agree:
        return _right_by_the_reference(report, ruling, sets)
    if worst.kind == "values" and excuse is not None and not too_far:
        return Verdict(
            "not the same",
            f"by {excuse}: worst error {worst.metrics.worst:.1e}, overall {worst.metrics.overall:.1e}, over {sets}"
            f" against {report.source}; check what it means for your data",
        )
    who = f" ({ruling.words})" if ruling is not None and ruling.alone else ""
    return Verdict("different", f"{side.name} differs from {report.source}: {too_far or _apart(report, worst)}{who}")


def _apart(report: Report, worst: OutputResult) -> str:
    """How an output differs, and on what; where the source makes NaN of that, too, and the result does not."""
    trial = next(trial for side in report.sides for trial in side.trials if any(one is worst for one in trial.outputs))
    nan = next((one for one in trial.outputs if one.kind == "nan" and one is not worst), None)
    also = "" if nan is None else f", and {nan.name}: {nan.reason}"
    return f"{worst.name}: {worst.reason}{also}, on the inputs '{trial.data}'"


def _right_by_the_reference(report: Report, ruling: Arbitration, sets: str) -> Verdict:
    """ONNX Runtime is alone, so the conversion is not to blame; a file that is to be run there is still not proven."""
    node = ruling.culprit
    where = "" if node is None else f", first at {node.node or 'a node without a name'} ({node.op})"
    warning = f"ONNX Runtime gives other numbers{where}: {ruling.words}"
    if ruling.alone == "source":
        return Verdict("verified", f"against the reference, over {sets}", f"warning: {warning}")
    return Verdict("not verified", f"by the reference the ONNX model computes what {report.source} does, but {warning}")


def attempted(compare: Callable[[], Report], model: str = "", source: str = "") -> Report:
    """What a comparison finds, or why there is none, of the model and the source with these names."""
    try:
        return compare()
    except (UnsupportedError, RunFailure) as error:
        return Report(model, source, unchecked=str(error), environment=environment())


def prove(model: Model, run: Run, excuse: str | None = None, frames: int = 0) -> None:
    """Raise `VerificationError` where a result differs from the ONNX model; warn where that cannot be told.

    For functions that users call: with so many `frames` between, it is to their line that the warning points.
    """

    def compare() -> Report:
        with within(SECONDS, "the check"):
            return compared(model, run, arbitrate=excuse is None)

    with undisturbed():
        found = verdict(attempted(compare), excuse)
    _enforce(found, frames)


def prove_source(model: Model, opened: Callable[[], Run], name: str, data: Any = None) -> None:
    """As `prove`, for an ONNX model and the model of a framework that it was made of, once it is `opened` to be run."""

    def compare() -> Report:
        with within(SECONDS, "the check"):
            with failures(name):
                run = opened()
            return compared_with_source(model, run, name, data=data)

    with undisturbed():
        found = verdict(attempted(compare))
    _enforce(found)


def _enforce(found: Verdict, frames: int = 0) -> None:
    if found.status == "different":
        raise VerificationError(f"{found.words}; check=False hands it over all the same")
    if found.status != "verified":
        warnings.warn(str(found), NotVerifiedWarning, stacklevel=4 + frames)
    elif found.warning:
        warnings.warn(str(found), RuntimeDiffersWarning, stacklevel=4 + frames)


def reordered(run: Run, inputs: Mapping[str, tuple[int, ...]], outputs: Mapping[str, tuple[int, ...]]) -> Run:
    """Run on inputs, and to outputs, as the original has them, a model that has the axes of some in another order."""

    def moved(given: Inputs) -> Outputs:
        fed = {name: np.ascontiguousarray(np.transpose(given[name], order)) for name, order in inputs.items()}
        found = dict(run({**given, **fed}))
        for name, order in outputs.items():
            called = name if name in found or len(found) > 1 else next(iter(found))  # Keras names one after its layer
            found[called] = np.ascontiguousarray(np.transpose(found[called], np.argsort(order)))
        return found

    return moved


def _guarded(name: str, run: Run) -> Run:
    def guarded(inputs: Inputs) -> Outputs:
        with failures(name):
            return run(inputs)

    return guarded
