"""What a check found, as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from onward.writing import write_text

if TYPE_CHECKING:
    from onward.verification.results import Report


def write_report(report: Report, path: Path | None) -> None:
    """A page, or JSON, where one is asked for."""
    if path is None:
        return
    if path.suffix == ".json":
        write_text(path, json.dumps(report.to_json(), indent=2))
    else:
        from onward.report.verify_page import write_page

        write_page(report, path)
