"""What each layer alone moves the outputs by where it is in 8 bits, and all others in floats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from onward.bits.eight.multiplied import Floats
from onward.bits.eight.observed import held
from onward.bits.eight.ranges import STEPS, Range
from onward.bits.search import Judge
from onward.graph.build import Builder
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs


def effects(
    source: Model,
    layers: Iterable[str],
    weights: Mapping[str, Floats],
    ranges: Mapping[str, Range],
    samples: Sequence[Inputs],
    told: Callable[[str], None],
) -> dict[str, float]:
    """By layer, the loss of the outputs; `weights` are rounded ones by layer, `ranges` those of values."""
    run = prepare("onnxruntime", source)
    judge, found = Judge(samples, [run(inputs) for inputs in samples]), dict[str, float]()
    for name in layers:
        told(f"measuring what {name} alone loses")
        found[name] = judge.loss(prepare("onnxruntime:unoptimized", alone(source, name, weights.get(name), ranges)))
    return found


def alone(source: Model, layer: str, weight: Floats | None, ranges: Mapping[str, Range]) -> Model:
    """A copy whose named layer has this weight, and reads and gives numbers of 8 bits."""
    made = replace(source.copy(), path=None, training_info=[])
    (node,) = (node for node in made.ir.graph if node.name == layer)
    if weight is not None and (value := node.inputs[1]) is not None:
        value.const_value = ir.tensor(weight, name=value.name)
    op = Builder(made.ir)
    for value in held(node):
        if (value.name or "") in ranges:
            _hold(op, value, *ranges[value.name or ""])
    made.ir.graph.sort()
    return made


def _hold(op: Builder, value: ir.Value, low: float, high: float) -> None:
    """Let all that read a value read what 8 bits leave of it."""
    scale = np.float32((high - low) / STEPS or 1.0)
    grid = np.array(scale), np.array(np.clip(np.round(-low / scale), 0, STEPS), np.uint8)
    readers, outputs = list(value.uses()), op.graph.outputs
    given = [place for place, output in enumerate(outputs) if output is value]
    left = op.DequantizeLinear(op.QuantizeLinear(op.tensor(value), *grid), *grid).value
    for use in readers:
        use.node.replace_input_with(use.idx, left)
    if given:
        value.name, left.name = left.name, value.name
    for place in given:
        outputs[place] = left
