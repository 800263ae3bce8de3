"""What a worker process does: one test on one runner."""

from __future__ import annotations

import contextlib
import importlib
import os
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx

from onward.advice.extras import PROGRAMS
from onward.backends.backend import backend, names
from onward.engine.jobs import Work
from onward.errors import OnwardError
from onward.runners import find
from onward.scoreboard import dtypes, suite
from onward.scoreboard.dtypes import Cell
from onward.scoreboard.store import Status, What
from onward.scoreboard.types import leaf
from onward.verification.compare import compare, differences

DOUBLE = ("double", "complex128")
LONGEST = 300
"""Characters of a message."""


@dataclass(frozen=True)
class Job:
    runner: str
    what: What
    test: str
    cell: Cell | None = None


@dataclass(frozen=True)
class Making:
    """All cells of an op, or with a cell, an answer for it from ONNX Runtime."""

    op: str
    opset: int
    cell: Cell | None = None


def begin(job: Job) -> None:
    """Import what the runner needs, and let it use one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    package = find(job.runner)[0].package
    if package not in PROGRAMS:
        importlib.import_module(package)
    if (name := job.runner.partition(":")[0]) in names():
        backend(name).use_threads(1)
    if job.what != "dtypes":
        suite.cases()


def do(job: Job) -> tuple[Status, str]:
    if job.cell is not None:
        return _run_cell(job.cell, job.runner)
    found = suite.run_case(suite.cases()[job.test], partial(suite.prepare, job.runner), job.what == "unknown")
    status: dict[str, Status] = {"pass": "pass", "fail": "wrong", "error": "refused"}
    return status[found.outcome], _brief(found.message)


def _brief(message: str) -> str:
    return " ".join(message.removeprefix("RunFailure: ").removeprefix("UnsupportedError: ").split())[:LONGEST]


def _run_cell(cell: Cell, runner: str) -> tuple[Status, str]:
    model = onnx.load_from_string(cell.model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = suite.prepare(runner, model)(list(cell.inputs))
    except OnwardError as error:
        return "refused", _brief(str(error))
    names = [info.name for info in model.graph.output]
    expected, actual = (dict(zip(names, some, strict=True)) for some in (cell.expected, values))
    if not (wrong := differences(compare(expected, actual, cell.noise))):
        return "pass", ""
    single = all(output.status == "same" for output in compare(expected, actual, dict.fromkeys(names, dtypes.SINGLE)))
    return "imprecise" if single and leaf(cell.type) in DOUBLE else "wrong", _brief("; ".join(wrong))


def make(making: Making) -> list[Cell]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if making.cell is None:
            return dtypes.cells(making.op, making.opset)
        return [_answered(making.cell)]


def _answered(cell: Cell) -> Cell:
    """With what ONNX Runtime gives, for want of a reference."""
    model = onnx.load_from_string(cell.model)
    with contextlib.suppress(Exception):
        values, _ = dtypes.checked(model, tuple(suite.prepare("onnxruntime", model)(list(cell.inputs))), "")
        if values is not None:
            return dtypes.with_answer(cell, values, "onnxruntime")
    return cell


def opset_limit(_: Any) -> int:
    """The newest opset that ONNX Runtime takes."""
    newest = int(onnx.defs.onnx_opset_version())
    for opset in range(newest, 0, -1):
        ends = [[onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1])] for name in "xy"]
        graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", *ends)
        opsets = [onnx.helper.make_opsetid("", opset)]
        ir_version = onnx.helper.find_min_ir_version_for(opsets)
        with contextlib.suppress(OnwardError):
            suite.prepare("onnxruntime", onnx.helper.make_model(graph, opset_imports=opsets, ir_version=ir_version))
            return opset
    return newest


def nothing(_: Any) -> None:
    """There is nothing to do before."""


RUN = Work(do, begin)
MAKE = Work(make, nothing)
LIMIT = Work(opset_limit, nothing)
