"""A verification as one web page: the verdict, outputs, errors along the graph, the graph itself, how it was judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.report.html import asset, document, escape, json_script, table
from onward.report.layered import layered
from onward.report.plots import histogram_plot, profile_plot
from onward.report.verify_words import (
    VERDICTS,
    Row,
    arbitration_words,
    compared,
    culprit_words,
    information,
    measured,
    problems,
    rows,
    verdict,
    verdict_of,
    worst_element,
)
from onward.report.wording import counted, duration, number, printable, share, sizes
from onward.verification.results import NodeError, Report, SideResult, Status
from onward.writing import write_text

TONES: dict[Status, str] = {"same": "good", "different": "bad", "failed": "warn"}
ICONS: dict[Status, str] = {
    "same": "M5 12.5l4.5 4.5L19 7.5",
    "different": "M6.5 6.5l11 11M17.5 6.5l-11 11",
    "failed": "M12 6v8M12 18h0",
}
LONGEST_LISTS = 12
"""Of outputs' histograms and of nodes, beyond which a list goes on when opened."""


def write_page(report: Report, path: Path) -> None:
    write_text(path, page(report))


def page(report: Report) -> str:
    """The page, complete in itself: it opens from a disk, without a network."""
    parts = [_header(report), _outputs(report), _profiles(report), _histograms(report), _graph(report)]
    parts += [_tolerance(report), _environment(report)]
    data = json_script("report-data", _data(report))
    title = f"{VERDICTS[report.status]}: {report.model}"
    body = f"<main>\n{''.join(parts)}\n<footer>Written by Onward.</footer>\n</main>\n{data}"
    return document(
        title, body, styles=["parts.css", "verify.css"], scripts=["base.js", "verify.js", "canvas.js", "graph.js"]
    )


def _header(report: Report) -> str:
    tone, worst = TONES[report.status], report.worst
    facts = [("Data", escape(counted(len(report.data), "data set"))), ("Time", duration(report.seconds))]
    if worst is not None and measured(worst):
        facts = [("Worst error", number(worst.metrics.worst)), ("Allowed", number(worst.tolerance.worst)), *facts]
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    icon = f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="{ICONS[report.status]}"/></svg>'
    return f"""<header>
<p class="eyebrow">Verification report</p>
<h1>{_name(report.model, 1000)}</h1>
<div class="card verdict {tone}">{icon}
<div><p class="word">{VERDICTS[report.status]}</p>
<p class="sentence">{escape(verdict(report))}</p>
<dl class="facts">{listed}</dl></div></div>
{_notes(report.notes)}
</header>
"""


