"""The scoreboard as one web page, from the data of `scoreboard.json`: every op, test and dtype on every runner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onward.report.html import document, escape, json_script, table
from onward.report.trend import trends
from onward.report.wording import counted, duration, listing, share

Board = Mapping[str, Any]

STATUSES = {
    "pass": "the expected result",
    "imprecise": "a double that is right to single precision only",
    "wrong": "another result than expected, and no error",
    "refused": "an error that says so",
    "crash": "the process of the runner died",
    "timeout": "no answer within the time limit",
}
"""What may come of a test, from best to worst."""
TITLES = {
    "suite": ("ONNX suite", "known shapes"),
    "unknown": ("ONNX suite", "unknown shapes"),
    "dtypes": ("Dtypes", "each op in each dtype"),
}
LABELS = {"suite": "known shapes", "unknown": "unknown shapes", "dtypes": "all dtypes"}
DTYPES = (
    *("float", "double", "float16", "bfloat16"),
    *("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1"),
    *("int64", "int32", "int16", "int8", "int4", "int2", "uint64", "uint32", "uint16", "uint8", "uint4", "uint2"),
    *("bool", "string", "complex64", "complex128"),
)
"""In the order of the page."""


CELL = ("op", "parameter", "type", "dtype", "template", "truth", "why")


def page(
    board: Board,
    history: Sequence[Mapping[str, Any]] = (),
    changes: Sequence[Mapping[str, str]] | None = None,
    bar: str = "",
) -> str:
    """The page, complete in itself. `history` are the totals of runs so far; `changes`, since another board.

    `bar` is that of the site that the page is in, if it is in one.
    """
    what = board["selection"]["what"]
    parts = [_header(board), _cards(board)]
    if changes is not None:
        parts.append(_changes(changes))
    parts.append(trends(history, list(board["runners"]), {name: " · ".join(TITLES[name]) for name in what}))
    if board["tests"]:
        parts.append(_explorer(board))
    if "unknown" in what:
        parts.append(_unknown(board))
    if board["dtypes"]:
        parts.append(_dtypes(board))
    parts.append(_method(board))
    content = f'<main id="content">\n{"".join(parts)}\n{_footer()}\n</main>'
    body = f"{bar}{content}\n{json_script('board', data(board))}"
    styles = ["navigation.css", "scoreboard.css"] if bar else ["scoreboard.css"]
    return document("Scoreboard: ONNX's own suite", body, styles=styles, scripts=["scoreboard.js"])


def _header(board: Board) -> str:
    runners = listing([escape(name) for name in board["runners"]])
    tests = sum(test["counted"] for test in board["tests"])
    what = f"{tests:,} tests of the ONNX suite" if tests else "Every op in every dtype"
    only, machine = board["selection"]["only"], board["machine"]
    part = f'<p class="notes warn">Only what matches <code>{escape(only)}</code> was run.</p>' if only else ""
    return f"""<header>
<p class="eyebrow">Scoreboard</p>
<h1>{what}, on {runners}</h1>
<p class="muted">{escape(board["made"][:10])} · {escape(machine["processor"])}, {machine["cores"]} cores ·
Python {escape(machine["python"])} · {duration(board["seconds"])} of computing</p>
{part}</header>
"""


def _cards(board: Board) -> str:
    """A card for each runner: what it passes."""
    cards = []
    for name, runner in board["runners"].items():
        versions = " · ".join(f"{package} {version}" for package, version in runner["versions"].items())
        scores = "".join(_score(board["totals"][what], name, LABELS[what]) for what in board["selection"]["what"])
        cards.append(
            f'<article class="card runner"><h2>{escape(name)}</h2><p class="muted small">{escape(runner["about"])}</p>'
            f'{scores}<p class="muted versions">{escape(versions)}</p></article>'
        )
    return f'<div class="cards">{"".join(cards)}</div>\n'


def _score(totals: Mapping[str, Any], runner: str, title: str) -> str:
    counts, tests = totals["runners"][runner], totals["tests"]
    hint = ", ".join(f"{counts[status]:,} {status}" for status in STATUSES if counts[status])
    parts = "".join(
        f'<i class="{status}" style="flex-grow:{counts[status]}"></i>' for status in STATUSES if counts[status]
    )
    passed = share(counts["pass"] / tests) if tests else "none"
    return f"""<div class="score"><p><span class="muted">{title}</span>
