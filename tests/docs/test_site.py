"""The documentation builds as a site, every link in it leads somewhere, and reading it needs no network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "mkdocs.yml"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
OUTSIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
"""Pages that the site does not have, with links into it."""


def prose(page: Path) -> str:
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {slugify(title.replace("`", ""), "-") for title in titles}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    made = built(CONFIG, folder)
    assert made.returncode == 0, made.stderr
    return folder


def built(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: mkdocs counts warnings, which other tests may have silenced."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_site_builds_without_a_warning(site: Path) -> None:
    made = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert {page.relative_to(ROOT / "docs").with_suffix("") for page in PAGES} <= made


def test_reading_it_needs_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="?(?:https?:)?//', page.read_text()), page


@pytest.mark.parametrize("link", ["missing.md", "#missing", "index.md#missing", "/index.md"])
def test_a_broken_link_is_an_error(link: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# Title\n\n[somewhere]({link})\n")
    text = CONFIG.read_text()
    (tmp_path / "mkdocs.yml").write_text(text[: text.index("nav:\n  -")] + "nav: [index.md]\n")
    made = built(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert made.returncode == 1 and "WARNING -  Doc file 'index.md' contains" in made.stderr


@pytest.mark.parametrize("page", OUTSIDE, ids=lambda page: page.name)
def test_links_into_the_site_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", prose(page)):
        if "://" in target:
            continue
        found = page.parent / target if target else page
        assert found.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(found), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_lists_are_lists(page: Path) -> None:
    """Without an empty line before it, a list is part of the paragraph in the site, though not elsewhere."""
    wrong = re.findall(r"^(?![ \-*#|>\d<]).+\n(?=(?:[-*]|\d+\.) )", prose(page), re.MULTILINE)
    assert not wrong