def _notes(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes" aria-label="Notes">{items}</ul>' if items else ""


def section(name: str, title: str, about: str, body: str) -> str:
    return f"""<section id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{title}</h2>
<p class="muted">{about}</p>
{body}
</section>
"""


def _outputs(report: Report) -> str:
    about = "Each output against what the source gave, on the set of data on which it fared worst."
    return section("outputs", "Outputs", about, "".join(_side(side) for side in report.sides))


def _side(side: SideResult) -> str:
    done = f"{counted(compared(side), 'data set')} compared" if side.trials else ""
    parts = [
        f'<div class="side"><h3>{_name(side.name)} {_badge(side.status)} <span class="muted small">{done}</span></h3>'
    ]
    wrong = [(f"<b>{escape(where)}</b>: " if where else "") + escape(what) for where, what in problems(side)]
    items = [f"<li>{words}</li>" for words in wrong]
    if items:
        parts.append(f'<ul class="problems">{"".join(items[:LONGEST_LISTS])}</ul>')
    if rest := items[LONGEST_LISTS:]:
        parts.append(f"<details><summary>{len(rest):,} more</summary><ul>{''.join(rest)}</ul></details>")
    for lines in (arbitration_words(side), culprit_words(side.culprit) if side.culprit else []):
        if lines:
            first, *others = [escape(words) for words in lines]
            sentences = "".join(f"<p>{words}</p>" for words in (f"<b>{first}</b>", *others))
            parts.append(f'<div class="card culprit">{sentences}</div>')
    found = rows(side)
    if found:
        titles = ["output", "verdict", "worst error", "allowed", "max abs", "beyond", "worst element"]
        cells = [_output_cells(row) for row in found]
        parts.append(table(titles, cells, numbers=(2, 3, 4, 5), caption=f"outputs of {side.name}", stacked=True))
        parts.append(_more_figures(side, found))
    return "\n".join(parts) + "</div>\n"


def _output_cells(row: Row) -> list[str]:
    output = row.output
    what = escape(f"{output.dtype} {sizes(output.shape)}") if output.dtype else ""
    name = f'{_name(output.name)}<div class="muted small">{what}</div>'
    tone = TONES[output.status]
    cells = [name, f'<span class="badge {tone}">{escape(verdict_of(output))}</span>']
    if not measured(output):
        return [*cells, "", "", "", "", escape(output.reason)]
    error = f'<span class="{tone}">{number(output.metrics.worst)}</span>'
    figures = [number(output.tolerance.worst), number(output.metrics.max_abs), share(output.metrics.mismatched)]
    where = f'{escape(worst_element(output)) or "all equal"}<div class="muted small">{escape(row.data)}</div>'
    return [*cells, error, *figures, where]


def _more_figures(side: SideResult, found: Sequence[Row]) -> str:
    """What informs but does not decide, and how each set of data fared."""
    figures = {row.output.name: dict(information(row.output.metrics)) for row in found if measured(row.output)}
    titles = list(dict.fromkeys(title for values in figures.values() for title in values))
    cells = [[_name(name), *(values.get(title, "") for title in titles)] for name, values in figures.items()]
    numbers = range(1, len(titles) + 1)
    informed = (
        table(["output", *titles], cells, numbers=numbers, caption=f"more figures of {side.name}", stacked=True)
        if cells
        else ""
    )
    data = [
        [escape(trial.data), _badge(trial.status), duration(trial.seconds), escape(trial.failure)]
        for trial in side.trials
    ]
    fared = table(
        ["data", "verdict", "time", "failure"], data, numbers=(2,), caption=f"data on {side.name}", stacked=True
    )
    return f"<details><summary>More figures, and each set of data</summary>{informed}{fared}</details>"


def _profiles(report: Report) -> str:
    sides = [(position, side) for position, side in enumerate(report.sides) if side.profile]
    if not sides:
        return ""
    about = (
        "The line is the error that has piled up on the way from the inputs; a dot is what a node adds by itself, "
        "both sides being fed the same values. A dot above the dashed line, what is allowed, is a defect; "
        "a line above it alone is drift."
    )
    return section("profile", "Errors along the graph", about, "".join(_profile(*pair) for pair in sides))


def _profile(position: int, side: SideResult) -> str:
    culprit = _culprit(side)
    label = f"Errors of {side.name} along the graph, {counted(len(side.profile), 'value')}"
    legend = "".join(
        f'<span><i class="key {kind}"></i>{words}</span>'
        for kind, words in (
            ("path", "piled up"),
            ("own", "of the node alone"),
            ("beyond", "beyond"),
            ("allowed", "allowed"),
        )
    )
    return f"""<figure class="card profile" data-side="{position}" tabindex="0"
 aria-label="{escape(label)}. The arrow keys go from value to value, Enter shows the node in the graph.">
<figcaption><h3>{_name(side.name)}</h3><div class="legend">{legend}</div></figcaption>
{profile_plot(side.profile, label, culprit)}
<p class="reading small" role="status"></p>
{_worst_nodes(side)}
</figure>
"""


def _worst_nodes(side: SideResult) -> str:
    """The nodes that add the most by themselves, as a table: it can be read without the plot."""
    beyond = [error for error in side.profile if error.own is not None and error.own > error.allowed]
    beyond.sort(key=lambda error: -_ratio(error.own or 0.0, error.allowed))
    cells = [
        [_name(e.node or e.value), escape(e.op), number(e.own), number(e.path), number(e.allowed)]
        for e in beyond[:LONGEST_LISTS]
    ]
    if not cells:
        return '<p class="muted small">No node by itself is off by more than is allowed.</p>'
    titles = ["node beyond what is allowed", "op", "own error", "piled up", "allowed"]
    left = f'<p class="muted small">and {len(beyond) - len(cells):,} more</p>' if len(beyond) > len(cells) else ""
    caption = f"nodes of {side.name} beyond what is allowed"
    return table(titles, cells, numbers=(2, 3, 4), caption=caption, stacked=True) + left


def _histograms(report: Report) -> str:
    cards = [card for side in report.sides for card in _side_histograms(side)]
    if not cards:
        return ""
    about = (
        "How many elements of each output are how far off, as a share of its largest value. Heights are logarithmic, "
        "so that a single element shows."
    )
    shown, rest = "".join(cards[:LONGEST_LISTS]), "".join(cards[LONGEST_LISTS:])
    body = f'<div class="tiles">{shown}</div>'
    if rest:
        more = f"{counted(len(cards) - LONGEST_LISTS, 'more output')}"
        body += f'<details><summary>{more}</summary><div class="tiles">{rest}</div></details>'
    return section("differences", "How the differences are spread", about, body)


def _side_histograms(side: SideResult) -> Iterator[str]:
    for row in rows(side):
        if row.output.histogram is None or not any(row.output.histogram[1]):
            continue
        edges, counts = row.output.histogram
        label = f"Differences of {row.output.name} on {side.name}, {row.data}"
        title = f"{_name(row.output.name)} {_badge(row.output.status)}"
        yield f"""<figure class="card tile"><figcaption><h3>{title}</h3>
<p class="muted small">{escape(side.name)}, {escape(row.data)}; {sum(counts):,} elements</p></figcaption>
{histogram_plot(edges, counts, label)}</figure>
"""


def _graph(report: Report) -> str:
    if not report.graph:
        return ""
    about = f"The {counted(len(report.graph), 'node')} of the source"
    if any(side.profile for side in report.sides):
        about += ", each coloured by its error against what is allowed. "
    else:
        about += "; the values inside were not compared. "
    about += "Drag to move; pinch, or click and turn the wheel, to zoom; or use the arrow keys, + and −."
    return section("graph", "The graph", about, asset("graph.html"))


def _tolerance(report: Report) -> str:
    found = [(side, row) for side in report.sides for row in rows(side) if measured(row.output)]
    if not found:
        return ""
    about = (
        "An output may be off by what rounding may cause at its dtype, or by a multiple of the source's own noise, "
        "whichever is more: how far two runs of the source that ought to be equal are apart. A single element "
        "(<i>worst</i>) and the output as a whole (<i>overall</i>) both have to stay within."
    )
    cells = []
    for side, row in found:
        limit, metrics = row.output.tolerance, row.output.metrics
        noise = f"{number(limit.noise_worst)} · {number(limit.noise_overall)}" if limit.factor else ""
        allowed = " · ".join("any" if math.isinf(value) else number(value) for value in (limit.worst, limit.overall))
        measured_as = f"{number(metrics.worst)} · {number(metrics.overall)}"
        factor = f"× {limit.factor:g}" if limit.factor else ""
        who = f'{_name(row.output.name)}<div class="muted small">{escape(side.name)}</div>'
        cells.append([who, measured_as, allowed, number(limit.floor), noise, factor, escape(limit.why)])
    titles = ["output", "worst · overall", "allowed", "dtype floor", "noise", "factor", "allowed is"]
    body = table(titles, cells, numbers=(1, 2, 3, 4, 5), caption="how each tolerance came about", stacked=True)
    return section("tolerance", "How the tolerance came about", about, body)


def _environment(report: Report) -> str:
    return environment_section({"source": report.source, **report.environment, "data": "; ".join(report.data)})


def environment_section(facts: Mapping[str, str]) -> str:
    cells = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in facts.items() if value
    )
    return section(
        "environment", "Environment", "Where and with what this ran.", f'<dl class="card pairs">{cells}</dl>'
    )


