"""What a published figure has to say about where it was measured."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe(*packages: str) -> str:
    """One line: date, processor, cores, Python, and the versions of the packages."""
    parts = [
        datetime.now(UTC).strftime("%Y-%m-%d"),
        f"{_processor()}, {os.cpu_count()} cores",
        f"Python {platform.python_version()}",
    ]
    return " · ".join(parts + [f"{package} {_version(package)}" for package in packages])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
