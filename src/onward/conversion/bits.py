"""ONNX models in fewer bits, as a conversion asks for them, and how much they lose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onward.advice.options import option
from onward.conversion.beside import sizes, times
from onward.conversion.request import Request
from onward.errors import InvalidDataError, OnwardError, VerificationError
from onward.gate.budget import announce

if TYPE_CHECKING:
    from onward.model import Model
    from onward.runners.calls import Inputs
    from onward.verification.check import Verdict
    from onward.verification.results import OutputResult

OF_BITS = ("float16", "bfloat16", "keep_float", "labels", "max_loss", "block_size", "standard_blocks")
"""Options that only models in fewer bits have."""
INTEGERS = ("int8", "int4")
SETS = 2
NO_KERNELS = "ONNX Runtime has no kernels for all of it on this processor: it was measured around casts"
SHOWN = 8
"""Layers that are listed, those that lose most."""

Told = Callable[[str], None]


def announced(words: str) -> None:
    """Whoever waits is told what is being done."""
    announce(doing=words)


@dataclass(frozen=True)
class Fewer:
    """A model in fewer bits."""

    model: Model
    verdict: Verdict
    remarks: tuple[str, ...]


def wanted(request: Request) -> str:
    """float16, bfloat16, int8 or int4; '' where all bits stay."""
    if request.to != "onnx":
        return ""
    asked = [name for name in ("float16", "bfloat16") if request.is_given(name)]
    asked += [request.quantize] if request.quantize else []
    if len(asked) > 1:
        raise OnwardError(f"{' and '.join(asked)} at once: choose one of them")
    return asked[0] if asked else ""


def check_bits(request: Request) -> None:
    """Refuse options that have nothing to do here."""
    bits = wanted(request)
    if request.to != "onnx":
        for name in OF_BITS:
            if request.is_given(name):
                raise OnwardError(f"{option(name)} is for {option('to', 'onnx')}")
        if request.quantize == "int4":
            raise OnwardError(f"{option('quantize', 'int4')} is for {option('to', 'onnx')}")
        return
    if request.quantize and request.quantize not in INTEGERS:
        other = "float16" if request.quantize == "float16" else "quantize"
        raise OnwardError(
            f"{option('quantize', request.quantize)} is for {option('to', 'tflite')}; for an ONNX file there are"
            f" {option(other, True if other == 'float16' else 'int8')} and {option('quantize', 'int4')}"
        )
    if request.is_given("io") and request.io != bits:
        raise OnwardError(
            f"{option('io', request.io)} is for models whose numbers are {request.io}: ask for these as well"
        )
    for name, takers in {
        "keep_float": ("float16", "bfloat16", "int8", "int4"),
        "calibrate": ("float16", "bfloat16", "int8", "int4"),
        "labels": INTEGERS,
        "max_loss": INTEGERS,
        "block_size": ("int4",),
        "standard_blocks": ("int4",),
    }.items():
        if request.is_given(name) and bits not in takers:
            raise OnwardError(f"{option(name)} is for models in {', '.join(takers)}: ask for one of these as well")
    if request.is_given("labels") and not request.is_given("calibrate"):
        raise OnwardError(f"{option('labels')} belong to rows of data: give these by {option('calibrate')}")
    if request.max_loss is not None and not 0 <= request.max_loss < 1:
        raise OnwardError(f"{option('max_loss')}: {request.max_loss:g} is no share from 0 to 1, such as 0.01 or 1%")


def in_fewer_bits(model: Model, request: Request, before: Model) -> Fewer:
    """`model` as it is asked for, measured on the data given, or on made-up data; `before` is what was read."""
    bits, told = wanted(request), announced
    samples = _samples(model, request)
    made = {"int8": _integers, "int4": _blocks}.get(bits, _floats)(model, request, samples, told)
    fed = samples[0] if request.io == "float32" else _fed(made.model, samples[0])
    timed = list(times(before, made.model, samples[0], fed)) or [NO_KERNELS]
    return Fewer(made.model, made.verdict, (sizes(before, made.model), *timed, *made.remarks))


def _floats(model: Model, request: Request, samples: Sequence[Inputs], told: Told) -> Fewer:
    from onward.bits.narrow_floats import narrowed
    from onward.verification.check import Verdict

    bits = wanted(request)
    found = narrowed(model, bits, samples, keep=request.keep_float, ends=request.io == bits, told=told)
    worst = max(found.outputs, key=lambda one: one.metrics.worst / max(one.tolerance.worst, 1e-30))
    least_first = sorted(found.elsewhere, key=lambda one: one.metrics.overall)
    elsewhere = {one.name: _far(one) for one in least_first}
    verdict = Verdict(
        "verified",
        f"worst error {worst.metrics.worst:.1e}, allowed {worst.tolerance.worst:.1e} ({worst.tolerance.why}), over"
        f" {_count(len(samples), 'set')} of inputs against the model in 32 bits"
        + (f"; of {', '.join(elsewhere)}, what decides them" if elsewhere else ""),
    )
    lines = [f"{found.nodes} nodes compute in {bits}"]
    lines += [f"{name}: races that are too near for {bits} go another way: {far}" for name, far in elsewhere.items()]
    if found.kept:
        lines.append(f"{_count(len(found.kept), 'node')} in 32 bits:")
        lines += [f"  {one}" for one in found.kept]
    return Fewer(found.model, verdict, tuple(lines))


def _far(result: OutputResult) -> str:
    """How far an output is off that is as it may be."""
    return result.reason or f"{100 * result.metrics.overall:.3g} % of the elements differ"


def _integers(model: Model, request: Request, samples: Sequence[Inputs], told: Told) -> Fewer:
    from onward.bits.integers import quantized
    from onward.bits.search import ranked_by

    found = quantized(
        model,
        samples,
        labels=_labels(request, samples),
        most=request.max_loss,
        keep=request.keep_float,
        told=told,
    )
    floats = [layer for layer in found.layers if layer.is_float]
    lines = [f"{len(found.layers) - len(floats)} of {len(found.layers)} layers compute in 8 bits"]
    lines += [f"  {one.node} ({one.op}) stays in floats" for one in floats]
    rest = [one for one in found.layers if not one.is_float and one.loss]
    for one in ranked_by(rest, lambda one: one.loss)[:SHOWN]:
        how = f"is off by {100 * one.loss:.2g} %" if math.isfinite(one.loss) else "has another size"
        lines.append(f"  {one.node} ({one.op}): its result {how}")
    return Fewer(found.model, _verdict("int8", found.loss, found.what, request.max_loss, len(samples)), tuple(lines))


def _blocks(model: Model, request: Request, samples: Sequence[Inputs], told: Told) -> Fewer:
    from onward.bits.blocks import packed
    from onward.bits.corrected import calibrated
    from onward.bits.search import Judge, fewest_left, ranked_by
    from onward.runners import prepare

    run = prepare("onnxruntime", model)
    judge = Judge(samples, [run(inputs) for inputs in samples], _labels(request, samples))
    told("measuring what is multiplied")
    rounded = calibrated(model, samples) if request.is_given("calibrate") else {}
    size, form = request.block_size or 32, "standard" if request.standard_blocks else "runtime"
    made: dict[int, Any] = {}

    def attempt(left: Sequence[str]) -> float:
        told(f"packing the weights, {len(left)} of them left in floats")
        leave = [*request.keep_float, *left]
        made[len(left)] = packed(model, size=size, form=form, leave=leave, rounded=rounded)  # type: ignore[arg-type]
        return judge.loss(prepare("onnxruntime", made[len(left)].model))

    loss, left = attempt([]), list[str]()
    if request.max_loss is not None and loss > request.max_loss:
        ranked = ranked_by(made[0].layers, lambda one: one.loss)
        left, loss = fewest_left([one.node for one in ranked], attempt, request.max_loss)
    found = made[len(left)]
    lines = [f"{_count(len(found.layers), 'weight')} in blocks of {size} numbers of 4 bits"]
    lines += [f"  {name} stays in floats" for name in left]
    lines += [f"  {one}" for one in ranked_by(found.layers, lambda one: one.loss)[:SHOWN]]
    return Fewer(found.model, _verdict("int4", loss, judge.what, request.max_loss, len(samples)), tuple(lines))


def _verdict(bits: str, loss: float, what: str, most: float | None, sets: int) -> Verdict:
    from onward.verification.check import Verdict

    if what == "accuracy":
        lost = f"{100 * loss:.2g} % of accuracy is lost"
    elif math.isfinite(loss):
        lost = f"{what} are off by {100 * loss:.2g} %"
    else:
        lost = f"{what} become other ones in size or kind"
    words = f"{lost} by {bits}, over {_count(sets, 'set')} of inputs"
    if most is None:
        return Verdict("not the same", f"{words}; check what it means for your data")
    if loss > most:
        raise VerificationError(f"{words}, and {100 * most:.2g} % allowed")
    return Verdict("verified", f"{words}, {100 * most:.2g} % allowed")


def _samples(model: Model, request: Request) -> list[Inputs]:
    from onward.verification.data.sets import data_sets, input_sets

    given = request.calibrate if request.calibrate is not None else request.inputs
    if given is None:
        found = list(islice(input_sets(model), SETS))
    else:
        found = [one.inputs for one in data_sets(model, inputs=given)]
    if not found:
        raise InvalidDataError(f"there are no inputs to measure on: give some by {option('calibrate')}")
    return found


def _labels(request: Request, samples: Sequence[Inputs]) -> list[Any] | None:
    """The right class of each row, set by set."""
    if request.labels is None:
        return None
    labels = _array(request.labels)
    rows = [len(next(iter(inputs.values()))) for inputs in samples]
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != sum(rows):
        raise InvalidDataError(
            f"{option('labels')}: {labels.dtype} {list(labels.shape)} is not an integer for each of the"
            f" {sum(rows)} rows of the data"
        )
    return np.split(labels, np.cumsum(rows)[:-1])


def _array(given: Any) -> Any:
    if not isinstance(given, str | Path):
        return np.asarray(given)
    from onward.gate.arrays import read_npy

    return read_npy(Path(given))


def _fed(model: Model, inputs: Inputs) -> Inputs:
    """The same in the dtypes that a model takes."""
    dtypes = {value.name: value.dtype for value in model.ir.graph.inputs}
    return {name: np.asarray(x).astype(d.numpy()) if (d := dtypes.get(name)) else x for name, x in inputs.items()}


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