def _badge(status: Status) -> str:
    return f'<span class="badge {TONES[status]}">{VERDICTS[status].lower()}</span>'


def _name(text: str, longest: int = 200) -> str:
    return f'<code title="{escape(text)}">{escape(text, longest)}</code>'


def _ratio(error: float, allowed: float) -> float:
    return error / allowed if allowed else math.inf if error else 0.0


def _culprit(side: SideResult) -> int | None:
    """Its place in the profile."""
    if side.culprit is None:
        return None
    names, values = side.culprit.node, side.culprit.outputs
    by_value = (i for i, error in enumerate(side.profile) if error.value in values)
    by_name = (i for i, error in enumerate(side.profile) if names and error.node == names)
    return next(by_value, next(by_name, None))


def _data(report: Report) -> dict[str, Any]:
    """What the scripts draw: the graph with its layout, and the profile of each side, as columns."""
    makers = {value: i for i, node in enumerate(report.graph) for value in node["outputs"]}
    named = {node["name"]: i for i, node in enumerate(report.graph) if node["name"]}

    def node_of(error: NodeError) -> int:
        return makers.get(error.value, named.get(error.node, -1))

    layout = layered(report.graph)
    graph = {
        "names": [printable(node["name"] or next(iter(node["outputs"]), ""), 200) for node in report.graph],
        "ops": [printable(node["op"]) for node in report.graph],
        "values": [[printable(value, 200) for value in node["outputs"]] for node in report.graph],
        "x": [round(x, 3) for x in layout.x],
        "y": layout.y,
        "edges": [[source, node, *(round(x, 3) for x in bends)] for source, node, bends in layout.edges],
    }
    sides = []
    for side in report.sides:
        place = _culprit(side)
        culprit = side.culprit and next(
            (makers[v] for v in side.culprit.outputs if v in makers), named.get(side.culprit.node, -1)
        )
        sides.append(
            {
                "name": printable(side.name),
                "culprit": -1 if culprit is None else culprit,
                "place": -1 if place is None else place,
                "values": [printable(error.value, 200) for error in side.profile],
                "names": [printable(error.node, 200) for error in side.profile],
                "ops": [printable(error.op) for error in side.profile],
                "nodes": [node_of(error) for error in side.profile],
                "path": [_finite(error.path) for error in side.profile],
                "own": [_finite(error.own) for error in side.profile],
                "allowed": [_finite(error.allowed) for error in side.profile],
            }
        )
    return {"graph": graph, "sides": sides}


def _finite(value: float | None) -> float | str | None:
    """For JSON, which knows no infinities: JavaScript's `Number` reads these strings."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
