"""Two models brought to the same opsets, so that their nodes can stand in one graph."""

from __future__ import annotations

from onward.canon.opset import at_opset
from onward.canon.upgrade import ML, upgrade
from onward.errors import UnsupportedError
from onward.graph.origin import KEY as ORIGIN
from onward.graph.walk import all_nodes
from onward.model import Model


def levelled(first: Model, second: Model) -> tuple[Model, Model]:
    """Copies of both, the older of them at the opset of the newer."""
    both = first.copy(), second.copy()
    imports = [model.ir.opset_imports for model in both]
    for each in imports:
        if "ai.onnx" in each:
            each[""] = each.pop("ai.onnx")
    shared = imports[0].keys() & imports[1].keys()
    if other := sorted(d for d in shared - {"", ML} if imports[0][d] != imports[1][d]):
        raise UnsupportedError(
            f"one model is written for version {imports[0][other[0]]} of the domain {other[0]!r} and the other for"
            f" {imports[1][other[0]]}: nobody knows how to bring the one to the other"
        )
    target = max(each.get("", 1) for each in imports)
    one, two = (model if model.ir.opset_imports.get("") == target else at_opset(model, target).model for model in both)
    if len({model.ir.opset_imports[ML] for model in (one, two) if ML in model.ir.opset_imports}) > 1:
        _same_classical(one, two, target)
    return one, two


def _same_classical(first: Model, second: Model, target: int) -> None:
    """Both at one version of `ai.onnx.ml`, in place: the newest, but for trees, which stay what they are."""
    for model in (first, second):
        upgrade(model.ir, target)
        for graph in (model.ir.graph, *(function.graph for function in model.ir.functions.values())):
            for node in all_nodes(graph):
                node.metadata_props.pop(ORIGIN, None)
    versions = [model.ir.opset_imports[ML] for model in (first, second)]
    if versions[0] != versions[1]:
        raise UnsupportedError(
            f"one model needs version {versions[0]} of {ML}, which still has its trees, and the other {versions[1]}"
        )
