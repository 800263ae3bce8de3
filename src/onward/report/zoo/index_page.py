"""The first page of a zoo: what became of every model on every target, to be searched, filtered and sorted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from onward.report.html import document, escape, json_script
from onward.report.navigation import Navigation
from onward.report.trend import sparkline
from onward.report.wording import counted, listing, printable, share
from onward.report.zoo.changes import Change, Changes
from onward.report.zoo.history import Run
from onward.report.zoo.verdicts import MEANINGS, ORDER, PEER, chip, is_peer, kind, title
from onward.zoo.results import Cell, ModelFacts, Results

LONGEST_MESSAGE = 300
LONGEST_LIST = 200
"""Of changes."""
MEASURES = {
    "verdict": "verdict",
    "error": "error ÷ allowed",
    "seconds": "time to convert",
    "speed": "time ÷ source’s",
    "memory": "memory to convert",
    "size": "size of result",
}
"""What cells show, and how that is called."""


def page(
    results: Results,
    pages: Mapping[str, str],
    navigation: Navigation,
    history: Sequence[Run] = (),
    changes: Changes | None = None,
) -> str:
    """The page; `pages` are those of the models."""
    parts = [_header(results), _totals(results, history)]
    if changes is not None:
        parts.append(_changes(changes, pages))
    parts += [_explorer(results), _meanings()]
    body = (
        f'{navigation.bar("index.html", "Models")}<main id="content">\n{"".join(parts)}\n{footer()}\n</main>\n'
        f"{json_script('zoo', data(results, pages))}"
    )
    return document(
        "Zoo: real models on every target", body, styles=["navigation.css", "site.css", "zoo.css"], scripts=["zoo.js"]
    )


def _header(results: Results) -> str:
    own = [target for target in results.targets if not is_peer(target)]
    peers = [title(target) for target in results.targets if is_peer(target)]
    beside = f", beside {escape(listing(peers))}" if peers else ""
    when = max((cell.when for cell in results.cells.values()), default="")[:10]
    machines = sorted({cell.machine for cell in results.cells.values() if cell.machine})
    about = " · ".join(filter(None, [when, counted(len(results.cells), "result"), *machines[:3]]))
    return f"""<header>
<p class="eyebrow">Zoo</p>
<h1>{counted(len(models(results)), "model")} on {counted(len(own), "target")}{beside}</h1>
<p class="lead">Each was converted, run on the same data as its source, and compared within what the source’s own noise
allows. What is not the same is refused by name, or explained.</p>
<p class="muted small">{escape(about)}</p>
</header>
"""


def models(results: Results) -> list[str]:
    """All that anything is known of."""
    return sorted(results.models.keys() | {model for model, _ in results.cells})


def _totals(results: Results, history: Sequence[Run]) -> str:
    """What became of all models, target by target; each count chooses what it counts in the table below."""
    bodies = {False: "", True: ""}
    for target in results.targets:
        bodies[is_peer(target)] += _total(results, history, target)
    titles = (("Target", ""), ("The same", "number"), ("", "number share"), ("Of what is not refused", "number held"))
    head = "".join(f'<th scope="col" class="{place}">{name}</th>' for name, place in titles)
    trend = '<th scope="col" class="trend">Run by run</th>' if len(history) > 1 else ""
    peers = f'<tbody><tr><th colspan="7" class="beside">Other converters</th></tr>{bodies[True]}</tbody>'
    return f"""<div class="scroll totals"><table><caption class="hidden-text">What became of all models</caption>
<thead><tr>{head}<th scope="col" class="verdicts" colspan="2">All verdicts</th>{trend}</tr></thead>
<tbody>{bodies[False]}</tbody>{peers if bodies[True] else ""}</table></div>
"""


def _total(results: Results, history: Sequence[Run], target: str) -> str:
    found = Counter(cell.verdict for cell in results.cells.values() if cell.target == target)
    total, same = found.total(), found["same"]
    held = total - found["refused"]
    name = escape(title(target), 60)
    bar = "".join(f'<i class="{kind(v)}" style="flex-grow:{found[v]}"></i>' for v in ORDER if found[v])
    counts = "".join(
        f'<button type="button" class="verdict {kind(v)}" data-target="{escape(target, 200)}" data-verdict="{v}" '
        f'title="{v}" aria-label="{found[v]:,} {v} on {name}: show them">{found[v]:,}</button>'
        for v in ORDER
        if found[v]
    )
    trend = ""
    if len(history) > 1:
        shares = [run.share(target) for run in history]
        words = ", ".join("none" if value is None else share(value) for value in shares)
        line = sparkline(shares, f"The share that is the same, in {len(shares)} runs: {words}")
        trend = f'<td class="trend">{line}</td>'
    return f"""<tr><th scope="row">{name}</th>
