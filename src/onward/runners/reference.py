"""Runs a model on ONNX's own reference implementation, in numpy: slow, and close to the text of the standard."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from onward.canon.custom import custom_op
from onward.errors import UnsupportedError
from onward.gate.images import opened_image
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.plugins.op import CustomOp
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.custom import with_bodies
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

    model = with_bodies(model)
    with readable(model) as source:
        evaluator = ReferenceEvaluator(source, new_ops=[ImageDecoder, *_customs(model)])

    def run(inputs: Inputs) -> Outputs:
        found = evaluator.run(None, inputs)
        return {name: _array(value) for name, value in zip(evaluator.output_names, found, strict=True)}

    return run


def _customs(model: Model) -> list[Any]:
    """Classes by which the evaluator runs custom ops that have no body."""
    from onnx.reference.op_run import OpRun

    functions = [node for function in model.ir.functions.values() for node in function]
    nodes = [*all_nodes(model.ir.graph), *functions]
    own = {op for node in nodes if (op := custom_op(node, model.ir)) is not None}
    for op in own:
        if op.reference is None and not op.functions:
            raise UnsupportedError(f"{op.key} has no reference: its plugin has neither @op.numpy nor @op.body")
    keys = [(op, domain) for op in own for domain in op.domains]
    return [type(op.name, (OpRun,), {"op_domain": domain, "_run": _run_of(op)}) for op, domain in keys]


def _run_of(op: CustomOp) -> Any:
    def run(self: Any, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        given = {key: value for key, value in attributes.items() if value is not None}
        return tuple(op.run(inputs, given)[: len(self.onnx_node.output)])

    return run


def _array(value: Any) -> Any:
    """Some of its operators give numpy's scalars."""
    if isinstance(value, list | tuple):
        return [_array(item) for item in value]
    return np.asarray(value) if isinstance(value, np.generic | int | float) else value


register(Runner("reference", "the reference implementation of the onnx package", "onnx", prepare, {}))
