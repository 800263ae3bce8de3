"""Where a verification ran, for the report."""

from __future__ import annotations

import importlib.metadata
import platform
from functools import cache

from onward.backends.backend import backends
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.plugins.find import serving

PACKAGES = ("onward", "onnx", "onnxruntime", "openvino", "numpy")
"""Beside what backends are made for."""


def served_by(model: Model | None) -> list[str]:
    """The plugins whose ops a model has, a line each: they are code of others."""
    keys = () if model is None else {f"{node.domain}::{node.op_type}" for node in all_nodes(model.ir.graph)}
    return [f"plugin: {plugin}" for plugin in serving(keys)]


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