<span><b>{counts["pass"]:,}</b> of {tests:,} <span class="muted">{passed}</span></span></p>
<div class="bar" role="img" aria-label="{escape(hint)}" title="{escape(hint)}">{parts}</div></div>"""


def _changes(changes: Sequence[Mapping[str, str]]) -> str:
    if not changes:
        return _section("changes", "What changed", "Nothing: what passed passes, and what did not does not.", "")
    blocks = []
    for passing, title, tone in ((False, "Newly failing", "bad"), (True, "Newly passing", "good")):
        found = [change for change in changes if (change["to"] == "pass") == passing]
        if not found:
            continue
        rows = [
            [
                f"<code>{escape(change['test'])}</code>",
                escape(change["runner"]),
                escape(" · ".join(TITLES[change["what"]])),
                f"{_chip(change['from'])} → {_chip(change['to'])}",
                f'<span class="small">{escape(change["message"])}</span>',
            ]
            for change in found
        ]
        head = f'<h3>{title} <span class="badge {tone}">{len(found):,}</span></h3>'
        titles = ["test", "runner", "of", "from → to", "message"]
        blocks.append(f"{head}{table(titles, rows, caption=title)}")
    about = "Of the tests and runners that the other scoreboard has, too."
    return _section("changes", "What changed", about, "".join(blocks))


def _chip(status: str) -> str:
    return f'<span class="chip {escape(status)}">{escape(status)}</span>'


def _explorer(board: Board) -> str:
    """The table that the script fills: a row per op, opset or family."""
    options = "".join(
        f'<button type="button" data-what="{what}" aria-pressed="{str(not i).lower()}">{TITLES[what][1]}</button>'
        for i, what in enumerate(what for what in board["selection"]["what"] if what != "dtypes")
    )
    body = f"""<div class="controls screen-only">
<div class="buttons" role="group" aria-label="Rows">
<button type="button" data-view="op" aria-pressed="true">by op</button>
<button type="button" data-view="opset" aria-pressed="false">by opset</button>
<button type="button" data-view="family" aria-pressed="false">by family</button></div>
<div class="buttons" role="group" aria-label="Shapes">{options}</div>
<label class="search"><span class="hidden-text">Filter</span>
<input type="search" id="filter" placeholder="Filter: op, test or message" autocomplete="off"></label>
<label class="check"><input type="checkbox" id="failing"> only what fails</label>
</div>
<p class="muted small" id="found" role="status"></p>
<div class="scroll" tabindex="0" role="region" aria-label="Results"><table id="results">
<caption class="hidden-text">Passes of each runner</caption><thead></thead><tbody></tbody></table></div>
<noscript><p>This table needs JavaScript; the same data is in <code>scoreboard.json</code>.</p></noscript>"""
    about = "Passes of each runner. A row opens to its tests, with the message of each that fails."
    return _section("tests", "The suite", about, body)


def _unknown(board: Board) -> str:
    """What is lost when shapes are unknown."""
    rows = []
    for name in board["runners"]:
        lost = [
            (test["name"], test["unknown"][name].get("message", ""))
            for test in board["tests"]
            if status_of(test.get("suite"), name) == "pass" and status_of(test["unknown"], name) not in ("pass", "")
        ]
        both = "suite" in board["selection"]["what"]
        known = f"{board['totals']['suite']['runners'][name]['pass']:,}" if both else ""
        unknown = f"{board['totals']['unknown']['runners'][name]['pass']:,}"
        rows.append([escape(name), known, unknown, _lost(lost) if both else ""])
    about = (
        "The same tests with every dimension of every input made symbolic, and the shapes of all other values removed "
        "from the file: what a model looks like that was exported for any size."
    )
    titles = ["runner", "known shapes", "unknown shapes", "lost with the shapes"]
    return _section("unknown", "Unknown shapes", about, table(titles, rows, numbers=[1, 2], caption="Unknown shapes"))


def status_of(results: Mapping[str, Any] | None, runner: str) -> str:
    return str((results or {}).get(runner, {}).get("status", ""))


def _lost(tests: Sequence[tuple[str, str]]) -> str:
    if not tests:
        return '<span class="muted">none</span>'
    items = "".join(
        f'<li><code>{escape(name)}</code> <span class="muted">{escape(why)}</span></li>' for name, why in tests
    )
    return f'<details><summary>{counted(len(tests), "test")}</summary><ul class="tests small">{items}</ul></details>'


def _dtypes(board: Board) -> str:
    names = list(board["runners"])
    rows = []
    for dtype in dtype_order(cell["dtype"] for cell in board["dtypes"]):
        cells = [cell["results"] for cell in board["dtypes"] if cell["dtype"] == dtype and cell["truth"]]
        rows.append([f"<code>{escape(dtype)}</code>", f"{len(cells):,}", *(_passes(cells, name) for name in names)])
    summary = table(["dtype", "tried", *names], rows, numbers=range(1, len(names) + 2), caption="Passes by dtype")
    buttons = "".join(
        f'<button type="button" data-runner="{i}" aria-pressed="{str(not i).lower()}">{escape(name)}</button>'
        for i, name in enumerate(names)
    )
    legend = "".join(f'<span><i class="cell {status}"></i>{status}</span>' for status in (*STATUSES, "no reference"))
    matrix = f"""<h3>Each op in each dtype</h3>
