"""What the terminal and the page both say of a verification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onward.report.wording import counted, listing, number, printable, share
from onward.verification.results import Culprit, Metrics, OutputResult, Report, SideResult, Status

VERDICTS: dict[Status, str] = {"same": "Same", "different": "Different", "failed": "Not verified"}
KINDS = {"nan": "NaN", "infinite": "infinities"}
"""What an output's kind of difference is called, where that is not the word itself."""


def verdict(report: Report) -> str:
    """One sentence after the word: who agrees with whom, and who could not be asked."""
    if not report.sides:
        return f"nothing was compared{f': {printable(report.unchecked, 1000)}' if report.unchecked else ''}."
    named: dict[Status, list[str]] = {"different": [], "same": [], "failed": []}
    for side in report.sides:
        named[side.status].append(printable(side.name))
    source = printable(report.source)
    model = printable(report.model, 1000)
    truth = model if source in ("", model) else f"{model} on {source}"
    parts = []
    if names := named["different"]:
        parts.append(f"{listing(names)} {_verb(names, 'does', 'do')} not agree with {truth}")
    if names := named["same"]:
        parts.append(f"{listing(names)} {_verb(names, 'does', 'do') if parts else _agree(names, truth)}")
    if names := named["failed"]:
        parts.append(f"{listing(names)} could not be compared" + ("" if parts else f" with {truth}"))
    return "; ".join(parts) + "."


def worst(report: Report) -> str:
    """The figure behind the verdict, where there is one."""
    output = report.worst
    if output is None or (output.status != "same" and output.kind not in ("", "values")):
        return ""
    where = f"output {printable(output.name)}"
    return f"worst error {number(output.metrics.worst)}, allowed {number(output.tolerance.worst)} ({where})"


@dataclass(frozen=True)
class Row:
    """An output where it fared worst."""

    output: OutputResult
    data: str
    different: int
    """In how many of the trials."""


def rows(side: SideResult) -> list[Row]:
    """A row for each output, those that differ first, otherwise in the model's order."""
    found: dict[str, Row] = {}
    for trial in side.trials:
        for output in trial.outputs:
            old, differs = found.get(output.name), int(output.status != "same")
            if old is None:
                found[output.name] = Row(output, trial.data, differs)
            elif _badness(output) > _badness(old.output):
                found[output.name] = Row(output, trial.data, old.different + differs)
            else:
                found[output.name] = Row(old.output, old.data, old.different + differs)
    return sorted(found.values(), key=lambda row: not row.different)


def compared(side: SideResult) -> int:
    """How many sets of data the side ran on."""
    return sum(not trial.failure for trial in side.trials)


def problems(side: SideResult) -> Iterator[tuple[str, str]]:
    """What went wrong, with where: a reason once, however many sets of data it shows in."""
    if side.failure:
        yield "", f"could not be prepared: {printable(side.failure, 600)}"
    places: dict[str, list[str]] = {}
    for trial in side.trials:
        if trial.failure:
            places.setdefault(f"could not be run: {printable(trial.failure, 600)}", []).append(trial.data)
    for row in rows(side):
        if row.different:
            reason = printable(row.output.reason or "differs", 600)
            more = f" (and in {counted(row.different - 1, 'more data set')})" if row.different > 1 else ""
            places.setdefault(f"{printable(row.output.name)}: {reason}{more}", []).append(row.data)
    for reason, data in places.items():
        yield listing([printable(label) for label in data]), reason


def culprit_words(culprit: Culprit) -> list[str]:
    """The culprit of a bisection in sentences."""
    node = printable(culprit.node) or "a node without a name"
    lines = [f"The first node that differs is {node} ({printable(culprit.op)})."]
    own, allowed = number(culprit.own), number(culprit.allowed)
    runs = f" Found in {counted(culprit.runs, 'run')}." if culprit.runs else ""
    lines.append(f"Fed the same values on both sides, it is off by {own}; {allowed} is allowed.{runs}")
    if culprit.how:
        lines.append(printable(culprit.how, 600))
    if culprit.reduced:
        lines.append(f"The smallest model that shows it: {printable(culprit.reduced, 1000)}")
    return lines


def arbitration_words(side: SideResult) -> list[str]:
    """What the reference says of two sides that differ: who is alone, and the node if it is ONNX Runtime."""
    found = side.arbitration
    if found is None:
        return []
    lines = [f"{found.words[0].upper()}{printable(found.words[1:], 600)}."]
    if found.culprit is not None:
        node, own, allowed = found.culprit, number(found.culprit.own), number(found.culprit.allowed)
        name = printable(node.node) or "a node without a name"
        lines.append(
            f"ONNX Runtime parts from the reference at {name} ({printable(node.op)}), by {own}; {allowed} is allowed."
        )
    return lines


def information(metrics: Metrics) -> list[tuple[str, str]]:
    """The figures that inform but never decide, those that were measured."""
    found = [
        ("overall error", number(metrics.overall)),
        ("max ÷ scale", number(metrics.max_abs_over_scale)),
        ("max ULP", number(metrics.max_ulp)),
        ("cosine", "" if metrics.cosine is None else f"{metrics.cosine:.7g}"),
        ("SNR", "" if metrics.snr_db is None else f"{number(metrics.snr_db)} dB"),
        ("steps", "" if metrics.max_steps is None else str(metrics.max_steps)),
        ("top 1", "" if metrics.top1 is None else share(metrics.top1)),
        ("top 5", "" if metrics.top5 is None else share(metrics.top5)),
    ]
    return [(name, value) for name, value in found if value]


def measured(output: OutputResult) -> bool:
    """Whether the two arrays have elements that can be compared."""
    return output.kind not in ("shape", "missing", "unexpected", "type")


def verdict_of(output: OutputResult) -> str:
    """One word: `same`, `different`, or in what way other than by its values."""
    if output.status == "same" or output.kind in ("", "values"):
        return output.status
    return KINDS.get(output.kind, output.kind)


def worst_element(output: OutputResult) -> str:
    """`0.123 instead of 0.124 at [0, 17]`."""
    equal = output.status == "same" and not output.metrics.worst
    if equal or not (output.actual or output.expected):
        return ""
    values = f"{printable(output.actual, 40)} instead of {printable(output.expected, 40)}"
    return values + (f" at {list(output.index)}" if output.index else "")


def _badness(output: OutputResult) -> tuple[bool, float]:
    return output.status != "same", output.closeness


def _verb(names: list[str], one: str, several: str) -> str:
    return one if len(names) == 1 else several


def _agree(names: list[str], truth: str) -> str:
    return f"{_verb(names, 'agrees', 'agree')} with {truth}"
