"""The difference of two models as a page: what differs by part, and both graphs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from onward.editing.differences import PARTS, Change, Difference, Line
from onward.report.difference.words import SIGNS, TITLES, subject, summary
from onward.report.html import document, escape, table
from onward.report.wording import counted

CONTEXT = 3
"""Equal nodes that are shown before and behind those that differ."""
MOST = 2000
"""Rows of a table: a browser shows no more without waiting."""
OPEN = 40
"""Rows that are seen at once; the others unfold."""
BADGES = {"added": "good", "removed": "bad", "changed": "warn", "renamed": "", "tied": ""}


def page(found: Difference) -> str:
    """The page, complete in itself."""
    short, whole = ([one, other] for one, other in (_names(found), (found.first, found.second)))
    paths = f'<p class="muted small"><code>{escape(whole[0])}</code><br><code>{escape(whole[1])}</code></p>'
    body = f"""<main>
<header><p class="eyebrow">Difference of two models</p><h1>{escape(short[0])} → {escape(short[1])}</h1>
{"" if short == whole else paths}<p class="verdict">{_verdict(found)}</p>
<p class="muted">{found.nodes[0]:,} and {found.nodes[1]:,} nodes, without constants. Nothing was run.</p></header>
{"".join(_part(part, found.of(part)) for part in PARTS)}
{_graphs(found.lines)}<footer>Written by Onward.</footer>
</main>"""
    return document(f"{short[0]} → {short[1]}", body, styles=["diff.css"])


def _names(found: Difference) -> tuple[str, str]:
    """The last parts of paths, as many as tell one from the other."""
    first, second = (PurePath(side).parts or (side,) for side in (found.first, found.second))
    longest = max(len(first), len(second))
    count = next((n for n in range(1, longest) if first[-n:] != second[-n:]), longest)
    count = 1 if first == second else count
    return str(PurePath(*first[-count:])), str(PurePath(*second[-count:]))


def _verdict(found: Difference) -> str:
    """A badge for each part and kind, which leads to its table."""
    if found.same:
        return f'<span class="badge good">{escape(summary(found))}</span>'
    return " ".join(
        f'<a class="badge {BADGES[kind]}" href="#{part}">{_count(part, count)} {kind}</a>'
        for part, kinds in found.counts().items()
        for kind, count in kinds.items()
    )


def _count(part: str, count: int) -> str:
    return f"{part}: {count:,}" if part in ("metadata", "training") else counted(count, part)


def _part(part: str, changes: Sequence[Change]) -> str:
    if not changes:
        return ""
    ordered = sorted(changes, key=lambda change: [*SIGNS].index(change.kind))
    rows = [
        [f'<code>{escape(subject(c), 300)}</code>', f'<span class="badge {BADGES[c.kind]}">{c.kind}</span>',
         "<br>".join(map(escape, c.details))]
        for c in ordered[:MOST]
    ]  # fmt: skip
    listed = table(["name", "", "what"], rows[:OPEN], caption=f"{TITLES[part]} that differ")
    if len(rows) > OPEN:
        folded = table(["name", "", "what"], rows[OPEN:], caption=f"{TITLES[part]} that differ, continued")
        listed += f"<details><summary>{len(rows) - OPEN:,} more</summary>{folded}</details>"
    beyond = len(ordered) - len(rows)
    rest = f"<p>{beyond:,} more are not shown.</p>" if beyond > 0 else ""
    return f'<section class="changes" id="{part}"><h2>{TITLES[part]}</h2>{listed}{rest}</section>\n'


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
