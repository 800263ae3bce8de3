"""`onward.partition`: a model divided among a runtime and a fallback, proven and written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onward.model import Model
from onward.partitioning.divide import Partition, divide
from onward.partitioning.timing import Times, measure
from onward.report.partition_page import page
from onward.runners.chain import PLAN
from onward.writing import new_folder

PAGE = "report.html"


def partition(
    model: Any,
    target: str,
    out: str | os.PathLike[str] | None = None,
    *,
    fallback: str = "onnxruntime",
    table: str | os.PathLike[str] | None = None,
    min_nodes: int = 1,
    inputs: Any = None,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda words: None,
) -> Partition:
    """Divide an ONNX model among the runtime `target` and `fallback`, prove each part, and write it to a folder, `out`.

    `target` is a runner, such as `openvino`, `torch` or `tensorflow:tflite`. With a `table` it is any name: the table,
    a `.csv` file, has the ops that a runtime takes, in a column `op`, for one that is not here. Each part of the target
    is compiled, run and compared; a node that fails there, or computes something else, goes to the fallback, unless it
    can be written in simpler ops that are the same there. A part with fewer than `min_nodes` nodes goes there too.
    `inputs`, `dims` and `seed` are as for `onward.verify`.

    The folder has an ONNX file for each part, `plan.json` and `report.html`; `onward.verify` runs it as one model.

    >>> import onward
    >>> onward.partition("examples/digits/digits.onnx", "torch").taken
    1.0
    """
    made = divide(
        model, target, fallback=fallback, table=table, min_nodes=min_nodes, inputs=inputs, dims=dims, seed=seed,
        progress=progress,
    )  # fmt: skip
    if out is not None:
        progress("measuring times")
        write(made, measure(made) if made.result is not None else None, out)
    return made


def write(made: Partition, times: Times | None, out: str | os.PathLike[str]) -> None:
    """The files of a divided model, all of them or nothing."""
    files = [link.file for link in made.chain.links]
    with new_folder(out, [PLAN, PAGE, *files]) as folder:
        for file, part in zip(files, made.parts, strict=True):
            Model(part.model.ir).save(folder / file)
        plan = {
            **made.chain.to_json(),
            "target": made.target,
            "fallback": made.fallback,
            "refused": made.refused,
            "written": {name: sorted(pieces) for name, pieces in made.written.items()},
        }
        (folder / PLAN).write_text(json.dumps(plan, indent=2), encoding="utf-8")
        (folder / PAGE).write_text(page(made, times), encoding="utf-8")
    _forget(Path(out), {PLAN, PAGE, *files})


def _forget(out: Path, written: set[str]) -> None:
    """Parts that an earlier division left there."""
    for old in out.glob("[0-9]*_*.onnx"):
        if old.name not in written:
            old.unlink()