<td class="number"><b>{same:,}</b> <span class="muted">of {total:,}</span></td>
<td class="number share">{share(same / total)}</td>
<td class="number held">{share(same / held) if held else ""}</td>
<td class="verdicts"><div class="bar" aria-hidden="true">{bar}</div></td>
<td class="counts"><div>{counts}</div></td>{trend}</tr>
"""


def _changes(found: Changes, pages: Mapping[str, str]) -> str:
    blocks = [
        _block("Worse", "bad", found.worse, pages),
        _block("Better", "good", found.better, pages),
        _block("Neither", "", found.other, pages),
    ]
    if found.figures:
        rows = "".join(
            f"<tr>{_which(one, pages)}<td>{one.old:,} → {one.new:,} {escape(one.name)}</td></tr>"
            for one in found.figures[:LONGEST_LIST]
        )
        head = f'<summary>Results of another size <span class="badge">{len(found.figures):,}</span></summary>'
        blocks.append(f'<details>{head}<div class="scroll"><table>{rows}</table></div></details>')
    words = [f"{counted(found.compared, 'result')} of the same files compared"]
    words += [f"{found.new:,} new"] if found.new else []
    words += [f"{found.gone:,} no longer there"] if found.gone else []
    nothing = "" if any(blocks) else "<p>Nothing has changed.</p>"
    return f"""<section id="changes" aria-labelledby="changes-title"><h2 id="changes-title">Since last time</h2>
<p class="muted">{", ".join(words)}.</p>{nothing}{"".join(blocks)}</section>
"""


def _block(name: str, tone: str, found: Sequence[Change], pages: Mapping[str, str]) -> str:
    if not found:
        return ""
    rows = "".join(
        f'<tr>{_which(one, pages)}<td class="step">{chip(one.before.verdict)} → {chip(one.after.verdict)}</td>'
        f'<td class="small">{escape(one.after.message, LONGEST_MESSAGE)}</td></tr>'
        for one in found[:LONGEST_LIST]
    )
    more = f'<p class="muted small">and {len(found) - LONGEST_LIST:,} more</p>' if len(found) > LONGEST_LIST else ""
    return (
        f'<h3>{name} <span class="badge {tone}">{len(found):,}</span></h3>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table>{rows}</table></div>{more}'
    )


def _which(change: Change, pages: Mapping[str, str]) -> str:
    cell = change.after
    link = f'<a href="{escape(pages[cell.model])}#{anchor(cell.target)}">{escape(cell.model)}</a>'
    return f'<th scope="row">{link}</th><td>{escape(title(cell.target))}</td>'


def anchor(target: str) -> str:
    """Of a target on the page of a model."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", target)


def _explorer(results: Results) -> str:
    facts = list(results.models.values())
    ops = sorted({op for one in facts for op in one.ops})
    found = Counter(cell.verdict for cell in results.cells.values())
    targets = {target: title(target) for target in results.targets}
    selects = [
        _select("format", "Format", {one.format: one.format for one in facts if one.format}),
        _select("task", "Task", {one.task: one.task for one in facts if one.task}),
        _select("opset", "Opset", {opset: opset for one in facts for opset in opsets(one)}),
        _select("verdict", "Verdict", {verdict: verdict for verdict in ORDER if found[verdict]}, ordered=True),
        _select("target", "On", targets, ordered=True, every="any"),
    ]
    listed = "".join(f'<option value="{escape(op, 200)}">' for op in ops)
    return f"""<section id="table" aria-labelledby="table-title"><h2 id="table-title">All models</h2>
<form class="filters screen-only" id="filters" role="search" aria-label="Models">
<label class="wide">Search<input type="search" id="q" placeholder="Name, task, message …" autocomplete="off"
 spellcheck="false" aria-keyshortcuts="/"></label>
{"".join(selects)}
<label>Op<input type="search" id="op" list="ops" placeholder="all" autocomplete="off" spellcheck="false"></label>
<datalist id="ops">{listed}</datalist>
{_select("show", "Cells show", MEASURES, ordered=True, every="")}
<button type="reset" id="clear">Clear</button>
</form>
<p class="muted small" id="found" role="status"></p>
<div class="scroll tall" role="region" aria-label="Models and targets"><table id="models" role="grid">
<caption class="hidden-text">Models by targets. The arrow keys go from cell to cell, Enter opens a model.</caption>
<colgroup></colgroup><thead></thead><tbody></tbody></table></div>
<p class="muted small screen-only keys"><kbd>/</kbd> search · <kbd>↑</kbd> <kbd>↓</kbd> <kbd>←</kbd> <kbd>→</kbd> from
cell to cell · <kbd>Enter</kbd> opens it</p>
<noscript><p>The table needs JavaScript. The same is in <a href="results.jsonl">results.jsonl</a>.</p></noscript>
</section>
"""


