"""What is kept of models and of their conversions: a JSON object a line, read back as dataclasses."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from onward.engine.store import records
from onward.errors import OnwardError

Verdict = Literal["same", "different", "not verified", "refused", "failed", "crash", "timeout", "out of memory"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""`not verified`: converted, but nothing to compare; `refused`: an error that says why; `failed`: one that was not
expected, or a result that does not run."""

TARGETS = ("torch", "tensorflow", "keras", "tflite", "jax", "onnx")
"""Those that are tried where none are named."""
ASKED = ("matlab",)
"""Those that are tried where they are named: their results are run by a program that pip does not install."""
TRAIN = "train"
"""The target of a cell about training."""
LONGEST_SOURCE = 60_000
"""Characters that are kept of generated source."""


@dataclass(frozen=True)
class Slot:
    """An input or output."""

    name: str
    type: str
    """As ONNX writes it: `tensor(float)`."""
    shape: tuple[int | str | None, ...] | None = None
    """Sizes, their names, or None where there is neither; None altogether where the rank is not known."""


@dataclass(frozen=True)
class Outline:
    """A small picture of a graph: boxes in layers from the inputs down, and what flows between them."""

    layers: tuple[tuple[str, ...], ...] = ()
    """In each box an op; `Conv ×12` stands for a run of nodes."""
    edges: tuple[tuple[int, int], ...] = ()
    """From box to box, numbered through all layers."""


@dataclass(frozen=True)
class ModelFacts:
    """A model, whatever it is converted to."""

    model: str
    sha256: str
    """Of the file; of a folder, of its files and their names."""
    format: str = ""
    """onnx, tflite, savedmodel, keras, h5, pt2, skops, xgboost, lightgbm, …"""
    task: str = ""
    licence: str = ""
    package: str = ""
    """Where it was published: `magika==1.0.3`."""
    size_bytes: int = 0
    opset: str = ""
    """`ai.onnx=17`, several separated by semicolons."""
    inputs: tuple[Slot, ...] = ()
    outputs: tuple[Slot, ...] = ()
    ops: Mapping[str, int] = field(default_factory=dict)
    """How often; an op of another domain as `com.microsoft::X`."""
    nodes: int = 0
    parameters: int = 0
    graph: Outline = Outline()


@dataclass(frozen=True)
class Cell:
    """A model on a target."""

    model: str
    sha256: str
    target: str
    """One of `TARGETS`, `train`, or another converter as `peer:onnx2torch`."""
    versions: str
    """Of all that the result depends on: `onward 0.1.0 (digest), torch 2.13.0, …`."""
    verdict: Verdict
    message: str = ""
    """One sentence."""
    explained: str = ""
    """What somebody found who looked into it."""
    first_node: str = ""
    """The original name and op of the first node that differs, or that is refused."""
    error: float | None = None
    """The worst of all outputs, relative."""
    allowance: float | None = None
    """What was allowed of it, after the model's own noise."""
    seconds: float | None = None
    """Of the conversion."""
    verify_seconds: float | None = None
    peak_mb: float | None = None
    """The most memory that the process took."""
    nodes: int | None = None
    """Of the result: nodes of a graph, calls of generated source."""
    size_bytes: int | None = None
    transposes: int | None = None
    speed: float | None = None
    """Time of the result ÷ time of the source in its own runtime."""
    source: str = ""
    """The generated `model.py`, cut at `LONGEST_SOURCE`."""
    limit_seconds: float | None = None
    limit_mb: float | None = None
    when: str = ""
    """ISO 8601."""
    machine: str = ""
    retry: bool = False
    """Whether it is the machine's fault (no network, a full disk): the next run tries again."""

    @property
    def key(self) -> tuple[str, str]:
        return self.model, self.target


@dataclass(frozen=True)
class Results:
    """All of a run: the latest of each model and target."""

    models: Mapping[str, ModelFacts] = field(default_factory=dict)
    cells: Mapping[tuple[str, str], Cell] = field(default_factory=dict)
    """By model and target."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Those of Onward first, in their order."""
        known = (*TARGETS, *ASKED, TRAIN)
        found = dict.fromkeys(target for _, target in self.cells)
        return (*(name for name in known if name in found), *sorted(found.keys() - set(known)))

    def of(self, model: str) -> dict[str, Cell]:
        """The cells of a model by target."""
        return {target: cell for target in self.targets if (cell := self.cells.get((model, target))) is not None}


Kept = ModelFacts | Cell
KINDS: dict[str, type[Kept]] = {"model": ModelFacts, "cell": Cell}


def record(kept: Kept) -> dict[str, Any]:
    """As it is stored."""
    kind = next(name for name, cls in KINDS.items() if isinstance(kept, cls))
    return {"kind": kind} | asdict(kept)


def kept_of(stored: Mapping[str, Any]) -> Kept | None:
    """Back from a record; None for what is none of ours. Fields of a later version are left out."""
    cls = KINDS.get(str(stored.get("kind", "")))
    if cls is None:
        return None
    try:
        return _made(cls, stored)
    except (TypeError, ValueError, KeyError, AttributeError):
        return None


def read(path: Path) -> Results:
    """The results in a file, or in `results.jsonl` of a folder; lines that are cut off are left out."""
    file = path / "results.jsonl" if path.is_dir() else path
    try:
        file.stat()
        return gathered(records(file))
    except OSError as error:
        raise OnwardError(f"{file}: cannot be read: {error.strerror or error}") from error


def gathered(records: Iterable[Mapping[str, Any]]) -> Results:
    """Later ones replace earlier ones."""
    models: dict[str, ModelFacts] = {}
    cells: dict[tuple[str, str], Cell] = {}
    for stored in records:
        match kept_of(stored):
            case ModelFacts() as facts:
                models[facts.model] = facts
            case Cell() as cell:
                cells[cell.key] = cell
    return Results(models, cells)


def without_source(cell: Cell) -> Cell:
    return replace(cell, source="")


T = TypeVar("T")
SIMPLE: dict[Any, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float)}
"""What may stand in a file for a field of a type."""
LARGEST = 2**63 - 1


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _made(cls: type[T], stored: Mapping[str, Any]) -> T:
    """A dataclass of a record: lists become tuples, and objects dataclasses, as the fields say."""
    made: Any = cls
    return cls(**{name: _value(hint, stored[name]) for name, hint in _hints(made).items() if name in stored})


def _value(hint: Any, value: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        others = [arg for arg in get_args(hint) if arg is not type(None)]
        if value is None:
            return None
        return _value(type(value) if type(value) in others else others[0], value)
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        each = inner[:1] * len(value) if inner[-1] is ... else inner
        return tuple(_value(kind, item) for kind, item in zip(each, value, strict=True))
    if get_origin(hint) is Mapping:
        return {str(name): _value(get_args(hint)[1], item) for name, item in value.items()}
    if hasattr(hint, "__dataclass_fields__"):
        return _made(hint, value)
    if hint in SIMPLE and type(value) not in SIMPLE[hint]:
        raise ValueError(value)
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        raise ValueError(value)
    if get_origin(hint) is Literal and value not in get_args(hint):
        raise ValueError(value)
    return value
