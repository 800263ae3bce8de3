"""Layers in 8-bit integers, calibrated on data, exact on every processor; ONNX Runtime's quantizer writes the file.

Products of uint8 and int8 saturate on processors with AVX2 and without VNNI, unless two weights together take no more
than 8 bits. So it is here, and they are rounded so that their errors make up for one another on the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.bits.chosen import check_patterns, is_named
from onward.bits.eight.alone import effects
from onward.bits.eight.centred import centred
from onward.bits.eight.observed import LAYERS, Observed, is_layer, pieces, result, with_outputs
from onward.bits.eight.quantizer import Quantizer
from onward.bits.eight.ranges import Choice
from onward.bits.eight.ready import ready
from onward.bits.search import Judge, fewest_left, ranked_by
from onward.errors import OnwardError, UnsupportedError
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs

CHOICES: tuple[Choice, ...] = ("all", "nearest")
EVENED = 4
"""Of so many parts of the samples, one is run to find what is shifted."""
FURTHER = 1.1
"""The error of the outputs in which shifts are evened out may be larger by this: it is of single numbers."""
RUN = 2
"""Parts of the samples that each layer is measured on."""


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
    told: Callable[[str], None] = lambda words: None,
) -> Quantized:
    """`model` in 8 bits, its inputs and outputs as they are, calibrated on `samples`.

    With `most`, the layers that lose most stay in floats until no more is lost: of accuracy where there are `labels`,
    else of the outputs. `keep` has patterns of names of nodes, and ops, that stay in any case.
    """
    if not samples:
        raise OnwardError("8 bits need data to calibrate on: give some")
    source = ready(model, pieces(model, samples)[0])
    layers = {node.name or "": node for node in source.ir.graph if is_layer(node)}
    check_patterns(keep, layers.values())
    always = [name for name, node in layers.items() if is_named(node, keep)]
    if not set(layers) - set(always):
        raise UnsupportedError(
            f"no layer of this model ({', '.join(LAYERS)}) can be in 8 bits: of layers that compute in 32 bits, and are"
            f" not quantized yet, there are none{' but those that stay as asked' if always else ''}; give the model"
            " that this one was made of, if there is one"
        )
    run = prepare("onnxruntime", model)
    expected = [run(inputs) for inputs in samples]
    judge, by_outputs = Judge(samples, expected, labels), Judge(samples, expected)
    told("measuring what layers read and give")
    parts = pieces(source, samples)
    quantizer = Quantizer(source, parts[:1], Observed.on(source, samples))
    made: dict[tuple[str, ...], Model] = {}
    tried = {choice: quantizer.made(always, choice) for choice in CHOICES}
    choice = min(tried, key=lambda one: by_outputs.loss(prepare("onnxruntime", tried[one])))

    def evened(one: Model) -> Model:
        """With its channels where they were on average, unless that takes it further off."""
        found = centred(source, one, _named(one, layers), parts[::EVENED])
        before, after = (prepare("onnxruntime", each) for each in (one, found))
        is_held = most is None or judge.loss(after) <= most
        return found if is_held and by_outputs.loss(after) <= FURTHER * by_outputs.loss(before) else one

    told("moving biases by what 8 bits shift")
    made[()] = evened(tried[choice])

    def attempt(floats: Sequence[str]) -> float:
        key = tuple(floats)
        told(f"{len(layers) - len(always) - len(floats)} of {len(layers)} layers in 8 bits")
        if key not in made:
            made[key] = quantizer.made([*always, *floats], choice)
        return judge.loss(prepare("onnxruntime", made[key]))

    loss = attempt([])
    losses = _losses(source, made[()], layers, parts[:RUN])
    floats: list[str] = []
    if most is not None and loss > most:
        asked = [name for name in layers if name not in always]
        alone = effects(source, asked, quantizer.weights, quantizer.ranges(choice), parts[:RUN], told)
        floats, loss = fewest_left(ranked_by(asked, alone.__getitem__), attempt, most)
        made[tuple(floats)] = evened(made[tuple(floats)])
        loss = judge.loss(prepare("onnxruntime", made[tuple(floats)]))
    stay = {*always, *floats}
    found = [Layer(name, node.op_type, losses[name], name in stay) for name, node in layers.items()]
    return Quantized(made[tuple(floats)], tuple(found), loss, judge.what)


def _losses(source: Model, made: Model, layers: Mapping[str, ir.Node], samples: Sequence[Inputs]) -> dict[str, float]:
    """By layer, how much more its result is off than the worst of what it reads."""
    results = _named(made, layers)
    values, held = {name: pair[0] for name, pair in results.items()}, dict(results.values())
    read = sorted(held)
    ours = prepare("onnxruntime", with_outputs(source, read))
    theirs = prepare("onnxruntime", with_outputs(made, [held[name] for name in read]))
    errors: dict[str, float] = dict.fromkeys(read, 0.0)
    for inputs in samples:
        expected, found = ours(inputs), theirs(inputs)
        for name in read:
            errors[name] = max(errors[name], _off(np.asarray(expected[name]), np.asarray(found[held[name]])))
    before: dict[str, float] = {}
    lost = {}
    for node in source.ir.graph:
        came = max((before.get(v.name or "", 0.0) for v in node.inputs if v is not None), default=0.0)
        here = errors.get(values.get(node.name or "", ""), 0.0)
        if is_layer(node):
            lost[node.name or ""] = max(here - came, 0.0) if math.isfinite(came) else 0.0
        for value in node.outputs:
            before[value.name or ""] = here if is_layer(node) else came
    return lost


def _named(made: Model, layers: Mapping[str, ir.Node]) -> dict[str, tuple[str, str]]:
    """By layer, what its result is called, and that which holds it in `made`."""
    held = {value.name or "": _held(value).name or "" for node in made.ir.graph for value in node.outputs}
    found = {name: next((v for v in _results(node) if v in held), "") for name, node in layers.items()}
    return {name: (value, held[value]) for name, value in found.items() if value}


def _off(expected: Any, found: Any) -> float:
    if expected.shape != found.shape:  # which the numbers before it decide
        return math.inf
    size = float(np.linalg.norm(expected))
    return float(np.linalg.norm(expected - found)) / size if size else 0.0


def _results(layer: ir.Node) -> Iterator[str]:
    """What it gives, or what the op behind it does that it took over."""
    yield layer.outputs[0].name or ""
    yield result(layer).name or ""


def _held(value: ir.Value) -> ir.Value:
    """It in 8 bits, where it is held in them."""
    for op_type in ("QuantizeLinear", "DequantizeLinear"):
        reader = next((use.node for use in value.uses() if use.node.op_type == op_type and use.idx == 0), None)
        value = value if reader is None else reader.outputs[0]
    return value
