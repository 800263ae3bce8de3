"""Curves as SVG that needs nothing else: axes with titles, a legend, and colours for light and dark."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT = 800, 360
LEFT, RIGHT, TOP, BOTTOM = 84, 20, 44, 56
TICKS = 5
COLUMNS = 1000
"""Of the picture: where there are more points, those of a column are drawn as their lowest and highest."""
MOST_DECADES = 12
KEY, LETTER, ROW = 26, 7.2, 22
"""What a key of the legend takes, about what a letter does, and how high a row of it is."""
STYLE = """
.chart { --ink: #59616b; --grid: #dfe2e5; --ground: #fff; --blue: #1f61a5; --pale: #acc8e6; --orange: #c4500f;
  --green: #17713f; --purple: #7a3fa8; --red: #b3261e; font: 13px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .chart { --ink: #a2abb6; --grid: #2d333b; --ground: #1c2026; --blue: #8ab0ff;
  --pale: #54769f; --orange: #f0a070; --green: #6fd296; --purple: #c9a0ee; --red: #ff9a90; } }
.chart text { fill: var(--ink); } .chart .ground { fill: var(--ground); }
.chart path { fill: none; stroke-linecap: round; stroke-linejoin: round; } .chart .grid { stroke: var(--grid); }
"""
COLOURS = ("blue", "orange", "green", "purple", "red")


@dataclass(frozen=True)
class Line:
    """A curve, and how it is drawn."""

    points: Points
    colour: str = "blue"
    width: float = 2.0
    dashed: bool = False


def chart(
    lines: Mapping[str, Line], x: str, y: str, *, log: bool = False, title: str = "", until: float | None = None
) -> str:
    """A picture of curves by their names; `x` and `y` are the titles of the axes. With `log`, powers of ten go up.

    `until` is the end of the axis of `x`, which begins at 1 then; else it goes from the first point to the last.
    """
    finite = {
        name: [(a, b) for a, b in line.points if math.isfinite(b) and (b > 0 or not log)]
        for name, line in lines.items()
    }
    scale = _scale([b for points in finite.values() for _, b in points], log)
    steps = [a for points in finite.values() for a, _ in points]
    first, last = (min(steps, default=1), max(steps, default=2)) if until is None else (1, until)
    last = last if last > first else first + 1

    keys = _keys(lines)
    top = max(y for _, y in keys) + TOP - ROW

    def across(value: float) -> float:
        return round(LEFT + (value - first) / (last - first) * (WIDTH - LEFT - RIGHT), 1)

    def up(value: float) -> float:
        return round(HEIGHT - BOTTOM - scale.share(value) * (HEIGHT - top - BOTTOM), 1)

    parts = [f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>']
    for value in scale.ticks:
        parts.append(f'<path class="grid" d="M{LEFT} {up(value)}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up(value) + 4}" text-anchor="end">{scale.word(value)}</text>')
    for value in _round_numbers(first, last, 2 * TICKS):
        parts.append(
            f'<text x="{across(value)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{_number(value)}</text>'
        )
    middle = (top + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{_text(x)}</text>')
    parts.append(f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle">{_text(y)}</text>')
    for (name, line), (place, row) in zip(lines.items(), keys, strict=True):
        style = f'style="stroke: var(--{line.colour}); stroke-width: {line.width:g}"'
        style += ' stroke-dasharray="6 5"' if line.dashed else ""
        parts.append(f'<path {style} d="M{place:.0f} {row}h18"/>')
        parts.append(f'<text x="{place + KEY:.0f}" y="{row + 4}">{_text(name)}</text>')
        if finite[name]:
            drawn = "L".join(f"{across(a)} {up(b)}" for a, b in thinned(finite[name]))
            parts.append(f'<path {style} d="M{drawn}h0"/>')
    heading = f"<title>{_text(title or f'{y} by {x}')}</title>"
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        f"{heading}\n<style>{STYLE}</style>\n{''.join(parts)}\n</svg>\n"
    )


def _keys(names: Iterable[str]) -> list[tuple[float, int]]:
    """Where each key of the legend begins, and how far down: in as many rows as it takes."""
    place, row = float(LEFT), ROW
    found = []
    for name in names:
        size = KEY + LETTER * len(name)
        if found and place + size > WIDTH - RIGHT:
            place, row = float(LEFT), row + ROW
        found.append((place, row))
        place += size + 18
    return found or [(place, row)]


def stacked(charts: Sequence[str]) -> str:
    """Several charts as one picture, one below the other."""
    if len(charts) == 1:
        return charts[0]
    placed = [
        one.replace("<svg ", f'<svg y="{HEIGHT * number}" width="{WIDTH}" height="{HEIGHT}" ', 1)
        for number, one in enumerate(charts)
    ]
    size = f"0 0 {WIDTH} {HEIGHT * len(charts)}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img">\n{"".join(placed)}</svg>\n'


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    log: bool

    def share(self, value: float) -> float:
        """How far up a value is, from 0 to 1."""
        if self.log:
            value = min(max(math.log10(value), self.low), self.high)
        return (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[float]:
        if not self.log:
            return _round_numbers(self.low, self.high)
        step = max(1, math.ceil((self.high - self.low) / TICKS))
        return [10.0**power for power in range(int(self.low), int(self.high) + 1, step)]

    def word(self, value: float) -> str:
        return f"1e{round(math.log10(value))}" if self.log else _number(value)


def _scale(values: Sequence[float], log: bool) -> _Scale:
    if log:
        powers = [math.log10(value) for value in values] or [-7.0, -6.0]
        top = math.ceil(max(powers) + 1e-9)
        return _Scale(max(math.floor(min(powers)), top - MOST_DECADES), top, log)
    low, high = min(values, default=0.0), max(values, default=1.0)
    if not high > low:
        low, high = low - (abs(low) or 1) / 10, high + (abs(high) or 1) / 10
    return _Scale(low, high, log)


def _round_numbers(low: float, high: float, most: int = TICKS) -> list[float]:
    """About so many numbers that are easy to read."""
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= most + 1)
    return [number * step for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _number(value: float) -> str:
    return f"{value:.6g}" if abs(value) < 1e5 else f"{value:.3g}"


def thinned(points: Points) -> Points:
    """As many points as a picture can show: of each column the lowest and the highest."""
    size = math.ceil(len(points) / COLUMNS)
    if size < 3:
        return points
    columns = [points[i : i + size] for i in range(0, len(points), size)]
    by_height = [sorted(column, key=lambda point: point[1]) for column in columns]
    return [point for column in by_height for point in sorted((column[0], column[-1]))]


def _text(text: str) -> str:
    return html.escape("".join(ch if ch.isprintable() else "�" for ch in text))
