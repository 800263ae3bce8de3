"""A model converted to one target: what becomes of it, as a cell of the results."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onward.advice.extras import missing_packages
from onward.advice.options import option
from onward.backends.backend import formats
from onward.conversion.convert import Conversion, converted
from onward.conversion.progress import Progress
from onward.conversion.request import Request
from onward.conversion.sources import Original
from onward.errors import OnwardError, UnsupportedError
from onward.formats import in_numbers, open_artifact
from onward.gate.budget import within
from onward.graph.slots import slots
from onward.graph.walk import all_nodes
from onward.model import Model, load
from onward.runners.calls import Run
from onward.runners.onnxruntime import on_threads
from onward.verification.check import attempted, verdict
from onward.verification.data.sets import data_sets
from onward.verification.results import Report
from onward.verification.verify import verify
from onward.zoo.facts import made
from onward.zoo.found import Found, raised
from onward.zoo.results import Verdict
from onward.zoo.speed import THREADS, ratio

ONNX = "onnx"
READING, GENERATING, VERIFYING, WRITING = 1, 2, 3, 4
"""Steps of a conversion, as `Progress` numbers them."""
ON = {"tflite": "tensorflow:tflite"}
"""By target, the runner that the first differing node is looked for on, where that is not called as the target is."""
VERDICTS: dict[str, Verdict] = {"verified": "same", "not the same": "same", "different": "different"}
"""What a check says, as a cell does; anything else is not verified."""
FIXED = frozenset({"tflite"})
"""Targets that refuse many models as they are: what they advise is tried then, and sizes that are fixed."""
SHARE = 0.5
"""Of the time that is left: what the search for a node may take."""


class Watched(Progress):
    """What a conversion comes to, and how long each step takes."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys((READING, GENERATING, VERIFYING, WRITING), 0.0)
        self.original: Original | None = None
        self.report: Report | None = None
        self.run: Run | None = None

    @contextmanager
    def step(self, number: int, seconds: float | None = None, what: str = "") -> Iterator[None]:
        began = time.perf_counter()
        try:
            with super().step(number, seconds, what):
                yield
        finally:
            self.seconds[number] += time.perf_counter() - began

    def read(self, original: Original) -> None:
        self.original = original

    def compared(self, report: Report, run: Run | None = None) -> None:
        self.report, self.run = report, run


def conversion(path: Path, target: str, folder: Path, seconds: float) -> Found:
    """A model, converted, verified and measured, which may take so long in all."""
    end = time.monotonic() + seconds
    watched, found = Watched(), Found()
    out = folder / _file_name(target)
    try:
        with missing_packages():
            _convert(path, target, out, seconds, watched, found)
    except Exception as error:  # whatever a defect raises
        found.verdict, found.message = raised(error)
    found.model = None if watched.original is None else watched.original.model
    if watched.report is not None:
        found.facts |= errors(watched.report)
    if found.verdict == "refused" and found.model is not None:
        found.facts["first_node"] = _named(found.message, found.model)
    took = watched.seconds
    if found.verdict in ("same", "different", "not verified"):
        found.facts |= {
            "seconds": round(took[READING] + took[GENERATING] + took[WRITING], 3),
            "verify_seconds": round(took[VERIFYING], 3),
        }
    if found.verdict == "different" and found.model is not None and not found.facts.get("first_node"):
        found.facts["first_node"] = _first_difference(found.model, target, SHARE * (end - time.monotonic()))
    if out.exists():
        written = made(out, target)
        found.facts |= {
            "nodes": written.nodes,
            "size_bytes": written.size_bytes,
            "transposes": written.transposes,
            "source": written.source,
        }
        if found.verdict in ("same", "different") and end - time.monotonic() > SHARE * seconds:
            found.facts["speed"] = _speed(watched, target, out)
    return found


def _file_name(target: str) -> str:
    if target == ONNX:
        return "result.onnx"
    form = formats()[target][1]
    return f"{form.prefix}result{form.suffix}"


def _convert(path: Path, target: str, out: Path, seconds: float, watched: Watched, found: Found) -> None:
    if target == ONNX and path.suffix == ".onnx":
        decided, fixed = _saved_again(path, out, watched), ""
    else:
        request = Request(source=path, to=target, out=out, keep=True, timeout=2 * seconds)
        try:
            done, fixed = converted(request, watched), ""
        except UnsupportedError as error:
            done, fixed = _advised(request, watched, error)
        decided = next((one for one in done.decided if one.status != "verified"), done.decided[-1])
    found.verdict = VERDICTS.get(decided.status, "not verified")
    found.message = f"{fixed}{decided.words}{f'; {decided.warning}' if decided.warning else ''}"
    if found.verdict == "different" and watched.report is not None and watched.report.failure:
        found.verdict = "failed"


