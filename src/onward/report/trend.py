"""How counts went from run to run, as small line charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onward.report.html import escape

WIDTH, HEIGHT = 340, 170
LEFT, RIGHT, TOP, BOTTOM = 52, 92, 12, 26
"""Room around the lines: for shares, names of runners, dates."""
LEAST_SPAN = 0.04
"""Of the vertical axis, so that a change of a single test is not a cliff."""
LINE = 13.0
"""Height of a name beside the chart."""


def trends(history: Sequence[Mapping[str, Any]], runners: Sequence[str], titles: Mapping[str, str]) -> str:
    """A chart for each kind of test that was run more than once; nothing where none was."""
    charts = []
    for what, title in titles.items():
        runs = [entry for entry in history if what in entry["totals"]]
        if len(runs) > 1:
            charts.append(f"<figure><figcaption>{escape(title)}</figcaption>{_chart(runs, what, runners)}</figure>")
    if not charts:
        return ""
    return f"""<section id="trend" aria-labelledby="trend-title">
<h2 id="trend-title">Trend</h2>
<p class="muted">The share of tests that pass, run by run.</p>
<div class="charts">{"".join(charts)}</div>
</section>
"""


def _chart(runs: Sequence[Mapping[str, Any]], what: str, runners: Sequence[str]) -> str:
    lines = {name: [_share(entry["totals"][what], name) for entry in runs] for name in runners}
    values = [value for line in lines.values() for value in line if value is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = max(0.0, min(low, high - LEAST_SPAN))

    def x(position: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * position / (len(runs) - 1), 1)

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low or 1)), 1)

    parts = []
    for value in (low, (low + high) / 2, high):
        parts.append(f'<path class="grid" d="M{LEFT} {y(value)}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4}" class="end">{100 * value:.1f} %</text>')
    ends = {name: y(line[-1]) for name, line in lines.items() if line[-1] is not None}
    places = _apart(ends)
    for number, (name, line) in enumerate(lines.items()):
        points = [(x(i), y(value)) for i, value in enumerate(line) if value is not None]
        if points:
            path = "M" + "L".join(f"{px} {py}" for px, py in points)
            hint = ", ".join(f"{100 * value:.2f} %" for value in line if value is not None)
            parts.append(f'<g class="line{number % 6}"><title>{escape(f"{name}: {hint}")}</title><path d="{path}"/>')
            parts += [f'<circle cx="{px}" cy="{py}" r="2.5"/>' for px, py in points]
            if name in places:
                parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{places[name] + 4:.1f}">{escape(name, 14)}</text>')
            parts.append("</g>")
    for position, anchor in ((0, "start"), (len(runs) - 1, "end")):
        date = escape(runs[position]["made"][:10])
        parts.append(f'<text x="{x(position)}" y="{HEIGHT - 6}" class="{anchor}">{date}</text>')
    label = f"Share of passes in {len(runs)} runs"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


SPARK_WIDTH, SPARK_HEIGHT = 120, 28


def sparkline(values: Sequence[float | None], label: str) -> str:
    """A line without axes, of shares from run to run; '' where there were fewer than two."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    low, high = min(known), max(known)
    middle, span = (low + high) / 2, max(high - low, LEAST_SPAN)

    def place(position: int, value: float) -> str:
        x = 3 + (SPARK_WIDTH - 6) * position / (len(values) - 1)
        return f"{x:.1f} {SPARK_HEIGHT / 2 - (SPARK_HEIGHT - 8) * (value - middle) / span:.1f}"

    points = [place(position, value) for position, value in enumerate(values) if value is not None]
    return (
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<title>{escape(label)}</title><path d="M{"L".join(points)}"/>'
        f'<path class="end" d="M{points[-1]}h0"/></svg>'
    )


def _share(totals: Mapping[str, Any], runner: str) -> float | None:
    counts = totals["runners"].get(runner)
    return counts["pass"] / totals["tests"] if counts and totals["tests"] else None


def _apart(ends: Mapping[str, float]) -> dict[str, float]:
    """Where names go so that none is written over another, in the order of the lines' ends."""
    places: dict[str, float] = {}
    least = float("-inf")
    for name, place in sorted(ends.items(), key=lambda item: item[1]):
        least = places[name] = max(place, least + LINE)
    return places
