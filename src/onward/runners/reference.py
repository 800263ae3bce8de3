"""Runs a model on ONNX's own reference implementation, in numpy: slow, and close to the text of the standard."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from onward.gate.images import opened_image
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.files import readable
from onward.runners.runner import Runner, register


def prepare(model: Model, mode: str) -> Run:
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops import op_image_decoder

    class ImageDecoder(op_image_decoder.ImageDecoder):  # type: ignore[misc]
        """For pictures only: Pillow, which it asks, opens other formats as well, some of which are programs."""

        op_domain = ""

        def _run(self, encoded: Any, pixel_format: str = "RGB") -> tuple[Any, ...]:
            content = encoded.tobytes()
            with opened_image(io.BytesIO(content), len(content)):
                return tuple(super()._run(encoded, pixel_format))

    with readable(model) as source:
        evaluator = ReferenceEvaluator(source, new_ops=[ImageDecoder])

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
