"""What a published figure has to say about where it was measured."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from onward.version import __version__


def describe(*packages: str) -> str:
    """One line: date, processor, cores, Python, and the versions of the packages."""
    parts = [
        datetime.now(UTC).strftime("%Y-%m-%d"),
        f"{_processor()}, {os.cpu_count()} cores",
        f"Python {platform.python_version()}",
    ]
    return " · ".join(parts + [f"{package} {_version(package)}" for package in packages])


def put(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text, which has both marks itself, in the place of the one that a page has between them."""
    old = page.read_text(encoding="utf-8")
    before, rest = old.split(begin, 1)
    page.write_text(before + text + rest.split(end, 1)[1], encoding="utf-8")
    print(f"wrote {page}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str:
    if package == "onward":  # which may run from its source, and need not be installed
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def write_section(page: Path, title: str, lines: Sequence[str]) -> None:
    """Put a section in the place of the one that the page has, or at its end."""
    before, _, rest = page.read_text(encoding="utf-8").partition(f"## {title}\n")
    _, line, after = rest.partition("\n## ")
    before = before if rest else f"{before.rstrip()}\n\n"
    page.write_text("\n".join([f"{before}## {title}", "", *lines, ""]) + line + after, encoding="utf-8")
    print(f"wrote {title} in {page}")
