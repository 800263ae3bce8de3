"""Curves of a run as CSV and as a picture: an SVG or a page needs nothing, a PNG needs matplotlib."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from onward.advice.extras import missing
from onward.errors import OnwardError
from onward.training.runtime.chart import HEIGHT, WIDTH, Line, chart, stacked
from onward.writing import new_file, write_text

Evaluations = Sequence[Mapping[str, float]]
"""Each with the number of batches before it as `batch`."""
Panel = tuple[str, dict[str, Line]]
"""The title of an axis, and its curves."""
HEX = {"pale": "#acc8e6", "blue": "#1f61a5", "orange": "#c4500f", "green": "#17713f"}
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Training</title>
<style>body { margin: 0 auto; max-width: 64rem; padding: 1rem; } svg { width: 100%; height: auto; }</style></head>
<body>
PICTURE</body>
</html>
"""


def write_csv(
    path: Path, epochs: Sequence[int], losses: Sequence[float], evaluations: Evaluations, rates: Sequence[float] = ()
) -> None:
    """One line a batch."""
    after = {int(found["batch"]): found for found in evaluations}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["batch", "epoch", "loss", "lr", "val_loss", "val_accuracy"])
    for number, (epoch, loss) in enumerate(zip(epochs, losses, strict=True), 1):
        found = after.get(number, {})
        rate = repr(rates[number - 1]) if number <= len(rates) and math.isfinite(rates[number - 1]) else ""
        table.writerow([number, epoch, repr(loss), rate, found.get("loss", ""), found.get("accuracy", "")])
    write_text(path, text.getvalue())


def write_plot(path: Path, losses: Sequence[float], evaluations: Evaluations, rates: Sequence[float] = ()) -> None:
    """Losses of batches, their running mean, evaluations, accuracy and learning rate, over the number of batches."""
    kind = path.suffix.lower()
    if kind == ".svg":
        write_text(path, drawn(losses, evaluations, rates))
    elif kind == ".html":
        write_text(path, PAGE.replace("PICTURE", drawn(losses, evaluations, rates)))
    elif kind == ".png":
        _write_png(path, list(panels(losses, evaluations, rates)))
    else:
        raise OnwardError(f"{path}: a curve is drawn as .svg, .html or .png; choose one of these names")


def drawn(losses: Sequence[float], evaluations: Evaluations, rates: Sequence[float] = ()) -> str:
    """The curves as SVG."""
    shown = panels(losses, evaluations, rates)
    return stacked([chart(lines, "batch", title, until=len(losses)) for title, lines in shown])


def panels(losses: Sequence[float], evaluations: Evaluations, rates: Sequence[float]) -> Iterator[Panel]:
    """What is drawn below one another."""
    lines = {
        "batch": Line(list(enumerate(losses, 1)), "pale", 1.0),
        "running mean": Line(list(enumerate(smoothed(losses), 1)), "blue", 2.0),
    }
    if evaluations:
        lines["validation"] = Line([(found["batch"], found["loss"]) for found in evaluations], "orange", 3.0)
    yield "loss", lines
    if right := [(found["batch"], found["accuracy"]) for found in evaluations if "accuracy" in found]:
        yield "accuracy", {"validation": Line(right, "orange", 3.0)}
    if len({rate for rate in rates if math.isfinite(rate)}) > 1:
        yield "learning rate", {"learning rate": Line(list(enumerate(rates, 1)), "green", 2.0)}


def smoothed(losses: Sequence[float]) -> list[float]:
    """A running mean over about a fiftieth of the curve, without a bias to its start."""
    keep = 1 - 1 / max(len(losses) / 50, 1)
    total = weight = 0.0
    found = []
    for loss in losses:
        total, weight = total * keep + loss, weight * keep + 1
        found.append(total / weight)
    return found


def _write_png(path: Path, shown: Sequence[Panel]) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing("matplotlib", f"{path}: draw .svg instead, or install what draws PNG") from error
    figure = Figure(figsize=(WIDTH / 100, HEIGHT * len(shown) / 100), dpi=100, layout="constrained")
    for number, (title, lines) in enumerate(shown, 1):
        axes = figure.add_subplot(len(shown), 1, number, xlabel="batch", ylabel=title)
        for name, line in lines.items():
            points = [(a, b) for a, b in line.points if math.isfinite(b)]
            axes.plot([a for a, _ in points], [b for _, b in points], color=HEX[line.colour], lw=line.width, label=name)
        axes.legend()
    with new_file(path) as file:
        figure.savefig(file, format="png")
