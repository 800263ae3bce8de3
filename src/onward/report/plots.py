"""Plots as SVG that stretches to whatever width there is; their labels are HTML, and keep their size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onward.report.html import escape
from onward.verification.results import NodeError

SIZE = 1000
"""Of a plot in its own units, in both directions."""
MOST_DECADES = 12


@dataclass(frozen=True)
class LogScale:
    """Powers of ten from bottom to top, with a band of their own for zero below and for infinity above."""

    low: int
    high: int
    infinite: bool = False

    @classmethod
    def of(cls, values: Iterable[float]) -> LogScale:
        """A scale on which all values can be told apart, down to twelve powers of ten below the largest."""
        found = list(values)
        powers = [math.log10(value) for value in found if 0 < value < math.inf] or [-7.0, -6.0]
        high = math.ceil(max(powers) + 1e-9)
        low = max(math.floor(min(powers)), high - MOST_DECADES)
        return cls(low, high, any(not math.isfinite(value) for value in found))

    @property
    def bands(self) -> int:
        return self.high - self.low + 1 + self.infinite

    def y(self, value: float) -> float:
        """Downwards, from 0 to SIZE; NaN counts as infinite."""
        if math.isnan(value) or value == math.inf:
            up = self.bands - 0.5
        elif value <= 0:
            up = 0.5
        else:
            up = 1 + min(max(math.log10(value), self.low), self.high) - self.low
        return round(SIZE * (1 - up / self.bands), 1)

    def ticks(self) -> list[tuple[str, float]]:
        step = max(1, math.ceil((self.high - self.low) / 7))
        found = [(power(p), self.y(10.0**p)) for p in range(self.low, self.high + 1, step)]
        return [("0", self.y(0)), *found, *([("∞", self.y(math.inf))] if self.infinite else [])]


def profile_plot(profile: Sequence[NodeError], label: str, culprit: int | None) -> str:
    """Errors along the graph: what has piled up, what each node adds, and what is allowed. Marked: the culprit."""
    owns = [(i, error.own, error.allowed) for i, error in enumerate(profile) if error.own is not None]
    scale = LogScale.of(
        [error.path for error in profile] + [own for _, own, _ in owns] + [error.allowed for error in profile]
    )

    def x(position: int) -> float:
        return round(SIZE * (position + 0.5) / len(profile), 2)

    def line(values: Iterable[float]) -> str:
        return "M" + "L".join(f"{x(i)} {scale.y(value)}" for i, value in enumerate(values))

    def dots(points: Iterable[tuple[int, float]]) -> str:
        return "".join(f"M{x(i)} {scale.y(value)}h0" for i, value in points)

    marks = [_path("allowed", line(e.allowed for e in profile)), _path("path", line(e.path for e in profile))]
    marks.append(_path("own", dots((i, own) for i, own, allowed in owns if not own > allowed)))
    marks.append(_path("own beyond", dots((i, own) for i, own, allowed in owns if own > allowed)))
    if culprit is not None:
        marks.insert(0, _path("culprit", f"M{x(culprit)} 0V{SIZE}"))
    axis = f'<div class="x-axis"><span>first value</span><span>along the graph, {len(profile):,} values</span>'
    return _plot(marks, scale.ticks(), label) + axis + "<span>last value</span></div>"


def histogram_plot(edges: Sequence[float], counts: Sequence[int], label: str) -> str:
    """How many elements are how far off. Heights are logarithmic, so that a single one that is off shows."""
    tallest = math.log10(max(counts) + 1) or 1.0
    step, bars = SIZE / len(counts), []
    for position, count in enumerate(counts):
        height = SIZE * math.log10(count + 1) / tallest
        kind = "bar" if position else "bar equal"
        where = f'x="{position * step + step * 0.08:.1f}" y="{SIZE - height:.1f}" width="{step * 0.84:.1f}"'
        hint = f"{_bin(edges, position, len(counts))}: {count:,}"
        bars.append(f'<rect class="{kind}" {where} height="{height:.1f}"><title>{escape(hint)}</title></rect>')
    return _plot(bars, [], label) + f'<div class="x-axis">{_histogram_axis(edges, len(counts))}</div>'


def _histogram_axis(edges: Sequence[float], bins: int) -> str:
    """`equal` below the first bar, then a power of ten below every third boundary."""
    at = [(100 / bins * 0.5, "equal")]
    at += [(100 * i / bins, power(edges[i])) for i in range(bins, 2, -3) if 100 * i / bins > 24]
    return "".join(f'<span style="left:{left:.1f}%">{text}</span>' for left, text in at)


def _bin(edges: Sequence[float], position: int, bins: int) -> str:
    if position == 0:
        return "exactly equal"
    if position == 1:
        return f"off by less than {power(edges[2])} of the scale"
    if position == bins - 1:
        return f"off by {power(edges[position])} of the scale or more"
    return f"off by {power(edges[position])} to {power(edges[position + 1])} of the scale"


def power(exponent: float) -> str:
    """A power of ten as it is read: `0.01`, `10⁻⁷`."""
    if -3 < exponent < 3:
        return f"{10.0**exponent:g}"
    return "10" + f"{exponent:g}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _path(kind: str, data: str) -> str:
    return f'<path class="{kind}" d="{data}"/>' if len(data) > 1 else ""


def _plot(marks: Iterable[str], ticks: Sequence[tuple[str, float]], label: str) -> str:
    grid = "".join(f'<path class="grid" d="M0 {y}H{SIZE}"/>' for _, y in ticks)
    names = "".join(f'<span style="top:{y / SIZE:.2%}">{name}</span>' for name, y in ticks)
    svg = f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
    axis = f'<div class="y-axis" aria-hidden="true">{names}</div>' if names else ""
    return f'<div class="plot">{axis}{svg}{grid}{"".join(marks)}</svg></div>'
