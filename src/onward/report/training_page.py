"""A verification of training as one web page: the verdict, the curves, how far they are apart, every tensor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onward.report.html import document, escape, table
from onward.report.verify_page import ICONS, TONES, environment_section, section
from onward.report.verify_words import VERDICTS
from onward.report.wording import counted, duration, listing, number
from onward.training.runtime.chart import COLOURS, Line, chart
from onward.training.verification.results import WORDS, Check, SideResult, TrainingReport, verdict
from onward.verification.results import Status
from onward.writing import write_text

SOURCE = "onnxruntime"


def write_page(report: TrainingReport, path: Path) -> None:
    write_text(path, page(report))


def page(report: TrainingReport) -> str:
    """The page, complete in itself: it opens from a disk, without a network."""
    parts = [_header(report), _curves(report), _apart(report), _sides(report), _tolerance(report)]
    body = f"<main>\n{''.join(parts)}{environment_section(report.environment)}\n"
    body += "<footer>Written by Onward.</footer>\n</main>"
    return document(f"{VERDICTS[report.status]}: {report.model}", body, styles=["parts.css", "verify.css"])


def _header(report: TrainingReport) -> str:
    tone = TONES[report.status]
    icon = f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="{ICONS[report.status]}"/></svg>'
    facts = [("Steps", str(report.steps)), ("Data", escape(report.data)), ("Time", duration(report.seconds))]
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    lines = "".join(
        f'<p class="sentence"><b>{escape(side.name)}</b>: {escape(verdict(side, report))}</p>' for side in report.sides
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    return f"""<header>
<p class="eyebrow">Verification of training</p>
<h1>{escape(report.model)}</h1>
<div class="card verdict {tone}">{icon}
<div><p class="word">{VERDICTS[report.status]}</p>
{lines}
<dl class="facts">{listed}</dl></div></div>
{f'<ul class="notes" aria-label="Notes">{notes}</ul>' if notes else ""}
</header>
"""


def _points(values: Sequence[float]) -> list[tuple[float, float]]:
    return list(enumerate(values, 1))


def _coloured(report: TrainingReport) -> list[tuple[SideResult, str]]:
    return [(side, COLOURS[1 + i % (len(COLOURS) - 1)]) for i, side in enumerate(report.sides)]


def _curves(report: TrainingReport) -> str:
    lines = {SOURCE: Line(_points(report.losses), "pale", 6.0)}
    lines |= {
        side.name: Line(_points(side.losses), colour, 1.6, dashed=bool(i))
        for i, (side, colour) in enumerate(_coloured(report))
    }
    about = "The loss of each step, from one start and on the same batches. Curves that agree cover each other."
    return section("curves", "Losses", about, _figure(chart(lines, "step", "loss", title="Losses by step")))


def _apart(report: TrainingReport) -> str:
    lines = {}
    for side, colour in _coloured(report):
        gaps = [abs(a - b) for a, b in zip(side.losses, report.losses, strict=False)]
        lines[f"{side.name} to {SOURCE}"] = Line(_points(gaps), colour)
    widest = max((side.allowed for side in report.sides), key=sum, default=())
    lines["allowed"] = Line(_points(widest), "ink", 1.5, dashed=True)
    lines["noise of training"] = Line(_points(report.noise), "pale", 2.0)
    about = (
        "How far each loss is from that on ONNX Runtime, beside how far ONNX Runtime is from itself where training "
        "starts one bit off. Steps that are exactly equal are left out."
    )
    return section("apart", "Differences", about, _figure(chart(lines, "step", "difference of losses", log=True)))


def _figure(svg: str) -> str:
    return f'<figure class="card wide">{svg}</figure>'


def _sides(report: TrainingReport) -> str:
    about = (
        "In the first step every tensor is compared, both sides having the same weights and state; after it, of the "
        "states after each step, the tensor that comes closest to what is allowed."
    )
    return section("tensors", "Tensors", about, "".join(_side(side) for side in report.sides))


def _side(side: SideResult) -> str:
    badge = f'<span class="badge {TONES[side.status]}">{VERDICTS[side.status]}</span>'
    done = f"{counted(len(side.losses), 'step')} in {duration(side.seconds)}"
    parts = [f'<div class="side"><h3>{escape(side.name)} {badge} <span class="muted small">{escape(done)}</span></h3>']
    if side.difference is not None:
        words = f"step {side.difference.step}: {WORDS[side.difference.part]}, {side.difference.tensor}"
        more = f"<p>{escape(side.difference.reason)}</p>"
        parts.append(f'<div class="card culprit"><p><b>{escape(words)}</b></p>{more}</div>')
    if side.checks:
        first = side.checks[0].step
        shown = [check for check in side.checks if check.step == first]
        parts.append(_checks(shown, f"step {first} on {side.name}"))
        rest = [check for check in side.checks if check.step != first]
        if rest:
            later = _checks(rest, f"later steps on {side.name}")
            parts.append(f"<details><summary>{counted(len(rest), 'check')} of later steps</summary>{later}</details>")
    return "\n".join(parts) + "</div>\n"


def _checks(checks: Sequence[Check], caption: str) -> str:
    words: dict[Status, str] = {**VERDICTS, "failed": "Drowned in noise"}
    rows = [
        [
            escape(check.tensor),
            escape(check.part),
            str(check.step),
            f'<span class="badge {TONES[check.status]}">{words[check.status]}</span>',
            f'<span class="{TONES[check.status]}">{number(check.error)}</span>',
            number(check.allowed),
        ]
        for check in checks
    ]
    titles = ["tensor", "part", "step", "verdict", "error", "allowed"]
    return table(titles, rows, numbers=(2, 4, 5), caption=caption, stacked=True)


def _tolerance(report: TrainingReport) -> str:
    how = listing(sorted({side.noise for side in report.sides if side.noise}))
    body = (
        "<p>The same training is started several times with each number of its weights one bit off, and in every other "
        "start every result inside and the optimizer's own numbers are as well. How far losses, states and gradients "
        "are from one another then, times a factor, is what another framework may be off; rounding alone is always "
        "allowed. Where that noise becomes as large as the loss itself, nothing is judged.</p>"
        + (f"<p>Noise: {escape(how)}.</p>" if how else "")
    )
    return section("tolerance", "How it was judged", "", body)
