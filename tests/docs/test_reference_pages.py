"""The pages of commands and public names say what the package itself says today."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import onward

ROOT = Path(__file__).parents[2]
MADE = runpy.run_path(str(ROOT / "docs/reference/pages.py"))
PAGES = MADE["PAGES"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_fresh(page: Path) -> None:
    assert page.read_text() == PAGES[page](), "run `make coverage`"


def test_every_public_name_and_command_has_a_section() -> None:
    python, commands = MADE["python_page"](), MADE["cli_page"]()
    assert [name for name in onward.__all__ if f"\n## {name}\n" not in python] == []
    assert [name for name in onward.training.__all__ if f"\n| `{name}` |" not in python] == []
    assert [name for name in onward.cli.COMMANDS if f"\n## onward {name}\n" not in commands] == []
    assert "| `--trust` |" in commands and "\n## onward train prepare\n" in commands
