"""Biases of layers in 8 bits, moved by what rounding and clipping shift each channel by on average.

Single numbers that are off make up for one another behind a layer. A shift does not: it goes on to the outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.bits.eight.observed import with_outputs
from onward.graph.replace import constant, made_by
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs

MOST = 64
"""Layers that are looked at, from all over the model: each takes a run of what is before it."""

Means = dict[str, npt.NDArray[np.float64]]


def centred(source: Model, made: Model, results: Mapping[str, tuple[str, str]], samples: Sequence[Inputs]) -> Model:
    """A copy of `made`; `results` has, by layer, the name of its result in `source` and in `made`."""
    found = made.copy()
    layers = {node.name: node for node in found.ir.graph if node.name in results and _bias(node) is not None}
    chosen = [*layers.values()]
    if len(chosen) > MOST:
        chosen = [chosen[place] for place in np.linspace(0, len(chosen) - 1, MOST).astype(int)]
    if not chosen:
        return found
    wanted = _means(source, [results[node.name or ""][0] for node in chosen], samples)
    for node in chosen:
        before, now = results[node.name or ""]
        _move(node, wanted[before] - _means(found, [now], samples)[now])
    return found


def _bias(layer: ir.Node) -> tuple[ir.Value, Any, Any] | None:
    """The integers of its bias, and their scale."""
    value = layer.inputs[2] if len(layer.inputs) > 2 else None
    held = made_by(value, "DequantizeLinear")
    if held is None or (integers := held.inputs[0]) is None:
        return None
    numbers, scale = constant(integers), constant(held.inputs[1])
    if numbers is None or scale is None or numbers.dtype != ir.DataType.INT32 or len(numbers.shape) != 1:
        return None
    return integers, numbers.numpy(), scale.numpy()


def _move(layer: ir.Node, shift: npt.NDArray[np.float64]) -> None:
    bias = _bias(layer)
    if bias is None or shift.shape != bias[1].shape or not np.isfinite(shift).all():
        return
    value, numbers, scale = bias
    limits = np.iinfo(np.int32)
    moved = np.clip(numbers + np.round(shift / scale), limits.min, limits.max).astype(np.int32)
    value.const_value = ir.tensor(moved, name=value.name)


def _means(model: Model, names: Sequence[str], samples: Sequence[Inputs]) -> Means:
    """Of each channel of values, over the samples."""
    run, found = prepare("onnxruntime", with_outputs(model, list(dict.fromkeys(names)))), Means()
    for inputs in samples:
        for name, array in run(inputs).items():
            axes = tuple(axis for axis in range(np.ndim(array)) if axis != 1)
            found[name] = found.get(name, 0.0) + np.mean(np.asarray(array, np.float64), axis=axes) / len(samples)
    return found
