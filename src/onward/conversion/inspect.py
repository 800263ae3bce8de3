"""`onward.inspect`: what a model contains, whatever framework it is of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onward.advice.extras import missing_packages
from onward.conversion.request import Request
from onward.conversion.sources import read
from onward.formats import kind_of
from onward.formats.package import is_package, weights_in
from onward.gate import trusting
from onward.report.describe import describe, describe_weights, weights_of


def inspect(
    source: Any,
    *,
    weights: bool = False,
    input: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    spec: Sequence[Any] = (),
    params: Any = None,
    sample: Any = None,
    library: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    signature: str | None = None,
    cache: bool = False,
    trust: bool = False,
) -> dict[str, Any]:
    """What a model contains and how each backend supports it, as plain data; the model is not run.

    `source` is a file or folder of any framework, an object in memory, bytes, an `onnx.ModelProto` or an
    `onward.Model`. What is not ONNX is described as the ONNX model that it becomes; `input`, `outputs`, `spec`,
    `params`, `sample`, `library`, `checkpoint`, `signature`, `cache` and `trust` are then as for `onward.convert`. A
    package of source is described by its weights. With `weights` each of them is listed. The keys are those of
    `onward inspect --json`.

    >>> import onward
    >>> found = onward.inspect("examples/digits/digits.onnx")
    >>> [output["shape"] for output in found["outputs"]]
    [['batch', 10]]
    """
    given: dict[str, Any] = {
        "input": input,
        "outputs": outputs,
        "spec": [spec] if isinstance(spec, str) else spec,
        "params": params,
        "sample": sample,
        "library": library,
        "signature": signature,
        "cache": cache,
    }
    place = None if checkpoint is None else os.fspath(checkpoint)
    request = Request(source=source, to="", out=Path(), checkpoint=place, verify=False, **given)
    path = Path(source) if isinstance(source, str | os.PathLike) and Path(source).exists() else None
    with trusting(trust), missing_packages():
        found = _of_package(path) if path is not None and is_package(path) else _of_model(request)
    if not weights:
        del found["weights"]
    if path is not None and found["file"] is None:
        found["file"] = str(source)
        found["size"]["file"] = _bytes(path)
    return found


def _of_model(request: Request) -> dict[str, Any]:
    original = read(request)
    return {"format": original.kind, **describe(original.model), "weights": weights_of(original.model)}


def _of_package(path: Path) -> dict[str, Any]:
    """Source code is not executed: it is told by its weights."""
    kind = kind_of(path)
    about, weights = weights_in(path)
    return {"format": "" if kind is None else kind.name, **describe_weights(about, weights), "weights": weights}


def _bytes(path: Path) -> int:
    """Of a file, or of all that a folder holds."""
    return (
        path.stat().st_size if path.is_file() else sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    )
