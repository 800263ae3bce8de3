"""The files of a generated MATLAB package, and how they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

from onward.backends.emit.package import Source
from onward.backends.matlab import matfile
from onward.backends.matlab.language import FUNCTIONS, KEYWORDS
from onward.errors import OnwardError
from onward.gate import remember
from onward.writing import MANIFEST, check_unedited, new_folder, write_manifest

PACKAGE = "\x01"
"""Stands for the name of the package, which is that of its folder; nothing else in the code has this character."""
RUNTIME = "onward.backends.matlab.runtime"
FILES = ("model.m", "load.m", "params.mat", "interface.json", "predict_image.m", "README.md", "+ops", MANIFEST)
PLAIN_NAME = "net"
TAKEN = (KEYWORDS | FUNCTIONS | {"image", "model"}) - {PLAIN_NAME}
"""Names that MATLAB has functions of, or the package itself."""

LOAD = """function params = load()
%LOAD  The parameters of the model, which model() takes.
%
%   params = {package}.load()

folder = fileparts(mfilename('fullpath'));
found = builtin('load', '-mat', fullfile(folder, 'params.mat'));
params = found.params;
end
"""


@dataclass(frozen=True)
class MatlabSource(Source):
    """A generated package: `template` is the text of model.m, in which `PACKAGE` stands for its name."""

    template: str = ""
    helpers: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[dict[str, Any], ...] = ()
    outputs: tuple[dict[str, Any], ...] = ()
    image: str = ""
    """The text of predict_image.m, where the input is an image."""
    readme: str = ""


def package_name(folder: Path | None) -> str:
    """The name by which MATLAB knows a package in a folder."""
    if folder is None:
        return PLAIN_NAME
    text = folder.name
    rule = f"{folder}: the folder of a MATLAB package is named + and an identifier"
    if not re.fullmatch(r"\+[A-Za-z][A-Za-z0-9_]{0,62}", text):
        plain = re.sub(r"\W", "_", text).strip("_")
        raise OnwardError(f"{rule}, such as +{PLAIN_NAME if plain in TAKEN or not plain else plain}")
    if text[1:] in TAKEN:
        raise OnwardError(f"{rule}; {text[1:]} means something else to MATLAB: take another, such as +{PLAIN_NAME}")
    return text[1:]


@cache
def runtime() -> dict[str, str]:
    """The text of every helper, by name."""
    found: dict[str, str] = {}
    families = [folder for folder in resources.files(RUNTIME).iterdir() if folder.is_dir()]
    for file in (file for folder in families for file in folder.iterdir() if file.name.endswith(".m")):
        name = file.name.removesuffix(".m")
        if name in found:
            raise ValueError(f"two helpers are called {name}")
        found[name] = file.read_text("utf-8")
    return found


CALL = re.compile(r"\bops\.(\w+)")


def needed(helpers: set[str]) -> tuple[str, ...]:
    """The helpers, and those that they call."""
    known, pending = set[str](), list(helpers)
    while pending:
        name = pending.pop()
        if name not in known:
            known.add(name)
            pending += CALL.findall(_code(runtime()[name]))
    return tuple(sorted(known))


def _code(text: str) -> str:
    return re.sub(r"(?m)^\s*%.*$", "", text)


def files(source: MatlabSource, package: str) -> dict[str, Callable[[BinaryIO], object]]:
    """What writes each file of a package of this name."""

    def text(content: str) -> Callable[[BinaryIO], object]:
        return lambda file: file.write(content.replace(PACKAGE, package).encode())

    interface = {"title": "a MATLAB model", "inputs": source.inputs, "outputs": source.outputs}
    found = {
        "model.m": text(source.template),
        "load.m": text(LOAD.replace("{package}", package)),
        "params.mat": lambda file: matfile.write(file, {"params": source.params}),
        "interface.json": text(json.dumps(interface, indent=2) + "\n"),
        "README.md": text(source.readme),
    }
    if source.image:
        found["predict_image.m"] = text(source.image)
    for name in source.helpers:
        found[f"+ops/{name}.m"] = text(CALL.sub(f"{PACKAGE}.ops.\\1", runtime()[name]))
    return found


def write_files(source: MatlabSource, folder: Path, package: str) -> None:
    """Write all files into a folder that is there."""
    for name, write in files(source, package).items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            write(file)


def write_package(source: MatlabSource, folder: Path, *, force: bool = False) -> Path:
    """Write the package into its folder: all files, or nothing."""
    package = package_name(folder)
    check_unedited(folder, FILES, force)
    with new_folder(folder, FILES) as staged:
        write_files(source, staged, package)
        write_manifest(staged)
        for path in sorted(staged.rglob("*.m")):
            remember(path.read_bytes())
    return folder
