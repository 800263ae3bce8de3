"""Where a verification ran, for the report."""

from __future__ import annotations

import importlib.metadata
import platform
from functools import cache

from onward.backends.backend import backends

PACKAGES = ("onward", "onnx", "onnxruntime", "openvino", "numpy")
"""Beside what backends are made for."""


@cache
def environment() -> dict[str, str]:
    """Versions of what is installed, and the machine; nothing that names its user."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in (*PACKAGES, *(name for one in backends() for name in one.distributions or (one.package,))):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
