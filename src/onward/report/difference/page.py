"""The difference of two models as a page: what differs by part, and both graphs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onward.editing.differences import PARTS, Change, Difference, Line
from onward.report.difference.words import SIGNS, TITLES, subject, summary
from onward.report.html import document, escape, table
from onward.report.wording import counted

CONTEXT = 3
"""Equal nodes that are shown before and behind those that differ."""
MOST = 2000
"""Rows of a table: a browser shows no more without waiting."""
BADGES = {"added": "good", "removed": "bad", "changed": "warn", "renamed": "", "tied": ""}


def page(found: Difference) -> str:
    """The page, complete in itself."""
    word = "good" if found.same else "warn"
    body = f"""<main>
<header><p class="eyebrow">Difference of two models</p><h1>{escape(found.first)} → {escape(found.second)}</h1>
<p class="verdict"><span class="badge {word}">{escape(summary(found))}</span></p>
<p class="muted">{found.nodes[0]:,} and {found.nodes[1]:,} nodes, without constants. Nothing was run.</p></header>
{"".join(_part(part, found.of(part)) for part in PARTS)}
{_graphs(found.lines)}<footer>Written by Onward.</footer>
</main>"""
    return document(f"{found.first} → {found.second}", body, styles=["diff.css"])


def _part(part: str, changes: Sequence[Change]) -> str:
    if not changes:
        return ""
    ordered = sorted(changes, key=lambda change: [*SIGNS].index(change.kind))
    rows = [
        [f'<code>{escape(subject(c), 300)}</code>', f'<span class="badge {BADGES[c.kind]}">{c.kind}</span>',
         "<br>".join(map(escape, c.details))]
        for c in ordered[:MOST]
    ]  # fmt: skip
    more = len(ordered) - len(rows)
    rest = f"<p>{more:,} more.</p>" if more > 0 else ""
    listed = table(["name", "", "what"], rows, caption=f"{TITLES[part]} that differ")
    return f"<section><h2>{TITLES[part]}</h2>{listed}{rest}</section>\n"


def _graphs(lines: Sequence[Line]) -> str:
    if all(line.kind == "same" for line in lines):
        return ""
    rows, shown = [], 0
    for line in _near(lines):
        if isinstance(line, int):
            rows.append(f'<tr class="gap"><td colspan="2">{counted(line, "equal node")}</td></tr>')
            continue
        shown += 1
        if shown > MOST:
            rows.append('<tr class="gap"><td colspan="2">and so on</td></tr>')
            break
        details = "".join(f'<span class="details">{escape(phrase)}</span>' for phrase in line.details)
        cells = f"<td>{escape(line.left, 400)}</td><td>{escape(line.right, 400)}{details}</td>"
        rows.append(f'<tr class="{line.kind}">{cells}</tr>')
    body = "".join(rows)
    return (
        '<section><h2>Both graphs</h2><div class="scroll" tabindex="0" role="region" aria-label="Both graphs">'
        f'<table class="sides"><thead><tr><th scope="col">first</th><th scope="col">second</th></tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>\n"
    )


def _near(lines: Sequence[Line]) -> Iterator[Line | int]:
    """What differs with what is around it; numbers stand for how many are left out between."""
    near = [False] * len(lines)
    for place, line in enumerate(lines):
        if line.kind != "same":
            near[max(0, place - CONTEXT) : place + CONTEXT + 1] = [True] * (
                min(len(lines), place + CONTEXT + 1) - max(0, place - CONTEXT)
            )
    hidden = 0
    for line, is_near in zip(lines, near, strict=True):
        if not is_near:
            hidden += 1
            continue
        if hidden:
            yield hidden
            hidden = 0
        yield line
    if hidden:
        yield hidden