<div class="controls screen-only"><div class="buttons" role="group" aria-label="Runner">{buttons}</div>
<label class="search"><span class="hidden-text">Filter</span>
<input type="search" id="dtype-filter" placeholder="Filter: op" autocomplete="off"></label></div>
<p class="legend small">{legend.replace('"cell no reference"', '"cell none"')}</p>
<div class="scroll matrix" tabindex="0" role="region" aria-label="Dtypes of each op"><table id="matrix">
<caption class="hidden-text">Dtypes of each op</caption><thead></thead><tbody></tbody></table></div>
<div id="cell-detail" class="card small" role="status"><p class="muted">Choose a cell to see what was run.</p></div>"""
    missing = board["totals"].get("dtypes", {}).get("no reference", 0)
    about = (
        f"Every op of ai.onnx, in its newest version up to opset {board['dtype_opset']}, with each type parameter in "
        f"each type that its schema allows: {len(board['dtypes']):,} combinations, of which {missing:,} have no known "
        "result and are counted for nobody."
    )
    return _section("dtypes", "Dtypes", about, f"{summary}{matrix}")


def dtype_order(found: Iterable[str]) -> list[str]:
    names = set(found)
    return [name for name in DTYPES if name in names] + sorted(names - set(DTYPES))


def _passes(cells: Sequence[Mapping[str, Any]], runner: str) -> str:
    passed = sum(status_of(cell, runner) == "pass" for cell in cells)
    portion = passed / len(cells) if cells else 0
    return f'<span class="meter" style="--share:{portion:.3f}">{passed:,}</span>'


def _method(board: Board) -> str:
    words = "".join(f"<div><dt>{_chip(status)}</dt><dd>{text}</dd></div>" for status, text in STATUSES.items())
    excluded = [test["name"] for test in board["tests"] if not test["counted"]]
    random = (
        f"<p>{counted(len(excluded), 'test')} expecting one random draw are shown, but not counted: "
        f"{', '.join(f'<code>{escape(name)}</code>' for name in excluded)}.</p>"
        if excluded
        else ""
    )
    truths = [cell["truth"] for cell in board["dtypes"] if cell["truth"]]
    sources = listing([f"{truths.count(truth):,} from {escape(truth)}" for truth in sorted(set(truths))])
    truth = (
        f"<p>Expected results in other dtypes: {sources}. Where a result is a runner's own, that it passes says "
        "no more than that it runs. For narrow floats the reference computes in float32, and rounds. A result passes "
        "within the rounding of its dtype.</p>"
        if truths
        else ""
    )
    limit = f"{board['selection']['timeout']:g} s"
    body = f"""<dl class="words">{words}</dl>
<p>Each test of the suite is run as the <code>onnx</code> package runs it, with the test's own tolerance. Tests
run in worker processes: a crash, or no answer within {limit}, counts against that test only.</p>
{random}{truth}"""
    return _section("method", "How it is counted", "", body)


def _footer() -> str:
    return "<footer>Written by <code>onward scoreboard</code>. The data is in <code>scoreboard.json</code>.</footer>"


def _section(name: str, title: str, about: str, body: str) -> str:
    return f"""<section id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{title}</h2>
{f'<p class="muted">{about}</p>' if about else ""}
{body}
</section>
"""


def data(board: Board) -> dict[str, Any]:
    """What the script shows, made small: statuses and messages are numbers of entries in lists."""
    runners, statuses = list(board["runners"]), list(STATUSES)
    messages: dict[str, int] = {}

    def results(found: Mapping[str, Any]) -> list[Any]:
        """For each runner a status, or a pair of status and message; -1 where there is nothing."""
        row: list[Any] = []
        for runner in runners:
            if runner not in found:
                row.append(-1)
                continue
            status = statuses.index(found[runner]["status"])
            text = found[runner].get("message", "")
            row.append([status, messages.setdefault(text, len(messages))] if text else status)
        return row

    suites = [what for what in board["selection"]["what"] if what != "dtypes"]
    tests = [
        [
            test["name"],
            test["op"],
            test["opset"],
            test["family"],
            int(test["counted"]),
            *(results(test[w]) for w in suites),
        ]
        for test in board["tests"]
    ]
    cells = [[*(cell[key] for key in CELL), results(cell["results"])] for cell in board["dtypes"]]
    return {
        "runners": runners,
        "statuses": statuses,
        "suites": suites,
        "families": board["families"],
        "tests": tests,
        "dtypes": dtype_order(cell["dtype"] for cell in board["dtypes"]),
        "cells": cells,
        "messages": list(messages),
    }
