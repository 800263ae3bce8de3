"""Layers in 8-bit integers, calibrated on data: by ONNX Runtime's own quantizer, exact on every processor.

Products of uint8 and int8 saturate on processors with AVX2 and without VNNI, unless weights have 7 bits. So they do.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.bits.chosen import is_named
from onward.bits.search import Judge, fewest_left, ranked_by
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer
from onward.graph.names import Names
from onward.model import Model, load
from onward.runners import prepare
from onward.runners.calls import Inputs

LAYERS = ("Conv", "MatMul", "Gemm", "ConvTranspose")
"""Ops that are worth it, and that decide what is lost."""
CALIBRATIONS = ("minmax", "entropy", "percentile")


@dataclass(frozen=True)
class Layer:
    """A layer of the result."""

    node: str
    op: str
    loss: float
    """How far its result is off, of its size, with all before it in 8 bits."""
    is_float: bool


@dataclass(frozen=True)
class Quantized:
    model: Model
    layers: tuple[Layer, ...]
    loss: float
    what: str
    """What the loss is of."""


def quantized(
    model: Model,
    samples: Sequence[Inputs],
    *,
    labels: Sequence[Any] | None = None,
    most: float | None = None,
    keep: Sequence[str] = (),
    calibration: str = "minmax",
    told: Callable[[str], None] = lambda words: None,
) -> Quantized:
    """`model` in 8 bits, its inputs and outputs as they are, calibrated on `samples`.

    With `most`, the layers that lose most stay in floats until no more is lost: of accuracy where there are `labels`,
    else of the outputs. `keep` has patterns of names of nodes, and ops, that stay in
    any case.
    """
    if not samples:
        raise OnwardError("8 bits need data to calibrate on: give some")
    if calibration not in CALIBRATIONS:
        raise OnwardError(f"there is no calibration {calibration!r}; there are {', '.join(CALIBRATIONS)}")
    source = _named(model)
    layers = {node.name or "": node for node in source.ir.graph if _is_layer(node)}
    always = [name for name, node in layers.items() if is_named(node, keep)]
    if not set(layers) - set(always):
        raise UnsupportedError(f"no layer of this model ({', '.join(LAYERS)}) can be in 8 bits")
    run = prepare("onnxruntime", source)
    judge = Judge(samples, [run(inputs) for inputs in samples], labels)
    made: dict[tuple[str, ...], Model] = {}
    with _Quantizer(source, samples, calibration) as quantizer:

        def attempt(floats: Sequence[str]) -> float:
            key = tuple(floats)
            told(f"{len(layers) - len(always) - len(floats)} of {len(layers)} layers in 8 bits")
            made[key] = quantizer.made([*always, *floats])
            return judge.loss(prepare("onnxruntime", made[key]))

        loss = attempt([])
        losses = _losses(source, made[()], layers, samples)
        floats: list[str] = []
        if most is not None and loss > most:
            ranked = [name for name in ranked_by(losses) if name not in always]
            floats, loss = fewest_left(ranked, attempt, most)
    stay = {*always, *floats}
    found = [Layer(name, node.op_type, losses[name], name in stay) for name, node in layers.items()]
    return Quantized(made[tuple(floats)], tuple(found), loss, judge.what)


def _is_layer(node: ir.Node) -> bool:
    return node.op_type in LAYERS and node.domain in ("", "ai.onnx")


def _named(model: Model) -> Model:
    """A copy whose nodes all have names, which the quantizer knows them by, and whose values have types."""
    made = model.copy()
    names, seen = Names(made.ir), set[str]()
    for node in made.ir.graph:
        if not node.name or node.name in seen:
            node.name = names.node(node.name or node.op_type)
        seen.add(node.name)
    infer(made.ir)
    return replace(made, path=None)


def _losses(source: Model, made: Model, layers: Mapping[str, ir.Node], samples: Sequence[Inputs]) -> dict[str, float]:
    """By layer, how much more its result is off than the worst of what it reads."""
    values = {name: node.outputs[0].name or "" for name, node in layers.items()}
    known = {value.name for value in _values(made.ir.graph)}
    read = [name for name in values.values() if name in known]
    ours, theirs = (prepare("onnxruntime", _with_outputs(each, read)) for each in (source, made))
    errors: dict[str, float] = dict.fromkeys(read, 0.0)
    for inputs in samples[:2]:
        expected, found = ours(inputs), theirs(inputs)
        for name in read:
            size = float(np.linalg.norm(expected[name]))
            off = float(np.linalg.norm(np.asarray(expected[name]) - found[name])) / size if size else 0.0
            errors[name] = max(errors[name], off)
    before: dict[str, float] = {}
    for node in source.ir.graph:
        came = max((before.get(v.name or "", 0.0) for v in node.inputs if v is not None), default=0.0)
        for value in node.outputs:
            before[value.name or ""] = errors.get(value.name or "", came)
    lost = {}
    for name, node in layers.items():
        came = max((before.get(v.name or "", 0.0) for v in node.inputs if v is not None), default=0.0)
        lost[name] = max(errors.get(values[name], 0.0) - came, 0.0)
    return lost


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    for node in graph:
        yield from node.outputs


def _with_outputs(model: Model, names: Sequence[str]) -> Model:
    made = model.copy()
    values = {value.name: value for value in _values(made.ir.graph)}
    made.ir.graph.outputs[:] = [values[name] for name in names]
    for value in made.ir.graph.outputs:
        value.type = value.type or ir.TensorType(ir.DataType.FLOAT)
    return replace(made, path=None, training_info=[])


class _Quantizer:
    """ONNX Runtime's quantizer on one model; it calibrates once."""

    def __init__(self, source: Model, samples: Sequence[Inputs], calibration: str) -> None:
        self._source, self._samples, self._calibration = source, samples, calibration
        self._folder = tempfile.TemporaryDirectory(prefix="onward-int8-")
        self._file = Path(self._folder.name) / "floats.onnx"

    def __enter__(self) -> _Quantizer:
        self._source.save(self._file, external_data=False)
        return self

    def __exit__(self, *problem: object) -> None:
        self._folder.cleanup()

    def made(self, floats: Sequence[str]) -> Model:
        from onnxruntime import quantization

        out = self._file.with_name("integers.onnx")
        more: dict[str, Any] = {}
        if "calibration_cache_path" in inspect.signature(quantization.quantize_static).parameters:
            more["calibration_cache_path"] = self._file.with_name("ranges.json")
        with _quietly():
            quantization.quantize_static(
                self._file,
                out,
                _Reader(self._samples),
                op_types_to_quantize=list(LAYERS),
                per_channel=True,
                reduce_range=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                nodes_to_exclude=list(floats),
                calibrate_method=_method(self._calibration),
                **more,
            )
        found = load(out.read_bytes())
        return replace(self._source, ir=found.ir, path=None)


class _Reader:
    def __init__(self, samples: Sequence[Inputs]) -> None:
        self._samples, self._next = samples, iter(samples)

    def get_next(self) -> Inputs | None:
        return next(self._next, None)

    def rewind(self) -> None:
        self._next = iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def set_range(self, start_index: int, end_index: int) -> None:
        self._next = iter(self._samples[start_index:end_index])


def _method(name: str) -> Any:
    from onnxruntime.quantization import CalibrationMethod

    return {
        "minmax": CalibrationMethod.MinMax,
        "entropy": CalibrationMethod.Entropy,
        "percentile": CalibrationMethod.Percentile,
    }[name]


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """It advises everybody to preprocess models, which Onward does its own way."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
