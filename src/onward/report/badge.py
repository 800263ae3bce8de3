"""A badge: two words beside each other in a small picture, for a README."""

from __future__ import annotations

from onward.report.html import escape

LETTER = 6.6
"""Width of a letter, on average."""
HEIGHT, PADDING = 20, 10
COLOURS = ((0.99, "#17713f"), (0.9, "#4b7a1c"), (0.7, "#8a6100"), (0.0, "#a33a2a"))
"""For shares from each of these on."""


def badge(title: str, value: str, portion: float) -> str:
    """An SVG of its own, in the colour of the share."""
    left, right = (round(len(text) * LETTER + PADDING) for text in (title, value))
    colour = next(colour for least, colour in COLOURS if portion >= least)
    words = escape(f"{title}: {value}")
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" role="img" \
aria-label="{words}"><title>{words}</title>
<clipPath id="c"><rect width="{left + right}" height="{HEIGHT}" rx="4"/></clipPath>
<g clip-path="url(#c)"><rect width="{left}" height="{HEIGHT}" fill="#3b4048"/>
<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{colour}"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{left / 2}" y="14">{escape(title)}</text><text x="{left + right / 2}" y="14">{escape(value)}</text></g></svg>
"""
