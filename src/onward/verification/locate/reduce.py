"""Writes the smallest model that still shows a difference: something to attach to a bug report."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import numpy_helper

from onward.errors import OnwardError, UnsupportedError
from onward.model import LARGEST_FILE, Model
from onward.runners.calls import Inputs, Outputs
from onward.verification.environment import environment
from onward.verification.locate.cut import dtype_of
from onward.verification.locate.judge import Verdict, errors, jittered_inputs, judge
from onward.verification.locate.pieces import Pieces, Side, Subject
from onward.verification.results import Culprit
from onward.writing import new_folder

DATA_SET = "test_data_set_0"
FILES = ("README.md", "model.onnx", "source.onnx", "other.onnx", "inputs.npz", DATA_SET, "expected.npz", "actual.npz")


def reduce(source: Subject, other: Subject, inputs: Inputs, culprit: Culprit, out: Path) -> Path:
    """Write the culprit as a model of its own to the folder `out`, and return the folder.

    There are `model.onnx`, or `source.onnx` and `other.onnx` where two models are compared, `inputs.npz` (or a test
    data set as ONNX has them, for what numpy cannot store), `expected.npz`, `actual.npz`, and `README.md`, which says
    how to see the difference.
    """
    pieces = Pieces(source, other)
    found = _smallest(pieces, inputs, culprit)
    if found is None:
        raise UnsupportedError(f"the difference at {culprit.node!r} does not show in a smaller model")
    models = {
        "source.onnx": _typed(found.model(pieces.source), found.outputs, found.expected),
        "other.onnx": _typed(found.model(pieces.other), found.outputs, found.actual),
    }
    if pieces.is_one_model:
        models = {"model.onnx": models["source.onnx"]}
    if any(model.nbytes > LARGEST_FILE for model in models.values()):
        raise UnsupportedError(f"the node {culprit.node!r} alone is larger than 2 GB")
    with new_folder(out, FILES) as staged:
        for name, model in models.items():
            model.save(staged / name, external_data=False)
        data = _write_inputs(staged, models, found.used(pieces.source))
        for name, values in (("expected", found.expected), ("actual", found.actual)):
            _write_arrays(staged / f"{name}.npz", values)
        text = _readme(source, other, culprit, found, list(models), data)
        (staged / "README.md").write_text(text, encoding="utf-8")
    return out


def _typed(model: Model, names: Iterable[str], results: Outputs) -> Model:
    """With types for outputs for which none follows from the graph; a file has to give them."""
    for value, name in zip(model.ir.graph.outputs, names, strict=True):
        found = results.get(name)
        if isinstance(found, np.ndarray):
            value.type = value.type or ir.TensorType(dtype_of(found))
            value.shape = value.shape if value.shape is not None else ir.Shape([None] * found.ndim)
    return model


def _write_inputs(out: Path, models: Mapping[str, Model], inputs: Inputs) -> str:
    """As `inputs.npz`, or where numpy has no such values as a folder of protobuf files; its name is returned."""
    if all(isinstance(value, np.ndarray) and value.dtype.kind in "biufc" for value in inputs.values()):
        _write_arrays(out / "inputs.npz", inputs)
        return "inputs.npz"
    folder = out / DATA_SET
    folder.mkdir()
    for position, value in enumerate(next(iter(models.values())).ir.graph.inputs):
        given, name = inputs[value.name or ""], value.name or ""
        is_list = isinstance(given, list | tuple)
        made = numpy_helper.from_list(given, name) if is_list else numpy_helper.from_array(np.asarray(given), name)
        (folder / f"input_{position}.pb").write_bytes(made.SerializeToString())
    return folder.name


def _write_arrays(path: Path, values: Outputs) -> None:
    """As `numpy.savez` does, which cannot take a value called 'file'."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in _arrays(values):
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


@dataclass(frozen=True)
class _Case:
    """A piece of both models, what it is fed, and what comes out."""

    outputs: tuple[str, ...]
    feeds: Inputs
    expected: Outputs
    actual: Outputs
    failure: str
    verdict: Verdict

    def model(self, side: Side) -> Model:
        return side.piece(self.outputs, self.feeds)

    def used(self, side: Side) -> Inputs:
        """Those of the feeds that the piece takes."""
        return {value.name or "": self.feeds[value.name or ""] for value in self.model(side).ir.graph.inputs}


def _smallest(pieces: Pieces, inputs: Inputs, culprit: Culprit) -> _Case | None:
    """The culprit by itself if it shows the difference, else with all that comes before it; then less of the data."""
    for stop in (_reads(pieces, culprit), []):
        try:
            values = pieces.source.prepare(stop, inputs)(inputs) if stop else {}
            case = _case(pieces, culprit.outputs, {**inputs, **values})
        except OnwardError:
            continue
        if case is not None:
            return _with_less_data(pieces, _with_one_output(pieces, case))
    return None


