"""`onward --version`: what is installed, without importing it."""

from __future__ import annotations

import argparse
from typing import Any

from onward.advice.extras import EXTRAS, is_installed, titled, to_install
from onward.version import __version__

CORE = ("numpy", "onnx", "onnx_ir", "onnxruntime")
"""Packages that Onward always needs, as they are imported."""


def versions() -> list[str]:
    """A line for Onward, for Python, and for each package that is installed; one for each command that brings more."""
    import platform
    from importlib import metadata

    found = metadata.packages_distributions()
    here = [name for name in (*CORE, *EXTRAS) if name in found]
    lines = [f"onward {__version__}", f"python {platform.python_version()} ({platform.system()} {platform.machine()})"]
    lines += [f"{found[name][0].replace('_', '-')} {metadata.version(found[name][0])}" for name in here]
    absent = [name for name in EXTRAS if not is_installed(name) and EXTRAS[name] not in {EXTRAS.get(n) for n in here}]
    return [*lines, *(f"{titled(name)} is not installed: {to_install(name)}" for name in absent)]


class Version(argparse.Action):
    """Prints the versions and exits, as `--help` does."""

    def __init__(self, option_strings: list[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print("\n".join(versions()))
        parser.exit()
