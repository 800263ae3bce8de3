"""The files of a published scoreboard: the page, the data, and a badge for each runner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.report.badge import badge
from onward.report.scoreboard_page import page
from onward.writing import write_text

PAGE = "index.html"
DATA = "scoreboard.json"
BADGES = "badges"


def write(
    out: Path,
    board: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]] = (),
    changes: Sequence[Mapping[str, str]] | None = None,
    bar: str = "",
) -> list[Path]:
    """Write them; a file that was there is replaced as a whole. Returns the paths, the page's first."""
    texts = {out / PAGE: page(board, history, changes, bar), out / DATA: json.dumps(board, indent=1) + "\n"}
    for what, totals in board["totals"].items():
        for runner, counts in totals["runners"].items():
            if totals["tests"]:
                texts[out / BADGES / badge_name(what, runner)] = badge(
                    f"{runner} · {BADGE_TITLES[what]}",
                    f"{counts['pass']:,} of {totals['tests']:,}",
                    counts["pass"] / totals["tests"],
                )
    (out / BADGES).mkdir(exist_ok=True)
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


BADGE_TITLES = {"suite": "ONNX suite", "unknown": "unknown shapes", "dtypes": "dtypes"}


def badge_name(what: str, runner: str) -> str:
    """`torch.svg` for the suite, `torch-unknown.svg`, `torch-compile-dtypes.svg`."""
    safe = "".join(ch if ch.isalnum() or ch in "._-" else "-" for ch in runner)
    return f"{safe}.svg" if what == "suite" else f"{safe}-{what}.svg"
