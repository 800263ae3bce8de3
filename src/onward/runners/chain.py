"""A model in parts, each on a runner of its own, run one after the other: what `onward partition` writes.

The folder has an ONNX file for each part, and `plan.json`, which says what each part takes, gives and runs on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from onward.errors import InvalidModelError
from onward.gate import harmless, opens, ordinary
from onward.model import Model, load
from onward.runners.calls import Inputs, Outputs, Run

PLAN = "plan.json"
SIGN = "onward.partition"
LARGEST_PLAN = 1 << 24
"""Bytes of a plan that are read."""
LONGEST_CHAIN = 10_000
"""Parts of a plan."""


@dataclass(frozen=True)
class Link:
    """A part of a chain."""

    file: str
    """Its name in the folder."""
    runner: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Chain:
    """Parts in the order in which they run, and what the whole takes and gives."""

    links: tuple[Link, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"format": SIGN, "version": 1, **asdict(self)}

    def runner(self, parts: Sequence[Run]) -> Run:
        """Runs the parts; a value is let go when no later part reads it."""
        last = {name: place for place, link in enumerate(self.links) for name in link.inputs}

        def run(inputs: Inputs) -> Outputs:
            values: dict[str, Any] = dict(inputs)
            for place, (link, part) in enumerate(zip(self.links, parts, strict=True)):
                values.update(part({name: values[name] for name in link.inputs if name in values}))
                for name in link.inputs:
                    if last[name] == place and name not in self.outputs:
                        values.pop(name, None)
            return {name: values[name] for name in self.outputs}

        return run


def is_chain(path: Path) -> bool:
    """Whether a folder holds a model in parts."""
    plan = path / PLAN
    return path.is_dir() and plan.is_file() and SIGN.encode() in ordinary(plan).open("rb").read(4096)


@opens(harmless)
def read_chain(path: Path) -> tuple[Chain, list[Model]]:
    """The plan of a folder, and its parts. A plan names files beside it only, and runs nothing."""
    chain = _chain(path / PLAN)
    return chain, [load(ordinary(path / link.file)) for link in chain.links]


def prepare_chain(path: Path, prepare: Callable[[str, Model], Run]) -> tuple[Chain, list[Model], Run]:
    """A folder, ready to run: each part is prepared on its runner."""
    chain, models = read_chain(path)
    return chain, models, chain.runner([prepare(link.runner, m) for link, m in zip(chain.links, models, strict=True)])


def _chain(path: Path) -> Chain:
    if ordinary(path).stat().st_size > LARGEST_PLAN:
        raise InvalidModelError(f"{path}: a plan has less than {LARGEST_PLAN >> 20} MB")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        links = tuple(_link(one, path) for one in found["links"][:LONGEST_CHAIN])
        return Chain(links, _names(found["inputs"]), _names(found["outputs"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InvalidModelError(f"{path}: it is damaged, or is no plan of `onward partition`: {error}") from error


def _link(one: Mapping[str, Any], path: Path) -> Link:
    file, runner = str(one["file"]), str(one["runner"])
    if Path(file).name != file or not file.endswith(".onnx"):
        raise InvalidModelError(f"{path}: the part {file!r} is no ONNX file beside the plan")
    return Link(file, runner, _names(one["inputs"]), _names(one["outputs"]))


def _names(given: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in list(given))
