"""What to install for a framework that is missing."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from onward.errors import MissingPackageError

EXTRAS = {
    "PIL": "images",
    "ai_edge_litert": "tensorflow",
    "flatbuffers": "tensorflow",
    "h5py": "tensorflow",
    "iree": "iree",
    "jax": "jax",
    "joblib": "sklearn",
    "keras": "tensorflow",
    "lightgbm": "boosting",
    "matplotlib": "plots",
    "mpi4py": "mpi",
    "narwhals": "dataframe",
    "onnxruntime_extensions": "extensions",
    "onnxscript": "torch",
    "openvino": "openvino",
    "pandas": "dataframe",
    "polars": "dataframe",
    "pyarrow": "dataframe",
    "ray": "ray",
    "scipy": "sklearn",
    "skl2onnx": "sklearn",
    "sklearn": "sklearn",
    "skops": "sklearn",
    "tensorflow": "tensorflow",
    "torch": "torch",
    "xgboost": "boosting",
}
"""By package, as it is imported: what of `onward[…]` brings it."""
TITLES = {
    "PIL": "Pillow",
    "ray": "Ray",
    "sklearn": "scikit-learn",
    "ai_edge_litert": "LiteRT",
    "torch": "PyTorch",
    "jax": "JAX",
    "iree": "IREE",
    "onnxruntime_extensions": "onnxruntime-extensions",
}
"""What packages are called, where that is not how they are imported."""


PROGRAMS = {"octave": ("octave-cli", "GNU Octave", "apt-get install octave libopenblas0")}
"""What is no Python package: the command, what it is called, and what brings it on Debian."""


def titled(package: str) -> str:
    return PROGRAMS[package][1] if package in PROGRAMS else TITLES.get(package, package)


def to_install(package: str) -> str:
    """The command that brings a package."""
    root = package.partition(".")[0]
    if root in PROGRAMS:
        return PROGRAMS[root][2]
    return f"pip install 'onward[{EXTRAS[root]}]'" if root in EXTRAS else f"pip install {root}"


def is_installed(package: str) -> bool:
    """Whether it can be found; it is not imported."""
    if package in PROGRAMS:
        return shutil.which(PROGRAMS[package][0]) is not None
    return importlib.util.find_spec(package) is not None


def program_version(program: str) -> str:
    """The version of one of `PROGRAMS`, which it says itself; '' where it is not installed."""
    command = shutil.which(PROGRAMS[program][0])
    if command is None:
        return ""
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else ""


def missing(package: str, what: str = "") -> MissingPackageError:
    """The error for a package that is not there; `what` is in need of it, such as 'net.skops'."""
    start = f"{what}: " if what else ""
    return MissingPackageError(f"{start}{titled(package)} is not installed: {to_install(package)}")


def require(*packages: str, what: str = "") -> None:
    """Fail with a word on what to install, unless every one of these packages is there."""
    for package in packages:
        if not is_installed(package):
            raise missing(package, what)


@contextmanager
def missing_packages() -> Iterator[None]:
    """Inside, the import of a framework that is not there fails with a word on what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        root = (error.name or "").partition(".")[0]
        if root not in EXTRAS or is_installed(root):
            raise
        raise missing(root) from error
