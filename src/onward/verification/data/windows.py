"""Whether images are large enough for the windows that slide over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.infer import infer
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.runners.calls import Inputs

POOLINGS = {"AveragePool", "MaxPool", "LpPool"}


def room_for_windows(model: Model) -> Callable[[Inputs], bool] | None:
    """Whether no window of a pooling is larger than its image, which ONNX Runtime averages all the same, and others
    refuse; None where there is no pooling.
    """
    if not any(node.op_type in POOLINGS for node in all_nodes(model.ir.graph)):
        return None

    def fits(inputs: Inputs) -> bool:
        copy = model.ir.clone()
        for value in copy.graph.inputs:
            given = inputs.get(value.name or "")
            if isinstance(given, np.ndarray):
                value.shape = ir.Shape(given.shape)
        infer(copy)
        return all(_has_room(node) for node in all_nodes(copy.graph) if node.op_type in POOLINGS)

    return fits


def _has_room(node: ir.Node) -> bool:
    image = None if node.inputs[0] is None else node.inputs[0].shape
    kernel = _numbers(node, "kernel_shape")
    rank = len(kernel)
    if image is None or len(image) != rank + 2 or _text(node, "auto_pad").startswith("SAME"):
        return True
    pads, dilations = _numbers(node, "pads") or [0] * 2 * rank, _numbers(node, "dilations") or [1] * rank
    sizes = list(image)[2:]
    return all(
        not isinstance(size, int) or size + pads[i] + pads[i + rank] > (kernel[i] - 1) * dilations[i]
        for i, size in enumerate(sizes)
    )


def _numbers(node: ir.Node, name: str) -> list[int]:
    attribute: Any = node.attributes.get(name)
    return [] if attribute is None else list(attribute.as_ints())


def _text(node: ir.Node, name: str) -> str:
    attribute = node.attributes.get(name)
    return "" if attribute is None else attribute.as_string()
