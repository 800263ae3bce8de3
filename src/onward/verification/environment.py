"""Where a verification ran, for the report."""

from __future__ import annotations

import importlib.metadata
import platform
from functools import cache

PACKAGES = ("onward", "onnx", "onnxruntime", "torch", "openvino", "tensorflow-cpu", "tensorflow", "jax", "numpy")


@cache
def environment() -> dict[str, str]:
    """Versions of what is installed, and the machine; nothing that names its user."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