def _select(name: str, words: str, options: Mapping[str, str], *, ordered: bool = False, every: str = "all") -> str:
    keys = list(options) if ordered else sorted(options, key=_natural)
    listed = "".join(f'<option value="{escape(key, 200)}">{escape(options[key], 60)}</option>' for key in keys)
    first = f'<option value="">{every}</option>' if every else ""
    return f'<label>{words}<select id="{name}">{first}{listed}</select></label>'


def _natural(text: str) -> list[tuple[int, str]]:
    """A key by which `ai.onnx 9` comes before `ai.onnx 13`."""
    return [(int(part), "") if part.isdecimal() else (0, part.casefold()) for part in re.split(r"(\d{1,9})", text)]


def opsets(facts: ModelFacts) -> list[str]:
    """`ai.onnx 17` for `ai.onnx=17`, one by one."""
    return [part.strip().replace("=", " ") for part in facts.opset.split(";") if part.strip()]


def _meanings() -> str:
    words = "".join(f"<div><dt>{chip(verdict)}</dt><dd>{text}</dd></div>" for verdict, text in MEANINGS.items())
    return f"""<section id="verdicts" aria-labelledby="verdicts-title">
<h2 id="verdicts-title">What the verdicts mean</h2>
<dl class="words">{words}</dl></section>
"""


def footer() -> str:
    return "<footer>Written by <code>onward zoo report</code>.</footer>"


def data(results: Results, pages: Mapping[str, str]) -> dict[str, Any]:
    """What the script shows, made small: words are numbers of entries in lists."""
    lists: dict[str, dict[str, int]] = {name: {} for name in ("formats", "tasks", "opsets", "ops", "messages")}

    def number(name: str, text: str, longest: int = 200) -> int:
        return lists[name].setdefault(printable(text, longest), len(lists[name]))

    def cell(found: Cell | None) -> list[Any] | int:
        if found is None:
            return 0
        message = number("messages", found.message, LONGEST_MESSAGE) if found.message else -1
        ratio = None
        if found.error is not None and found.allowance is not None:
            ratio = found.error / found.allowance if found.allowance else None if found.error else 0.0
        figures = (ratio, found.seconds, found.speed, found.peak_mb, found.size_bytes)
        return [ORDER.index(found.verdict), message, *map(_short, figures)]

    rows = []
    for name in models(results):
        facts = results.models.get(name) or ModelFacts(name, "")
        cells = results.of(name)
        rows.append(
            [
                printable(name, 200),
                pages[name],
                printable(facts.package),
                number("formats", facts.format),
                number("tasks", facts.task),
                [number("opsets", opset) for opset in opsets(facts)],
                facts.size_bytes,
                facts.nodes,
                facts.parameters,
                [number("ops", op) for op in facts.ops],
                [cell(cells.get(target)) for target in results.targets],
            ]
        )
    return {
        "targets": [[printable(target), printable(title(target)), anchor(target)] for target in results.targets],
        "peers": sum(target.startswith(PEER) for target in results.targets),
        "verdicts": list(ORDER),
        "models": rows,
        **{name: list(found) for name, found in lists.items()},
    }


def _short(value: float | None) -> float | None:
    """Three digits are enough; what JSON has no word for is left out."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return float(f"{value:.3g}") if isinstance(value, float) else value
