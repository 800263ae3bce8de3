"""A run of a zoo as a page of the documentation: counts by target, and what is not the same, with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from onward.report.wording import counted, number, printable, share
from onward.report.zoo.index_page import models
from onward.report.zoo.verdicts import MEANINGS, ORDER, PEERS_MAKE, is_peer, title
from onward.zoo.results import Cell, Results


def markdown(results: Results, headline: str = "Real models on every target") -> str:
    cells = list(results.cells.values())
    formats = Counter(facts.format for facts in results.models.values() if facts.format)
    kinds = ", ".join(f"{amount:,} {name}" for name, amount in formats.most_common())
    lines = [
        f"# {printable(headline, 200)}",
        "",
        "Written by `onward zoo report --markdown FILE` from stored results.",
        "",
    ]
    lines += [
        f"{counted(len(models(results)), 'model')}{f' ({_plain(kinds)})' if kinds else ''}, "
        f"{counted(len(cells), 'result')}. A result is *same* where it was converted, run on the same data as its "
        "source, and is off by no more than the source's own noise allows."
    ]
    lines += ["", *_about(cells), "", "## By target", "", *_totals(results)]
    lines += ["", "| verdict | meaning |", "|---|---|", *(f"| {v} | {MEANINGS[v]} |" for v in ORDER)]
    lines += ["", "## By format", "", "How many are the same, of how many.", "", *_formats(results)]
    if beside := _peers(results):
        lines += ["", "## Beside other converters", "", *beside]
    everywhere = _everywhere(results)
    if everywhere:
        lines += ["", "## What is not the same on any target, for one reason", "", *_reasons(everywhere.values())]
    for target in results.targets:
        if not is_peer(target):
            found = [c for c in results.cells.values() if c.target == target and c.model not in everywhere]
            lines += ["", f"## {title(target)}: what is not the same", "", *_reasons(found)]
    lines += ["", "## By model", "", *_table(results)]
    return "\n".join(lines) + "\n"


def _about(cells: Sequence[Cell]) -> list[str]:
    when = sorted(cell.when[:10] for cell in cells if cell.when)
    span = [when[0] if when[0] == when[-1] else f"{when[0]} to {when[-1]}"] if when else []
    machines = sorted({cell.machine for cell in cells if cell.machine})
    versions = sorted({part.strip() for c in cells for part in c.versions.split(", ") if part.strip()})
    return [_plain(" · ".join([*span, *machines, *versions]), 3000)]


def _totals(results: Results) -> list[str]:
    known = [v for v in ORDER if any(cell.verdict == v for cell in results.cells.values())]
    lines = _head(["target", "models", *known, "same of what is not refused"])
    for target in results.targets:
        found = Counter(cell.verdict for cell in results.cells.values() if cell.target == target)
        held = found.total() - found["refused"]
        part = share(found["same"] / held) if held else ""
        counts = [f"**{found[v]:,}**" if v == "same" else f"{found[v]:,}" for v in known]
        lines.append(_row([_plain(title(target)), f"{found.total():,}", *counts, part]))
    return lines


def _formats(results: Results) -> list[str]:
    targets = [target for target in results.targets if not is_peer(target)]
    lines = _head(["from", *(_plain(title(target)) for target in targets)])
    for name in sorted({facts.format for facts in results.models.values()}):
        counts = [tally(results, target, [name]) for target in targets]
        lines.append(
            _row([_plain(name or "unknown"), *(f"{same:,} of {tried:,}" if tried else "" for same, tried in counts)])
        )
    return lines


def tally(results: Results, target: str, formats: Collection[str]) -> tuple[int, int]:
    """How many models of some formats are the same on a target, and how many were tried there."""
    known = {name for name, facts in results.models.items() if facts.format in formats}
    found = [cell.verdict for cell in results.cells.values() if cell.target == target and cell.model in known]
    return found.count("same"), len(found)


def _peers(results: Results) -> list[str]:
    """Each other converter, and Onward from the same models to the same target."""
    lines = [
        "Each on the same models, and judged in the same way. *Different* is a wrong result without an error.",
        "",
        *_head(["converter", "to", "models", "same", "Onward: same", "different", "Onward: different"]),
    ]
    for peer in filter(is_peer, results.targets):
        to = PEERS_MAKE.get(title(peer), "")
        tried = {cell.model: cell.verdict for cell in results.cells.values() if cell.target == peer}
        own = [results.cells[model, to].verdict for model in tried if (model, to) in results.cells]
        counts = [Counter(tried.values()), Counter(own)]
        said = [f"**{found['same']:,}**" for found in counts] + [f"{found['different']:,}" for found in counts]
        lines.append(_row([_plain(title(peer)), _plain(title(to)), f"{len(tried):,}", *said]))
    return lines if any(map(is_peer, results.targets)) else []


def _everywhere(results: Results) -> dict[str, Cell]:
    """Models of which the same is said on each of several targets of Onward: one of the cells."""
    found = {}
    for model in models(results):
        own = [cell for target, cell in results.of(model).items() if not is_peer(target)]
        if len(own) > 1 and own[0].verdict != "same" and len({(cell.verdict, cell.message) for cell in own}) == 1:
            found[model] = own[0]
    return found


def _reasons(cells: Iterable[Cell]) -> list[str]:
    """Those that are not the same, the worst first."""
    found = sorted((c for c in cells if c.verdict != "same"), key=lambda c: (-ORDER.index(c.verdict), c.model))
    lines = _head(["model", "verdict", "reason"])
    return [*lines, *(_row([_code(c.model), c.verdict, _reason(c)]) for c in found)] if found else ["Nothing."]


def _reason(cell: Cell) -> str:
    parts = [_plain(cell.message, 400)] if cell.message else []
    if cell.first_node and cell.first_node not in cell.message:
        parts.append(f"at {_code(cell.first_node)}")
    if cell.verdict == "different" and cell.error is not None:
        parts.append(f"error {number(cell.error)}" + (f" of {number(cell.allowance)}" if cell.allowance else ""))
    if cell.explained:
        parts.append(f"*looked into*: {_plain(cell.explained, 1000)}")
    return "; ".join(parts)


def _table(results: Results) -> list[str]:
    targets = results.targets
    lines = _head(["model", "task", *(_plain(title(target)) for target in targets)])
    for name in models(results):
        cells = results.of(name)
        task = results.models[name].task if name in results.models else ""
        lines.append(_row([_code(name), _plain(task), *(cells[t].verdict if t in cells else "" for t in targets)]))
    return lines


def _plain(text: str, longest: int = 200) -> str:
    """Text from a file: nothing in it is Markdown or HTML."""
    flat = printable(text, longest)
    return "".join(f"\\{ch}" if ch in "\\`*_{}[]<>#|!" else ch for ch in flat)


def _code(text: str) -> str:
    return f"`{printable(text, 200).replace('`', chr(0x2BC)).replace('|', chr(0xA6))}`"


def _head(titles: Sequence[str]) -> list[str]:
    return [_row(titles), "|---" * len(titles) + "|"]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
