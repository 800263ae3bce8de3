"""Results that somebody made to break the pages, or that were damaged, break nothing."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import zoo_samples as samples

from onward.report.zoo import history
from onward.report.zoo.changes import changes
from onward.report.zoo.names import writable
from onward.report.zoo.site import write
from onward.report.zoo.summary import markdown
from onward.zoo.results import read, record

EVIL = "<b id=evil>&\"'`|\n\u202e\0\ud800--></script><script>alert(1)</script>"


def changed(**fields: Any) -> list[dict[str, Any]]:
    """A model and cells of it, with these values wherever there is such a field."""
    net = samples.facts("net")
    records = [record(net), *(record(samples.cell(net, target)) for target in ("torch", "train", "peer:x"))]
    return [one | {name: value for name, value in fields.items() if name in one} for one in records]


NUMBERS = ("error", "allowance", "seconds", "verify_seconds", "peak_mb", "speed", "limit_seconds", "limit_mb")
COUNTS = ("nodes", "size_bytes", "transposes", "parameters")
TEXTS = (
    "message",
    "first_node",
    "versions",
    "machine",
    "when",
    "source",
    "format",
    "task",
    "licence",
    "package",
    "opset",
)
FIELDS = [
    *(dict.fromkeys(NUMBERS, value) for value in (float("nan"), float("inf"), -1.0, 0.0, 1e308, "x", [1], None)),
    *(dict.fromkeys(COUNTS, value) for value in (10**400, -5, "x", float("nan"), None)),
    dict.fromkeys(TEXTS, EVIL),
    dict.fromkeys(TEXTS, 7),
    {"model": EVIL, "target": EVIL, "sha256": EVIL},
    {"model": "", "target": ""},
    {"model": "x" * 100_000, "message": "y" * 100_000, "target": "z" * 10_000},
    {"ops": {EVIL: 3, "": 1, "index": 2}, "inputs": [{"name": EVIL, "type": EVIL, "shape": [EVIL, -1, None]}]},
    {"ops": {"Conv": "many"}},
    {"ops": [1], "inputs": 3, "graph": "x"},
    {"graph": {"layers": [[EVIL], ["a"] * 3000], "edges": [[0, 1], [1, 0], [0, 10**9], [-1, 2]]}},
    {"verdict": "timeout", "limit_seconds": float("nan")},
]


@pytest.mark.parametrize("fields", FIELDS, ids=range(len(FIELDS)))
def test_pages_are_written_and_hold_nothing_of_it_as_html(fields: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in changed(**fields)))
    found = writable(read(file))
    out = tmp_path / "site"
    out.mkdir()
    write(out, found, history.with_run(history.with_run([], samples.small()), found), changes(found, found))
    markdown(found).encode()
    for page in out.rglob("*.html"):
        text = page.read_text()
        assert "<b id=evil" not in text and "<script>alert" not in text, page
        assert len(re.findall("<script", text)) <= 3
