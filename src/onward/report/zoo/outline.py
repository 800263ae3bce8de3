"""The small picture of a graph on the page of a model."""

from __future__ import annotations

from onward.report.html import escape
from onward.report.layered import layered
from onward.zoo.results import Outline

STEP_X, STEP_Y, WIDTH, HEIGHT = 150, 46, 138, 26
MOST = 400
"""Boxes that are drawn."""
LINE, TEXT = "#8a93a0", 'fill="#1b1f24" font-family="sans-serif" font-size="11.5" text-anchor="middle"'
"""Where there is no style sheet, as in a notebook; that of a page says better."""


def picture(outline: Outline, label: str) -> str:
    """An SVG in the colours of the page; '' where there is nothing to draw."""
    boxes = [words for layer in outline.layers for words in layer][:MOST]
    if not boxes:
        return ""
    edges = [(a, b) for a, b in outline.edges if 0 <= a < b < len(boxes)]
    readers: list[list[str]] = [[] for _ in boxes]
    for source, target in edges:
        readers[target].append(str(source))
    layout = layered([{"inputs": inputs, "outputs": [str(box)]} for box, inputs in enumerate(readers)])
    across = [*layout.x, *(bend for _, _, bends in layout.edges for bend in bends)]
    left = min(across) * STEP_X - STEP_X / 2
    width = (max(across) - min(across) + 1) * STEP_X
    height = (max(layout.y) + 1) * STEP_Y
    places = [(x * STEP_X - left, y * STEP_Y + STEP_Y / 2) for x, y in zip(layout.x, layout.y, strict=True)]
    lines = []
    for source, target, bends in layout.edges:
        x, y = places[source]
        path = [f"M{x:.0f} {y + HEIGHT / 2:.0f}"]
        y += HEIGHT / 2
        for place, bend in enumerate(bends, 1):
            row = places[source][1] + place * STEP_Y
            path.append(_curve(x, y, x := bend * STEP_X - left, row - HEIGHT / 2))
            path.append(f"V{row + HEIGHT / 2:.0f}")
            y = row + HEIGHT / 2
        path.append(_curve(x, y, places[target][0], places[target][1] - HEIGHT / 2))
        lines.append(f'<path d="{"".join(path)}" fill="none" stroke="{LINE}"/>')
    nodes = [
        f'<g><title>{escape(words, 200)}</title><rect x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{WIDTH}" '
        f'height="{HEIGHT}" rx="7" fill="#eef1f5" stroke="{LINE}"/><text x="{x:.0f}" y="{y + 4:.0f}" {TEXT}>'
        f"{escape(words, 18)}</text></g>"
        for words, (x, y) in zip(boxes, places, strict=True)
    ]
    return (
        f'<svg class="outline" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(label)}">{"".join(lines)}{"".join(nodes)}</svg>'
    )


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    half = (to_y - y) / 2
    return f"C{x:.0f} {y + half:.0f} {to_x:.0f} {to_y - half:.0f} {to_x:.0f} {to_y:.0f}"
