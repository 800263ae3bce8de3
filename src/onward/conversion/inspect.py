"""`onward.inspect`: what a model contains, whatever framework it is of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onward.advice.extras import missing_packages
from onward.conversion.request import Request
from onward.conversion.sources import read
from onward.gate import trusting
from onward.report.describe import describe, weights_of


def inspect(
    source: Any,
    *,
    weights: bool = False,
    input: Sequence[str] = (),
    sample: Any = None,
    signature: str | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """What a model contains and how each backend supports it, as plain data; the model is not run.

    `source` is a file or folder of any framework, an object in memory, bytes, an `onnx.ModelProto` or an
    `onward.Model`. What is not ONNX is described as the ONNX model that it becomes; `input`, `sample`, `signature` and
    `trust` are then as for `onward.convert`. With `weights` each of them is listed. The keys are those of
    `onward inspect --json`.

    >>> import onward
    >>> found = onward.inspect("examples/digits/digits.onnx")
    >>> [output["shape"] for output in found["outputs"]]
    [['batch', 10]]
    """
    request = Request(source=source, to="", out=Path(), input=input, sample=sample, signature=signature, verify=False)
    with trusting(trust), missing_packages():
        original = read(request)
    model = original.model
    found = {"format": original.kind, **describe(model)} | ({"weights": weights_of(model)} if weights else {})
    if model.path is None and isinstance(source, str | os.PathLike) and Path(source).exists():
        found["file"] = str(source)
        found["size"]["file"] = _bytes(Path(source))
    return found


def _bytes(path: Path) -> int:
    """Of a file, or of all that a folder holds."""
    return (
        path.stat().st_size if path.is_file() else sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    )
