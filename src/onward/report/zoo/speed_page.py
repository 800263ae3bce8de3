"""How fast the results of a zoo are, beside their sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from onward.report.html import document, escape, table
from onward.report.navigation import Navigation
from onward.report.wording import counted, share
from onward.report.zoo.index_page import anchor, footer
from onward.report.zoo.verdicts import is_peer, title
from onward.zoo.results import Cell, Results

PAGE = "speed.html"
WIDEST = 4
"""Powers of ten, to both sides, beyond which dots lie at the edge."""
WIDTH, HEIGHT, MOST_SLOW = 720, 34, 15
Further = Sequence[tuple[str, str]]
"""Other pages about speed, by title."""


def page(results: Results, pages: Mapping[str, str], navigation: Navigation, further: Further = ()) -> str:
    by_target = {target: _measured(results, target) for target in results.targets}
    known = {target: cells for target, cells in by_target.items() if cells}
    body = f"""{navigation.bar(PAGE, "Speed")}<main id="content"><header><p class="eyebrow">Speed</p>
<h1>How fast results are, beside their sources</h1>
<p class="lead">A dot is a model: the time of the result ÷ the time of the source in its own runtime. Left of the black
line the result is faster; the red one is the median.</p></header>
{_table(known) if known else "<p>No result has been timed beside its source yet.</p>"}{_slowest(known, pages)}
{_further(further)}{footer()}</main>"""
    return document("Speed: zoo", body, styles=["navigation.css", "site.css", "zoo.css", "speed.css"])


def _measured(results: Results, target: str) -> list[Cell]:
    """The cells with a ratio, in the order of it; those that are not the same model are not timed."""
    found = [c for c in results.cells.values() if c.target == target and c.verdict in ("same", "not verified")]
    return sorted((c for c in found if _ratio(c) > 0), key=_ratio)


def _ratio(cell: Cell) -> float:
    return cell.speed if cell.speed is not None and math.isfinite(cell.speed) else 0.0


def _table(known: Mapping[str, Sequence[Cell]]) -> str:
    furthest = max(abs(math.log10(_ratio(cell))) for cells in known.values() for cell in cells)
    reach = min(max(math.ceil(furthest + 1e-9), 1), WIDEST)
    rows = []
    for target, cells in known.items():
        ratios = [_ratio(cell) for cell in cells]
        peer = ' <span class="muted small">other converter</span>' if is_peer(target) else ""
        faster = share(sum(ratio <= 1 for ratio in ratios) / len(ratios))
        rows.append(
            [escape(title(target)) + peer, f"{len(cells):,}", _strip(ratios, reach), _times(median(ratios)), faster]
        )
    scale = f"faster, the same, slower; a line each 10 times, to {10**reach:,}"
    titles = ["target", "models", scale, "median", "at least as fast"]
    return table(titles, rows, numbers=[1, 3, 4], caption="Speed by target", stacked=True)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"


def _strip(ratios: Sequence[float], reach: int) -> str:
    """Dots on a scale of powers of ten, `reach` of them to both sides."""

    def x(ratio: float) -> float:
        return round(6 + (WIDTH - 12) * (min(max(math.log10(ratio) / reach, -1), 1) + 1) / 2, 1)

    ticks = "".join(f'<path class="tick" d="M{x(10**power)} 0V{HEIGHT}"/>' for power in range(-reach, reach + 1))
    rows = "".join(f"M{x(ratio)} {8 + 6 * (place % 4)}h0" for place, ratio in enumerate(ratios))
    label = (
        f"{counted(len(ratios), 'model')}, from {ratios[0]:.2g} to {ratios[-1]:.2g} times, median {median(ratios):.2g}"
    )
    return (
        f'<svg class="strip" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f'<title>{label}</title>{ticks}<path class="even" d="M{x(1)} 0V{HEIGHT}"/><path class="dots" d="{rows}"/>'
        f'<path class="median" d="M{x(median(ratios))} 2V{HEIGHT - 2}"/></svg>'
    )


def _slowest(known: Mapping[str, Sequence[Cell]], pages: Mapping[str, str]) -> str:
    cells = [cell for target, found in known.items() if not is_peer(target) for cell in found if _ratio(cell) > 1]
    rows = [
        [
            f'<a href="{escape(pages[cell.model])}#{anchor(cell.target)}">{escape(cell.model, 200)}</a>',
            escape(title(cell.target)),
            _times(_ratio(cell)),
        ]
        for cell in sorted(cells, key=lambda cell: -_ratio(cell))[:MOST_SLOW]
    ]
    if not rows:
        return ""
    about = '<p class="muted">Most is to gain here. <a href="index.html#show=speed">All of them in the table</a>.</p>'
    body = table(["model", "target", "speed"], rows, numbers=[2], caption="The slowest", stacked=True)
    return f"<section><h2>The slowest</h2>{about}{body}</section>"


def _further(pages: Further) -> str:
    if not pages:
        return ""
    items = "".join(f'<li><a href="{escape(path)}">{escape(name)}</a></li>' for name, path in pages)
    return f"<section><h2>More measurements of speed</h2><ul>{items}</ul></section>"
