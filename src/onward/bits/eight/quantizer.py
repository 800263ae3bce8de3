"""ONNX Runtime's quantizer on one model, told the ranges of values and the scales of weights."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.bits.eight.observed import FOLLOW, LAYERS, Observed, is_layer
from onward.bits.eight.ranges import Choice, Range
from onward.bits.eight.safe_names import SafeNames
from onward.bits.eight.unsaturated import rounded, scales
from onward.model import Model, load
from onward.runners.calls import Inputs

TAKEN = [*LAYERS, *FOLLOW]


class Quantizer:
    def __init__(self, source: Model, samples: Sequence[Inputs], observed: Observed) -> None:
        self._source, self._samples, self._observed = source, samples, observed
        self.weights = {name: rounded(*found) for name, found in observed.seen.items()}
        """Rounded ones, by layer."""
        self._ranges: dict[Choice, dict[str, Range]] = {}

    def made(self, floats: Collection[str], choice: Choice) -> Model:
        """The model in 8 bits, but the layers named; with ranges by choice."""
        from onnxruntime import quantization

        model = self._source.copy()
        names = SafeNames(model.ir.graph)
        said: dict[str, list[dict[str, Any]]] = {
            names.now[name]: [{"rmin": np.float32(low), "rmax": np.float32(high)}]
            for name, (low, high) in self.ranges(choice).items()
        }
        for node in model.ir.graph:
            if (name := node.name or "") in self.weights and name not in floats:
                weight = node.inputs[1]
                assert weight is not None and weight.name
                weight.const_value = ir.tensor(self.weights[name], name=weight.name)
                said[weight.name] = self._scales(name, quantization.QuantType.QInt8)
        others = [node.name for node in model.ir.graph if node.op_type in TAKEN and not _is_taken(node)]
        with tempfile.TemporaryDirectory(prefix="onward-int8-") as folder, _quietly():
            file, out = Path(folder) / "floats.onnx", Path(folder) / "integers.onnx"
            model.save(file)
            quantization.quantize_static(
                file,
                out,
                _Reader([{names.now[name]: x for name, x in inputs.items()} for inputs in self._samples]),
                op_types_to_quantize=TAKEN,
                per_channel=True,
                reduce_range=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                nodes_to_exclude=[*floats, *others],
                extra_options={"TensorQuantOverrides": said},
            )
            found = load(out.read_bytes())
        names.undo(found.ir.graph)
        return replace(self._source, ir=found.ir, path=None)

    def ranges(self, choice: Choice) -> dict[str, Range]:
        """By value."""
        if choice not in self._ranges:
            self._ranges[choice] = {name: self._observed.ranges.of(name, choice) for name in self._observed.ranges}
        return self._ranges[choice]

    def _scales(self, name: str, kind: Any) -> list[dict[str, Any]]:
        matrix, _ = self._observed.seen[name]
        zero = np.array(0, np.int8)
        said = [{"quant_type": kind, "scale": scale, "zero_point": zero} for scale in scales(matrix)]
        said[0]["axis"] = matrix.axis
        return said


def _is_taken(node: ir.Node) -> bool:
    return is_layer(node) or (node.op_type in FOLLOW and node.outputs[0].dtype == ir.DataType.FLOAT)


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


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """It advises everybody to preprocess models, which Onward does its own way."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
