"""Loss curves as CSV and as a picture: an SVG needs nothing, a PNG needs matplotlib."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from onward.advice.extras import missing
from onward.errors import OnwardError
from onward.writing import new_file, write_text

Points = Sequence[tuple[int, float]]
"""Numbers of batches, and losses."""
WIDTH, HEIGHT = 800, 480
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 40
TICKS = 5
COLUMNS = 1000
"""Of the picture: where there are more batches, those of a column are drawn as their lowest and highest loss."""
INK, GRID = "#59616b", "#dfe2e5"
LINES = {"batch": ("#acc8e6", 1.0), "running mean": ("#1f61a5", 2.0), "validation": ("#d6601e", 3.0)}
"""Colour and width of each line."""


def write_csv(
    path: Path, epochs: Sequence[int], losses: Sequence[float], evaluations: Sequence[Mapping[str, float]]
) -> None:
    """One line a batch."""
    after = {int(found["batch"]): found for found in evaluations}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["batch", "epoch", "loss", "val_loss", "val_accuracy"])
    for number, (epoch, loss) in enumerate(zip(epochs, losses, strict=True), 1):
        found = after.get(number, {})
        table.writerow([number, epoch, repr(loss), found.get("loss", ""), found.get("accuracy", "")])
    write_text(path, text.getvalue())


def write_plot(path: Path, losses: Sequence[float], evaluations: Points) -> None:
    """Losses of batches, their running mean, and evaluations, over the number of batches."""
    curves = {
        "batch": list(enumerate(losses, 1)),
        "running mean": list(enumerate(smoothed(losses), 1)),
        "validation": list(evaluations),
    }
    lines = {name: [point for point in curve if math.isfinite(point[1])] for name, curve in curves.items()}
    if path.suffix.lower() == ".svg":
        write_text(path, svg(lines))
    elif path.suffix.lower() == ".png":
        _write_png(path, lines)
    else:
        raise OnwardError(f"{path}: a curve is drawn as .svg or .png; choose one of these names")


def svg(lines: Mapping[str, Points]) -> str:
    """A picture of its own, with its scales and a legend."""
    values = [loss for points in lines.values() for _, loss in points]
    low, high = min(values, default=0.0), max(values, default=1.0)
    high = high if high > low else low + 1.0
    last = max([2, *(batch for points in lines.values() for batch, _ in points)])

    def x(batch: float) -> float:
        return round(LEFT + (batch - 1) / (last - 1) * (WIDTH - LEFT - RIGHT), 1)

    def y(loss: float) -> float:
        return round(HEIGHT - BOTTOM - (loss - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    parts = []
    for tick in range(TICKS + 1):
        loss, batch = low + (high - low) * tick / TICKS, 1 + (last - 1) * tick / TICKS
        parts.append(f'<path stroke="{GRID}" d="M{LEFT} {y(loss)}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(loss) + 4}" text-anchor="end">{loss:.3g}</text>')
        parts.append(f'<text x="{x(batch)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{batch:.0f}</text>')
    for number, (name, points) in enumerate(lines.items()):
        colour, width = LINES[name]
        parts.append(f'<text x="{LEFT + 120 * number}" y="{TOP - 16}" fill="{colour}">{name}</text>')
        if points:
            path = "L".join(f"{x(batch)} {y(loss)}" for batch, loss in thinned(points))
            parts.append(f'<path stroke="{colour}" stroke-width="{width}" d="M{path}h0"/>')
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>Loss by batch</title>
<style>path {{ fill: none; stroke-linecap: round; stroke-linejoin: round; }}</style>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
<g fill="{INK}" font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</g>
</svg>
"""


def thinned(points: Points) -> Points:
    """As many points as a picture can show: of each column the lowest and the highest."""
    size = math.ceil(len(points) / COLUMNS)
    if size < 3:
        return points
    columns = [points[i : i + size] for i in range(0, len(points), size)]
    by_loss = [sorted(column, key=lambda point: point[1]) for column in columns]
    return [point for column in by_loss for point in sorted((column[0], column[-1]))]


def smoothed(losses: Sequence[float]) -> list[float]:
    """A running mean over about a fiftieth of the curve, without a bias to its start."""
    keep = 1 - 1 / max(len(losses) / 50, 1)
    total = weight = 0.0
    found = []
    for loss in losses:
        total, weight = total * keep + loss, weight * keep + 1
        found.append(total / weight)
    return found


def _write_png(path: Path, lines: Mapping[str, Points]) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing("matplotlib", f"{path}: draw .svg instead, or install what draws PNG") from error
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100)
    axes = figure.add_subplot(xlabel="batch", ylabel="loss")
    for name, points in lines.items():
        colour, width = LINES[name]
        axes.plot([batch for batch, _ in points], [loss for _, loss in points], color=colour, lw=width, label=name)
    axes.legend()
    with new_file(path) as file:
        figure.savefig(file, format="png")
