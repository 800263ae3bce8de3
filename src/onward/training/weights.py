"""Trained weights go back to where the model holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.model import Model

Array = np.ndarray[Any, np.dtype[Any]]


def homes(graph: ir.Graph) -> dict[str, ir.Value | ir.Node]:
    """Where weights are held, by name: initializers, and nodes that give a constant."""
    found: dict[str, ir.Value | ir.Node] = {}
    for node in graph:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and node.outputs[0].name:
            found[node.outputs[0].name] = node
    return found | dict(graph.initializers)


def check_homes(model: Model, names: Iterable[str]) -> None:
    """Refuse, before any training, weights that could not be saved."""
    known = homes(model.ir.graph)
    for name in names:
        if name not in known:
            raise OnwardError(f"the model as it was given holds no weight {name!r} in which a trained one can be saved")


def with_weights(model: Model, arrays: Mapping[str, Array]) -> Model:
    """A copy of a model with other elements in its weights."""
    check_homes(model, arrays)
    copy = model.ir.clone()
    known = homes(copy.graph)
    for name, array in arrays.items():
        home, tensor = known[name], ir.Tensor(array.copy(), name=name)
        if isinstance(home, ir.Node):
            home.attributes.clear()
            home.attributes["value"] = ir.AttrTensor("value", tensor)
        else:
            home.const_value = tensor
    return Model(copy, [], None, model.ir_version)
