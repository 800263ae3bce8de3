"""A run as plain data: `scoreboard.json`. Its fields are described in docs/measured/scoreboard.md."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from onward.errors import OnwardError
from onward.runners import find
from onward.scoreboard.catalog import FAMILIES
from onward.scoreboard.exceptions import exceptions
from onward.scoreboard.run import Run
from onward.scoreboard.store import STATUSES, Result
from onward.scoreboard.types import leaf
from onward.writing import write_text

FORMAT = 1

Board = dict[str, Any]


def board(run: Run, made: datetime | None = None) -> Board:
    """The run, with counts."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for result in run.results:
        found.setdefault((result.what, result.test), {})[result.runner] = _result(result)
    suites = [what for what in run.options.what if what != "dtypes"]
    data: Board = {
        "format": FORMAT,
        "made": (made or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": round(sum(result.seconds for result in run.results), 1),
        "machine": {"processor": processor(), "cores": os.cpu_count() or 1, "python": platform.python_version()},
        "selection": {"what": list(run.options.what), "only": run.options.only, "timeout": run.options.timeout},
        "runners": {
            name: {"about": find(name)[0].about, "versions": versions} for name, versions in run.runners.items()
        },
        "families": {
            name: words for name, words in FAMILIES.items() if any(test.family == name for test in run.tests.values())
        },
        "tests": [
            asdict(test) | {what: found.get((what, name), {}) for what in suites} for name, test in run.tests.items()
        ],
        "dtype_opset": run.opset,
        "dtypes": [
            {
                "op": cell.op,
                "since": cell.since,
                "parameter": cell.parameter,
                "type": cell.type,
                "dtype": leaf(cell.type),
                "template": cell.template,
                "truth": cell.truth,
                "why": cell.why,
                "results": found.get(("dtypes", cell.key), {}),
            }
            for cell in run.cells
        ],
    }
    return data | {"totals": totals(data)}


def _result(result: Result) -> dict[str, Any]:
    reason = exceptions(result.runner).get(result.test) if result.what != "dtypes" else None
    message = f"{result.message} ({reason})" if reason and result.status != "pass" else result.message
    return {"status": result.status, "seconds": result.seconds} | ({"message": message} if message else {})


def totals(data: Board) -> dict[str, Any]:
    """By what was run: how many tests count, and by runner how many came out how."""
    found: dict[str, Any] = {}
    for what in data["selection"]["what"]:
        rows = data["dtypes"] if what == "dtypes" else [test for test in data["tests"] if test["counted"]]
        cells = [row["results"] if what == "dtypes" else row[what] for row in rows]
        known = [cell for cell in cells if cell]
        found[what] = {"tests": len(known), "runners": {name: count(known, name) for name in data["runners"]}}
        if what == "dtypes":
            found[what]["no reference"] = len(cells) - len(known)
    return found


def count(cells: Iterable[dict[str, Any]], runner: str) -> dict[str, int]:
    counted = Counter(cell[runner]["status"] for cell in cells if runner in cell)
    return {status: counted[status] for status in STATUSES}


def read(path: Path) -> Board:
    """A board that was written before, or an error of one line."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OnwardError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except json.JSONDecodeError as error:
        raise OnwardError(f"{path}: it is not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT or not {"tests", "dtypes"} <= data.keys():
        raise OnwardError(f"{path}: it is not a scoreboard of format {FORMAT}")
    return data


def changes(old: Board, new: Board) -> list[dict[str, str]]:
    """What passes now and did not, and the other way around; tests and runners that both have only."""
    before = statuses(old)
    found = []
    for key, (status, message) in statuses(new).items():
        was = before.get(key)
        if was is not None and (was[0] == "pass") != (status == "pass"):
            what, test, runner = key
            found.append(
                {"what": what, "test": test, "runner": runner, "from": was[0], "to": status}
                | {"message": message or was[1]}
            )
    return sorted(found, key=lambda change: (change["to"] == "pass", change["runner"], change["what"], change["test"]))


def statuses(data: Board) -> dict[tuple[str, str, str], tuple[str, str]]:
    """By what was run, test and runner: the status and the message."""
    rows = [(what, test["name"], test.get(what, {})) for test in data["tests"] for what in ("suite", "unknown")]
    rows += [("dtypes", f"{cell['op']} {cell['parameter']} {cell['type']}", cell["results"]) for cell in data["dtypes"]]
    return {
        (what, test, runner): (result["status"], result.get("message", ""))
        for what, test, results in rows
        for runner, result in results.items()
    }


def add_history(path: Path, data: Board) -> list[dict[str, Any]]:
    """All runs of this selection so far, this one among them; a run that found nothing new is not added."""
    history = _history(path)
    entry = {key: data[key] for key in ("made", "selection", "totals")}
    entry["versions"] = {name: runner["versions"] for name, runner in data["runners"].items()}
    if not history or {**history[-1], "made": ""} != {**entry, "made": ""}:
        history.append(entry)
        write_text(path, json.dumps(history, indent=1) + "\n")
    return [entry for entry in history if entry["selection"]["only"] == data["selection"]["only"]]


def _history(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return []
    entries = found if isinstance(found, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and {"made", "selection", "totals"} <= entry.keys()]


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
