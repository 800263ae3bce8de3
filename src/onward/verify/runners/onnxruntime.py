"""Runs a model on ONNX Runtime, the referee."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnxruntime


def prepare(model: onnx.ModelProto) -> Callable[[list[Any]], list[Any]]:
    """A function from numpy inputs, in order, to numpy outputs, in order."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]

    def run(inputs: list[Any]) -> list[Any]:
        return list(session.run(None, dict(zip(names, inputs, strict=False))))

    return run
