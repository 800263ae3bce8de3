"""Runs a model on ONNX's own reference implementation, in numpy: slow, and close to the text of the standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.model import Model
from onward.verification.files import readable
from onward.verification.runners import Inputs, Outputs, Run, Runner, register


def prepare(model: Model, mode: str) -> Run:
    from onnx.reference import ReferenceEvaluator

    with readable(model) as source:
        evaluator = ReferenceEvaluator(source)

    def run(inputs: Inputs) -> Outputs:
        found = evaluator.run(None, inputs)
        return {name: _array(value) for name, value in zip(evaluator.output_names, found, strict=True)}

    return run


def _array(value: Any) -> Any:
    """Some of its operators give numpy's scalars."""
    if isinstance(value, list | tuple):
        return [_array(item) for item in value]
    return np.asarray(value) if isinstance(value, np.generic | int | float) else value


register(Runner("reference", "the reference implementation of the onnx package", "onnx", prepare, {}))
