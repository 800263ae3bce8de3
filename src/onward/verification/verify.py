"""Proves that models are the same: runs a source and others on the same data and compares what comes out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import onnx

from onward import runners
from onward.advice.nearest import meant
from onward.errors import MissingPackageError, OnwardError, RunFailure, UnsupportedError, UntrustedError
from onward.formats.dataframe.functions import is_function_source
from onward.gate import trusting
from onward.model import Model
from onward.runners import RUNNERS, full_precision, unsaturated
from onward.runners.calls import Run
from onward.runners.full_precision import may_round
from onward.runners.onnxruntime import ONE_THREAD, depends_on_threads
from onward.verification.doubts import blank, random_ops
from onward.verification.environment import environment, served_by
from onward.verification.results import Report, SideResult
from onward.verification.sides import Options, Side, Source, label, open_side, read
from onward.verification.truth import Truth

Progress = Callable[[str], None]
"""Told what is being done, a few words at a time."""
Other: TypeAlias = Source | Side


def verify(
    model: Other,
    against: Other | Iterable[Other] = "torch",
    *,
    source: str = "onnxruntime",
    inputs: Any = None,
    bisect: bool = False,
    all_nodes: bool = False,
    reduce_to: str | os.PathLike[str] | None = None,
    progress: Progress = lambda words: None,
    trust: bool = False,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    regimes: Sequence[str] = ("random", "zeros"),
    hard: bool = False,
    atol: float | None = None,
    rtol: float | None = None,
    isolate: bool = False,
    timeout: float | None = None,
    memory: int | None = None,
    quick: bool = False,
    arbitrate: bool = True,
    sample: Any = None,
    library: str | None = None,
) -> Report:
    """Run `model` on `source`, run each of `against` on the same data, and compare.

    `model` is an ONNX model, or a file or folder of a framework (a generated package, `.pt2`, SavedModel, `.keras`,
    `.tflite`), or a side that is open already. Each of `against` is the name of a runner for the same model (`torch`,
    `torch:compile`, `openvino`), or another model or file; a `Path` is always a file. `inputs` are arrays by name, a
    list of such, or a path (`.npz`, `.npy`, images, a folder of test data sets); without them data is generated that
    fits the graph. With `bisect` the first node that differs is named, with `all_nodes` every value inside is compared,
    and `reduce_to` is a folder for the smallest model that still differs. `trust` lets code in
    files, and beside them, be executed; without it such files are refused.

    Generated data follows `dims` (sizes of dynamic dimensions by name), `seed` and `regimes`; with `hard` it holds NaN,
    infinities, denormals and an empty batch as well. With `quick` a single set is compared, given or generated.
    `atol` and `rtol` replace the tolerance by noise. Where two sides differ, the reference evaluator of the onnx
    package is asked which of them is alone, for some seconds at most, unless `arbitrate` is False.

    With a `sample`, a data frame or a file of one, `model` is a function on data frames, in memory or as
    "features.py:features", and each of `against` the ONNX model of one. Function and models are given the sample, its
    first row and none of its rows, and compared column by column. `library` reads a file, as for `onward.convert`.
    Estimators of scikit-learn, in memory or in files, are compared on the rows of the sample.

    `isolate` gives each runner a process of its own, which `timeout`, in seconds, and `memory`, in bytes, may limit. A
    runner that is not installed is left out, with a note, if there is another one to compare with.

    >>> import onward
    >>> onward.verify("examples/digits/digits.onnx", "torch").status
    'same'
    """
    how = Options(dims, seed, tuple(regimes), hard, atol, rtol, isolate, timeout, memory, quick, arbitrate)
    with trusting(trust):
        if sample is not None or library is not None or is_function_source(model):
            from onward.verification.functions import verified_functions

            return verified_functions(model, _several(against), sample, library)
        return _verified(model, _several(against), source, inputs, bisect, all_nodes, reduce_to, progress, how)


def _verified(
    model: Other,
    others: list[Other],
    source: str,
    inputs: Any,
    bisect: bool,
    all_nodes: bool,
    reduce_to: str | os.PathLike[str] | None,
    progress: Progress,
    how: Options,
) -> Report:
    began = time.perf_counter()
    progress(f"running {label(model)} on {source}")
    try:
        given = model if isinstance(model, Side) else read(model)
        begun = _begun(others, given, how)
        side = given if isinstance(given, Side) else open_side(given, source, how)
        truth = Truth.of(side, inputs, how, [label(other) for other in others])
    except RunFailure as error:
        raise error if str(error).startswith(source) else RunFailure(f"{source}: {error}") from error
    report = Report(label(model), truth.side.name, environment=dict(environment()), notes=truth.notes)
    report.notes += served_by(truth.side.model)
    report.remark = _remark(truth.side)
    if report.remark:
        report.notes.append(f"{report.source} runs {report.remark}")
    report.blank, report.drawn = blank([sample.outputs for sample in truth.samples]), random_ops(truth.side.model)
    if any(sample.data.expected is not None for sample in truth.samples):
        report.sides.append(truth.recorded())
    absent: list[MissingPackageError] = []
    for other in others:
        progress(f"running {label(other)}")
        try:
            side = other if isinstance(other, Side) else _open(other, truth.side, source, how, begun)
        except UntrustedError:
            raise
        except OnwardError as error:
            if isinstance(error, MissingPackageError) and isinstance(other, str) and _is_runner(other):
                absent.append(error)
                report.notes.append(f"{other} is left out: {error}")
            else:
                report.sides.append(SideResult(label(other), failure=str(error)))
            continue
        result = truth.judge(side)
        searched = (bisect or reduce_to is not None) and result.status == "different"
        if searched or (all_nodes and result.trials):
            progress(f"comparing {side.name} node by node")
            try:
                result = truth.locate(side, result, all_nodes, None if reduce_to is None else Path(reduce_to))
            except OnwardError as error:  # the verdict stands
                truth.notes.append(f"{side.name} could not be compared node by node: {error}")
        side.close()
        report.notes += [f"{side.name}: {note}" for note in side.notes]
        report.sides.append(result)
    truth.side.close()
    report.data = [sample.data.label for sample in truth.samples]
    if absent and len(absent) == len(others):
        raise absent[0]
    if truth.side.model is not None:
        report.graph = list(outline(truth.side.model))
    report.seconds = time.perf_counter() - began
    return report


def _remark(source: Side) -> str:
    """How ONNX Runtime was made to run the source, where that is not as it would by itself."""
    model = source.model if source.runner.startswith("onnxruntime") else None
    if model is None:
        return ""
    found = [
        (may_round, full_precision.REMARK),
        (unsaturated.saturates, unsaturated.REMARK),
        (depends_on_threads, ONE_THREAD),
    ]
    return ", and ".join(remark for applies, remark in found if applies(model))


def _several(against: Other | Iterable[Other]) -> list[Other]:
    if isinstance(against, str | os.PathLike | bytes | onnx.ModelProto | Model | Side):
        return [against]
    return list(cast(Iterable[Other], against))


def _begun(others: list[Other], model: Other, how: Options) -> dict[str, Callable[[], Run]]:
    """The first of the others, where it can be prepared while the source is; by the name of its runner."""
    first = others[0] if others else None
    if not isinstance(first, str) or not isinstance(model, Model) or how.is_isolated or not _is_runner(first):
        return {}
    try:
        return {first: runners.start(first, model)}
    except UnsupportedError:  # what `_open` will say
        return {}


def _is_runner(other: str) -> bool:
    return runners.is_known(other) or not Path(other).exists()


def _open(other: Source, truth: Side, runner: str, how: Options, begun: dict[str, Callable[[], Run]]) -> Side:
    """Another runner for the source's model, or another model."""
    if not isinstance(other, str) or not _is_runner(other):
        return open_side(other, runner, how, name=label(other))
    if not runners.is_known(other):
        near = meant(other, RUNNERS)
        raise UnsupportedError(
            f"there is neither a file nor a runner {other!r}; runners are {', '.join(RUNNERS)}{near}"
        )
    if truth.model is None:
        raise UnsupportedError(f"{truth.name} is not an ONNX model, so it cannot be run on {other}")
    return open_side(truth.model, other, how, prepared=begun.pop(other, None))


def outline(model: Model) -> Iterator[dict[str, Any]]:
    """The nodes of a graph, for a picture of it."""
    for node in model.ir.graph:
        yield {
            "name": node.name or "",
            "op": node.op_type,
            "inputs": [value.name for value in node.inputs if value is not None],
            "outputs": [value.name for value in node.outputs],
        }
