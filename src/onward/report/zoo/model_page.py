"""The page of a model of a zoo: what it is, what became of it on each target, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from onward.report.html import document, escape, table
from onward.report.navigation import Navigation, up
from onward.report.wording import counted, duration, number
from onward.report.zoo.history import Run
from onward.report.zoo.index_page import anchor, footer
from onward.report.zoo.outline import picture
from onward.report.zoo.verdicts import advice, chip, is_peer, kind, title
from onward.verification.metrics import digits_apart
from onward.zoo.results import Cell, ModelFacts, Results, Slot

LONGEST_SOURCE = 100_000
LOWEST, HIGHEST = -9.0, 1.0
"""Powers of ten between which errors are drawn."""
MOST_SLOTS = 100
MOST_RUNS = 40


def page(
    model: str,
    results: Results,
    pages: Mapping[str, str],
    op_pages: Mapping[str, str],
    navigation: Navigation,
    history: Sequence[Run] = (),
) -> str:
    facts = results.models.get(model) or ModelFacts(model, "")
    cells = results.of(model)
    here = pages[model]
    parts = [_header(facts, cells, up(here)), _glance(cells)]
    parts.append(
        f'<div class="halves"><div>{_slots(facts)}{_ops(facts, op_pages, up(here))}</div>{_graph(facts)}</div>'
    )
    parts.append(_targets(cells, history))
    bar = navigation.bar(here, "Models")
    body = f'{bar}<main id="content">\n{"".join(parts)}\n{footer()}\n</main>'
    return document(f"{model}: zoo", body, styles=["navigation.css", "site.css", "model.css"], scripts=["model.js"])


def _header(facts: ModelFacts, cells: Mapping[str, Cell], root: str) -> str:
    pairs = {
        "Format": facts.format,
        "Task": facts.task,
        "Opset": facts.opset.replace("=", " ").replace(";", ", "),
        "Nodes": f"{facts.nodes:,}" if facts.nodes else "",
        "Parameters": f"{facts.parameters:,}" if facts.parameters else "",
        "Size": nbytes(facts.size_bytes) if facts.size_bytes else "",
        "Published in": facts.package,
        "Licence": facts.licence,
    }
    listed = "".join(f"<div><dt>{name}</dt><dd>{escape(text, 200)}</dd></div>" for name, text in pairs.items() if text)
    sha = f'<p class="muted small">SHA-256 <code>{escape(facts.sha256, 64)}</code></p>' if facts.sha256 else ""
    own = [cell for target, cell in cells.items() if not is_peer(target)]
    same = sum(cell.verdict == "same" for cell in own)
    words = f"The same on {same:,} of {counted(len(own), 'target')}" if own else "Not run yet"
    return f"""<header>
