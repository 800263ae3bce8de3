"""The scoreboard as a page of the documentation: the counts of a run, how it counts, and the format of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onward.backends.backend import backends
from onward.report.html import asset
from onward.report.scoreboard_page import STATUSES, TITLES, dtype_order, status_of
from onward.report.wording import listing

Board = Mapping[str, Any]

ABOUT = "scoreboard.md"
"""Of the assets: how it is counted, how to run it, and the format of the data."""


def ours() -> dict[str, str]:
    """Runners of generated source, by what that is made for."""
    return {one.name: one.title for one in backends()}


def markdown(board: Board) -> str:
    """The page, from a run."""
    lines = ["# Scoreboard: ONNX's own backend suite", ""]
    lines += [f"Written by `{_command(board)}`.", "", _machine(board), ""]
    lines += _totals(board)
    if board["tests"]:
        lines += ["", "## By family", "", *_families(board)]
    if "unknown" in board["selection"]["what"]:
        lines += ["", *_unknown(board)]
    if board["dtypes"]:
        lines += ["", "## By dtype", "", *_dtypes(board)]
    if "suite" in board["selection"]["what"]:
        for name, title in _made(board).items():
            lines += ["", f"## What does not pass on {title}", "", *_failing(board, name)]
    words = "\n".join(f"| {status} | {meaning} |" for status, meaning in STATUSES.items())
    return "\n".join(lines) + "\n" + asset(ABOUT).replace("{words}", words)


def _made(board: Board) -> dict[str, str]:
    """Runners of generated source that the run had, and what each is made for: 'JAX', and 'JAX (jax:jit)'."""
    found = {name: (ours().get(name.partition(":")[0]), ":" in name) for name in board["runners"]}
    return {name: f"{title} ({name})" if mode else title for name, (title, mode) in found.items() if title}


def _command(board: Board) -> str:
    """What was run, but for where its results go."""
    selection = board["selection"]
    only = f" --only '{selection['only']}'" if selection["only"] else ""
    options = f"--on {','.join(board['runners'])} --what {','.join(selection['what'])}{only}"
    return f"onward scoreboard --out site/ {options} --markdown FILE"


def _machine(board: Board) -> str:
    machine = board["machine"]
    versions = {
        package: version for runner in board["runners"].values() for package, version in runner["versions"].items()
    }
    parts = [board["made"][:10], f"{machine['processor']}, {machine['cores']} cores", f"Python {machine['python']}"]
    return " · ".join(parts + [f"{package} {version.partition(' ')[0]}" for package, version in versions.items()])


def _totals(board: Board) -> list[str]:
    lines = []
    for what, totals in board["totals"].items():
        none = totals.get("no reference", 0)
        more = f", and {none:,} without a known result" if none else ""
        lines += [f"**{', '.join(TITLES[what])}**: {totals['tests']:,} tests{more}", ""]
        lines += _head(["runner", *STATUSES])
        for name, counts in totals["runners"].items():
            lines.append(_row([name, f"**{counts['pass']:,}**", *(f"{counts[s]:,}" for s in list(STATUSES)[1:])]))
        lines.append("")
    excluded = [test["name"] for test in board["tests"] if not test["counted"]]
    if excluded:
        names = ", ".join(f"`{name}`" for name in excluded)
        lines.append(f"Not counted: {len(excluded)} tests that expect one random draw ({names}).")
    return lines


def _families(board: Board) -> list[str]:
    names, what = list(board["runners"]), next(w for w in board["selection"]["what"] if w != "dtypes")
    lines = _head(["family", "", "tests", *names])
    for family, about in board["families"].items():
        tests = [test for test in board["tests"] if test["family"] == family and test["counted"]]
        passed = [f"{sum(status_of(test[what], name) == 'pass' for test in tests):,}" for name in names]
        lines.append(_row([family, about, f"{len(tests):,}", *passed]))
    return lines


def _unknown(board: Board) -> list[str]:
    if "onnxruntime" not in board["runners"]:
        return []
    lines = []
    for runner in [name for name in ours() if name in board["runners"]]:
        missing = [
            test["name"]
            for test in board["tests"]
            if test["counted"]
            and status_of(test["unknown"], "onnxruntime") == "pass"
            and status_of(test["unknown"], runner) != "pass"
        ]
        found = f"{len(missing)} ({', '.join(f'`{name}`' for name in missing)})" if missing else "none"
        words = "Tests that ONNX Runtime passes with unknown shapes and Onward's"
        lines += [f"{words} {ours()[runner]} does not: {found}.", ""]
    return lines[:-1]


def _dtypes(board: Board) -> list[str]:
    names = list(board["runners"])
    lines = _head(["dtype", "tried", *names])
    for dtype in dtype_order(cell["dtype"] for cell in board["dtypes"]):
        cells = [cell["results"] for cell in board["dtypes"] if cell["dtype"] == dtype and cell["truth"]]
        passed = [f"{sum(status_of(cell, name) == 'pass' for cell in cells):,}" for name in names]
        lines.append(_row([f"`{dtype}`", f"{len(cells):,}", *passed]))
    truths = [cell["truth"] for cell in board["dtypes"] if cell["truth"]]
    sources = listing([f"{truths.count(truth):,} from {truth}" for truth in sorted(set(truths))])
    lines += [
        "",
        f"Expected results: {sources}. Where a result is a runner's own, that it passes says no more than that",
    ]
    return [*lines, "it runs."]


def _failing(board: Board, runner: str) -> list[str]:
    found = [test for test in board["tests"] if status_of(test["suite"], runner) not in ("pass", "")]
    lines = _head(["test", "status", "message"])
    for test in found:
        message = test["suite"][runner].get("message", "").replace("|", "\\|")
        lines.append(_row([f"`{test['name']}`", test["suite"][runner]["status"], message]))
    return lines if found else ["Nothing."]


def _head(titles: Sequence[str]) -> list[str]:
    return [_row(titles), "|---" * len(titles) + "|"]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