def _reads(pieces: Pieces, culprit: Culprit) -> list[str]:
    """The values that the culprit's nodes take from others."""
    cutter = pieces.source.cutter
    inner = _nodes(pieces, culprit)
    made = {value for node in inner for value in node.outputs}
    used = dict.fromkeys(value for node in inner for value in cutter.reads(node))
    return [v.name for v in used if v.name and v in cutter.varying and v not in made and v.producer() is not None]


def _nodes(pieces: Pieces, culprit: Culprit) -> list[ir.Node]:
    """The nodes that a culprit stands for: as many as its ops, up to the last that makes one of its outputs."""
    made = {name: i for i, node in enumerate(pieces.nodes) for name in (v.name for v in node.outputs)}
    last = max(made[name] for name in culprit.outputs)
    return pieces.nodes[max(last + 1 - len(culprit.op.split(" + ")), 0) : last + 1]


def _case(pieces: Pieces, outputs: Iterable[str], feeds: Inputs) -> _Case | None:
    """The two sides on `feeds`, if they differ."""
    outputs = tuple(pieces.shared(outputs))
    run = pieces.source.prepare(outputs, feeds)
    expected = run(feeds)
    try:
        actual = pieces.other.prepare(outputs, feeds)(feeds)
    except OnwardError as error:
        return _Case(outputs, feeds, expected, {}, str(error), Verdict(math.inf, 0.0))
    verdicts = judge(expected, actual)
    if any(verdict.differs for verdict in verdicts.values()):
        verdicts = judge(expected, actual, errors(expected, run(jittered_inputs(feeds))))
    worst = max(verdicts.values(), key=lambda verdict: verdict.ratio)
    return _Case(outputs, feeds, expected, actual, "", worst) if worst.differs else None


def _with_one_output(pieces: Pieces, case: _Case) -> _Case:
    if len(case.outputs) > 1:
        for name in case.outputs:
            smaller = _attempt(pieces, (name,), case.feeds)
            if smaller is not None:
                return smaller
    return case


def _with_less_data(pieces: Pieces, case: _Case) -> _Case:
    """Halve the batch, as long as the difference shows."""
    batch = _batch(case.used(pieces.source))
    while batch > 1:
        halves = (slice(0, (batch + 1) // 2), slice((batch + 1) // 2, batch))
        tries = (_attempt(pieces, case.outputs, _sliced(case, pieces, batch, half)) for half in halves)
        smaller = next((found for found in tries if found is not None and not found.failure), None)
        if smaller is None or case.failure:
            break
        case = smaller
        batch = _batch(case.used(pieces.source))
    return case


def _attempt(pieces: Pieces, outputs: tuple[str, ...], feeds: Inputs) -> _Case | None:
    try:
        return _case(pieces, outputs, feeds)
    except OnwardError:
        return None


def _batch(feeds: Inputs) -> int:
    """The first dimension, if all inputs have it in common; else 1."""
    sizes = {np.shape(value)[0] if np.ndim(value) else 0 for value in feeds.values() if isinstance(value, np.ndarray)}
    return sizes.pop() if len(sizes) == 1 and len(feeds) else 1


def _sliced(case: _Case, pieces: Pieces, batch: int, part: slice) -> Inputs:
    return {name: value[part] for name, value in case.used(pieces.source).items()}


def _arrays(values: Outputs) -> Iterator[tuple[str, Any]]:
    """By name; the elements of a sequence as `name[0]`, `name[1]`, …"""
    for name, value in values.items():
        if isinstance(value, list | tuple):
            yield from _arrays({f"{name}[{i}]": item for i, item in enumerate(value)})
        elif value is not None:
            array = np.asarray(value)
            yield name, array.astype(str) if array.dtype == object else array


def _readme(source: Subject, other: Subject, culprit: Culprit, found: _Case, files: list[str], data: str) -> str:
    single = len(files) == 1
    what = f"`{files[0]}` on {source.runner} and on {other.runner}" if single else "`source.onnx` and `other.onnx`"
    difference = found.failure or f"error {found.verdict.error:.3g}, where {found.verdict.allowed:.3g} is allowed"
    command = f"onward verify {' '.join(files)} --inputs {data}"
    lines = [
        f"# {culprit.op} {culprit.node!r} differs",
        "",
        f"{what}, fed `{data}`, give `expected.npz` and `actual.npz`: {difference} in {', '.join(found.outputs)}.",
        *([f"{culprit.how[0].upper()}{culprit.how[1:]}."] if culprit.how else []),
        "```",
        f"{command} --on {source.runner},{other.runner}" if single else command,
        "```",
        *(f"- {name}: {version}" for name, version in environment().items()),
    ]
    return "\n".join(lines) + "\n"
