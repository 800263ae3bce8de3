"""Runs a model on ONNX Runtime, the referee."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime


def _array(value: Any) -> Any:
    """ONNX Runtime takes arrays, not numpy's scalars."""
    if isinstance(value, list):
        return [_array(v) for v in value]
    return np.asarray(value) if isinstance(value, np.generic) else value


def prepare(model: onnx.ModelProto) -> Callable[[list[Any]], list[Any]]:
    """A function from numpy inputs, in order, to numpy outputs, in order."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]

    def run(inputs: list[Any]) -> list[Any]:
        feeds = {name: _array(value) for name, value in zip(names, inputs, strict=False)}
        return list(session.run(None, feeds))

    return run