def _advised(request: Request, watched: Watched, refusal: UnsupportedError) -> tuple[Conversion, str]:
    """As a user would who follows what a refusal says, and in words what that changed.

    Where that is refused as well, the refusal is what it was.
    """
    if request.to not in FIXED:
        raise refusal
    sizes = _sizes(watched.original)
    ways: list[dict[str, Any]] = [{"dims": sizes}] if sizes else []
    if option("cast", "up") in str(refusal):
        ways = [{"cast": "up"}, *({"cast": "up"} | way for way in ways)]
    for way in ways:
        told = [f"{name}={size}" for name, size in way.get("dims", {}).items()]
        told += [option("cast", "up")] if "cast" in way else []
        try:
            return converted(replace(request, **way), watched), f"with {', '.join(told)}: "
        except OnwardError:
            continue
    raise refusal


def _sizes(original: Original | None) -> dict[str, int]:
    """A size for each dynamic dimension of the inputs: those of the first set of inputs that a check would take."""
    if original is None:
        return {}
    dims = [(slot.name, axis, dim) for slot in slots(original.model.ir) for axis, dim in enumerate(slot.dims)]
    named = [(name, axis, dim) for name, axis, dim in dims if isinstance(dim, str)]
    known = {
        dim.value for value in original.model.ir.graph.inputs for dim in value.shape or () if not isinstance(dim, int)
    }
    try:
        sets = data_sets(original.model, inputs=original.inputs, regimes=("random",), sizes=1)
        feeds = next(sets).inputs if named else {}
    except OnwardError:
        return {}
    return {dim: np.shape(feeds[name])[axis] for name, axis, dim in named if name in feeds and dim in known}


def _saved_again(path: Path, out: Path, watched: Watched) -> Any:
    """ONNX to ONNX: what is read is written, and run beside the file."""
    with watched.step(READING):
        model = load(path)
    watched.read(Original(model))
    with watched.step(WRITING):
        model.save(out)
    with watched.step(VERIFYING):
        report = attempted(lambda: verify(path, [out]), str(path), str(path))
    watched.compared(report)
    return verdict(report)


def errors(report: Report) -> dict[str, Any]:
    """Of the output that is nearest to its tolerance, or furthest beyond it, the pair that decides."""
    worst = report.worst
    if worst is None:
        return {}
    pairs = ((worst.metrics.worst, worst.tolerance.worst), (worst.metrics.overall, worst.tolerance.overall))
    error, allowed = max(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] else math.inf * bool(pair[0]) or 0.0)
    culprit = next((side.culprit for side in report.sides if side.culprit is not None), None)
    known: dict[str, Any] = {} if culprit is None else {"first_node": f"{culprit.op} '{culprit.node}'"}
    return known | {"error": _finite(error), "allowance": _finite(allowed)}


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _named(message: str, model: Model) -> str:
    """The node that a refusal names."""
    ops = {node.op_type for node in all_nodes(model.ir.graph)}
    found = ((op, name) for op, name in re.findall(r"([\w.]+) '([^']*)'", message) if op.rpartition(".")[2] in ops)
    return next((f"{op} '{name}'" for op, name in found), "")


def _first_difference(model: Model, target: str, seconds: float) -> str:
    """The node of the ONNX model at which the target parts from ONNX Runtime, where that is found in time."""
    if target == ONNX or seconds <= 1:
        return ""
    try:
        with within(seconds, "the search for a node"):
            report = verify(model, ON.get(target, target), bisect=True, quick=True, arbitrate=False)
    except OnwardError:
        return ""
    return str(errors(report).get("first_node", ""))


def _speed(watched: Watched, target: str, out: Path) -> float | None:
    original, run = watched.original, watched.run
    if original is None:
        return None
    try:
        if target == ONNX:
            run = on_threads(load(out), THREADS)
        elif not formats()[target][1].runs_source:  # what was checked has been moved since
            run = in_numbers(open_artifact(out))
        found = None if run is None else ratio(run, original)
    except Exception:  # a runtime may raise anything at all; the verdict stands
        return None
    return None if found is None else round(found, 3)