<p class="eyebrow"><a href="{root}index.html">Zoo</a></p>
<h1>{escape(facts.model, 1000)}</h1>
<p class="lead">{words}.</p>
<dl class="facts">{listed}</dl>{sha}
</header>
"""


def nbytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB"


def _glance(cells: Mapping[str, Cell]) -> str:
    """All targets in a table."""
    if not cells:
        return ""
    columns = {
        "converted": [_time(cell.seconds) for cell in cells.values()],
        "verified": [_time(cell.verify_seconds) for cell in cells.values()],
        "memory": [nbytes(1e6 * cell.peak_mb) if cell.peak_mb is not None else "" for cell in cells.values()],
        "nodes": [f"{cell.nodes:,}" if cell.nodes is not None else "" for cell in cells.values()],
        "transposes": [f"{cell.transposes:,}" if cell.transposes is not None else "" for cell in cells.values()],
        "size": [nbytes(cell.size_bytes) if cell.size_bytes is not None else "" for cell in cells.values()],
        "speed": [f"{cell.speed:.3g} ×" if cell.speed is not None else "" for cell in cells.values()],
    }
    known = {name: texts for name, texts in columns.items() if any(texts)}
    rows = []
    for place, (target, cell) in enumerate(cells.items()):
        link = f'<a href="#{anchor(target)}">{escape(title(target), 60)}</a>'
        peer = ' <span class="muted small">other converter</span>' if is_peer(target) else ""
        error = meter(cell.error, cell.allowance, cell.verdict == "same")
        rows.append([link + peer, chip(cell.verdict), error, *(texts[place] for texts in known.values())])
    titles = ["target", "verdict", "error beside allowance", *known]
    note = (
        '<p class="muted small">Speed: time of the result ÷ time of the source in its own runtime.</p>'
        if "speed" in known
        else ""
    )
    body = table(titles, rows, numbers=range(3, len(titles)), caption="Targets", stacked=True)
    return f'<section id="glance"><h2>Every target</h2>{body}{note}</section>\n'


def _time(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def meter(error: float | None, allowance: float | None, within: bool) -> str:
    """How far off, beside what is allowed, on a scale of powers of ten."""
    if error is None:
        return ""
    words = number(error) if allowance is None else _of(error, allowance)

    def x(value: float) -> float:
        power = LOWEST if value <= 0 else HIGHEST if not math.isfinite(value) else math.log10(value)
        return round(4 + 112 * (min(max(power, LOWEST), HIGHEST) - LOWEST) / (HIGHEST - LOWEST), 1)

    limit = "" if allowance is None else f'<path class="limit" d="M{x(allowance)} 1v12"/>'
    free = "" if allowance is None else f'<path class="free" d="M4 7H{x(allowance)}"/>'
    mark = f'<path class="{"within" if within else "beyond"}" d="M{x(error)} 7h0"/>'
    picture = (
        f'<svg viewBox="0 0 120 14" class="meter" aria-hidden="true"><path d="M4 7H116"/>{free}{limit}{mark}</svg>'
    )
    return f'<span class="error">{picture}<span>{words}</span></span>'


def _of(error: float, allowance: float) -> str:
    """Both, with as many digits as tell them apart."""
    said, allowed = number(error), number(allowance)
    if said == allowed and error != allowance:
        digits = digits_apart(error, allowance)
        said, allowed = f"{error:.{digits}g}", f"{allowance:.{digits}g}"
    return f"{said} of {allowed}"


def _slots(facts: ModelFacts) -> str:
    blocks = []
    for name, slots in (("Inputs", facts.inputs), ("Outputs", facts.outputs)):
        if slots:
            rows = [
                [f"<code>{escape(slot.name, 200)}</code>", f"<code>{escape(slot.type, 100)}</code>", _shape(slot)]
                for slot in slots[:MOST_SLOTS]
            ]
            more = f'<p class="muted small">and {len(slots) - MOST_SLOTS:,} more</p>' if len(slots) > MOST_SLOTS else ""
            blocks.append(f"<h2>{name}</h2>{table(['name', 'type', 'shape'], rows, caption=name)}{more}")
    return f'<section id="values">{"".join(blocks)}</section>\n' if blocks else ""


def _shape(slot: Slot) -> str:
    if slot.shape is None:
        return '<span class="muted">unknown</span>'
    sizes = ["?" if size is None else str(size) for size in slot.shape]
    return escape(" × ".join(sizes) or "scalar", 200)


def _ops(facts: ModelFacts, op_pages: Mapping[str, str], root: str) -> str:
    if not facts.ops:
        return ""
    items = "".join(
        f'<li><a href="{root}{escape(op_pages[op])}">{escape(op, 60)}</a> <span class="muted">{count:,}</span></li>'
        for op, count in sorted(facts.ops.items(), key=lambda item: (-item[1], item[0]))
    )
    return f'<section id="ops"><h2>Ops</h2><ul class="ops">{items}</ul></section>\n'


def _graph(facts: ModelFacts) -> str:
    svg = picture(facts.graph, f"The graph of {facts.model}, in outline")
    if not svg:
        return ""
    return (
        '<section id="graph"><h2>The graph, in outline</h2>'
        f'<div class="card picture" tabindex="0" role="region" aria-label="The graph">{svg}</div></section>\n'
    )


def _targets(cells: Mapping[str, Cell], history: Sequence[Run]) -> str:
    cards = "".join(_target(cell, history) for cell in cells.values())
    return f'<section id="targets"><h2>What happened, and what to do next</h2>{cards}</section>\n' if cards else ""


def _target(cell: Cell, history: Sequence[Run]) -> str:
    told = advice(cell)
    message = f'<p class="message">{escape(cell.message)}</p>' if cell.message else ""
    verb = "is refused" if cell.verdict == "refused" else "differs"
    node = f"<p>The first node that {verb}: <code>{escape(cell.first_node, 300)}</code></p>" if cell.first_node else ""
    looked = f"<p><b>Looked into:</b> {escape(cell.explained)}</p>" if cell.explained else ""
    error = ""
    if cell.error is not None and not cell.message:
        allowed = f", where {number(cell.allowance)} is allowed" if cell.allowance is not None else ""
        error = f"<p>The worst error of all outputs is {number(cell.error)}{allowed}.</p>"
    command = (
        f'<div class="command"><code>{escape(told.command)}</code>'
        '<button type="button" class="copy screen-only">Copy</button></div>'
        if told.command
        else ""
    )
    limits = []
    if cell.limit_seconds:
        limits.append(f"{cell.limit_seconds:g} s")
    if cell.limit_mb:
        limits.append(nbytes(1e6 * cell.limit_mb))
    about = [cell.when[:16].replace("T", " "), cell.machine, f"limits {', '.join(limits)}" if limits else ""]
    ran = " · ".join(escape(text, 200) for text in [*about, cell.versions] if text)
    return f"""<article class="card target" id="{anchor(cell.target)}">
<h3>{escape(title(cell.target), 60)} {chip(cell.verdict)}{_runs(cell, history)}</h3>
{message}{node}{error}{looked}<p class="next">{escape(told.sentence)}</p>{command}
{_source(cell)}<p class="muted small ran">{ran}</p>
</article>
"""


def _source(cell: Cell) -> str:
    if not cell.source:
        return ""
    # Line breaks are what `escape` would take away; what cannot be printed is replaced line by line.
    lines = cell.source[:LONGEST_SOURCE].split("\n")
    text = "\n".join(_line(line) for line in lines)
    return (
        f'<details class="source"><summary>Generated source, {counted(len(lines), "line")}</summary>'
        f'<pre tabindex="0"><code class="python">{text}</code></pre></details>'
    )


def _line(line: str) -> str:
    body = line.lstrip(" ")
    return " " * (len(line) - len(body)) + "".join(_character(character) for character in body)


def _character(character: str) -> str:
    return {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(character, character if character.isprintable() else "�")


def _runs(cell: Cell, history: Sequence[Run]) -> str:
    """How it went in each run, and since when it is as it is."""
    found = [(run.when[:10], v) for run in history if (v := run.verdict(cell.model, cell.target))][-MOST_RUNS:]
    if len(found) < 2:
        return ""
    now, streak = found[-1][1], 0
    while streak < len(found) and found[-1 - streak][1] == now:
        streak += 1
    words = f"{now} in all {len(found)} runs" if streak == len(found) else f"{now} since {found[-streak][0]}"
    ticks = "".join(f'<i class="{kind(verdict)}" title="{escape(when)}: {verdict}"></i>' for when, verdict in found)
    told = f'<span class="muted small">{escape(words)}</span>'
    return f'<span class="runs"><span aria-hidden="true">{ticks}</span>{told}</span>'
