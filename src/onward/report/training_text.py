"""A verification of training in the terminal: the verdict first, then each framework."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from onward.report.verify_text import STYLES
from onward.report.verify_words import VERDICTS
from onward.report.wording import counted, duration, printable
from onward.training.verification.results import TrainingReport, verdict


def show(report: TrainingReport, console: Console) -> None:
    for side in report.sides:
        style = STYLES[side.status]
        words = Text.assemble((printable(side.name), "bold"), "  ", (VERDICTS[side.status].lower(), style))
        words.append(f": {printable(verdict(side, report), 1000)}")
        console.print(words, soft_wrap=True)
    console.print(Text(printable(facts(report), 1000), style="dim"), soft_wrap=True)
    for note in report.notes:
        console.print(Text(f"Note: {printable(note, 1000)}"), soft_wrap=True)


def facts(report: TrainingReport) -> str:
    """How it was compared, in a line."""
    parts = [counted(report.steps, "step"), f"data {report.data}"]
    if report.losses:
        parts.append(f"loss on onnxruntime {report.losses[0]:.4g} to {report.losses[-1]:.4g}")
        parts.append(f"its own noise up to {report.noise[-1]:.1e}")
    return " · ".join([*parts, duration(report.seconds)])
