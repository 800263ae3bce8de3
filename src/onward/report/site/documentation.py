"""The documentation as a part of a site: mkdocs builds it, with the bar and the colours of the other pages."""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from onward.errors import MissingPackageError, OnwardError
from onward.report.html import asset
from onward.report.navigation import Navigation

DOCS = "docs"
NEEDED = ("mkdocs", "material")
LONGEST = 600
FETCHES = re.compile(
    r"""<(?:script|img|iframe|source|link(?=[^>]*rel=["']?(?:stylesheet|preload|preconnect)))[^>]*?"""
    r"""(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""",
    re.IGNORECASE,
)
IN_STYLES = re.compile(r"""(?:@import\s+|url\()\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


def is_installed() -> bool:
    return all(find_spec(name) is not None for name in NEEDED)


def build(config: Path, out: Path, navigation: Navigation) -> None:
    """Write the pages of an mkdocs.yml to an empty folder. Refuses pages that would fetch anything from outside."""
    if not is_installed():
        raise MissingPackageError("mkdocs-material is not installed: pip install 'onward[docs]'")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.html").write_text(template(navigation), encoding="utf-8")
        # Of its own, as mkdocs and its plugins set up logging and warnings for a whole process.
        command = [sys.executable, "-c", BUILD, str(config), str(out.resolve()), folder]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        words = " ".join(made.stderr.split())[-LONGEST:]
        raise OnwardError(f"{config}: mkdocs cannot build it: {words or f'exit code {made.returncode}'}")
    if found := next(fetched(out), None):
        page, address = found
        raise OnwardError(f"{config}: {page} would fetch {address}: put a copy of it into the documentation")


BUILD = """
import sys
from mkdocs.commands.build import build
from mkdocs.config import load_config

config = load_config(sys.argv[1], site_dir=sys.argv[2])
config.theme.dirs.insert(0, sys.argv[3])
config.theme["font"] = False
build(config)
"""
"""What runs in the process of its own."""


def template(navigation: Navigation) -> str:
    """What is in the theme's place: its page, with the bar above it, and in our colours."""
    bar = navigation.bar("index.html", "Docs")
    bar = bar[bar.index("<nav") :]  # the theme has a way to skip it
    bar = re.sub(r'href="(?![a-z]+:)', 'href="{{ base_url }}/', bar)
    style = asset("navigation.css") + asset("documentation.css")
    return (
        '{% extends "base.html" %}\n'
        "{% block extrahead %}{{ super() }}<style>{% raw %}" + style + "{% endraw %}</style>{% endblock %}\n"
        "{% block header %}" + bar + "{{ super() }}{% endblock %}\n"
    )


def fetched(folder: Path) -> Iterator[tuple[str, str]]:
    """What pages and style sheets would load from other places than the site."""
    for pattern, ending in ((FETCHES, "*.html"), (IN_STYLES, "*.css")):
        for path in sorted(folder.rglob(ending)):
            for address in pattern.findall(path.read_text(encoding="utf-8", errors="replace")):
                yield str(path.relative_to(folder)), address


def about(folder: Path, start: str) -> list[tuple[str, str]]:
    """The pages of a built documentation whose path begins so: their titles and paths in it."""
    found = []
    for path in sorted(folder.glob(f"{start}*.html")):
        title = re.search(r"<h1[^>]*>(.*?)(?:<a|</h1>)", path.read_text(encoding="utf-8", errors="replace"), re.DOTALL)
        name = html.unescape(re.sub(r"<[^>]*>", "", title.group(1))).strip() if title else path.stem
        found.append((name, path.relative_to(folder).as_posix()))
    return found
