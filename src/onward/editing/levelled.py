"""Two models brought to the same opsets, so that their nodes can stand in one graph."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from onward.canon.upgrade import ML, has_outdated, upgrade
from onward.errors import UnsupportedError
from onward.graph.origin import KEY as ORIGIN
from onward.graph.rewriter import DIALECT
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.training.info.names import nodes_of


def level(first: Model, second: Model) -> None:
    """Upgrade the older of the two, in place: to the opset of the newer, or where nodes have to be rewritten for that,
    both to the oldest opset that they are rewritten in.
    """
    imports = [model.ir.opset_imports for model in (first, second)]
    for each in imports:
        if "ai.onnx" in each:
            each[""] = each.pop("ai.onnx")
    shared = imports[0].keys() & imports[1].keys()
    if other := sorted(d for d in shared - {"", ML} if imports[0][d] != imports[1][d]):
        raise UnsupportedError(
            f"one model is written for version {imports[0][other[0]]} of the domain {other[0]!r} and the other for"
            f" {imports[1][other[0]]}: nobody knows how to bring the one to the other"
        )
    if all(imports[0][domain] == imports[1][domain] for domain in shared):
        return
    target = max(each.get("", 1) for each in imports)
    if target < DIALECT and any(has_outdated(model.ir, target) for model in (first, second)):
        target = DIALECT
    for model in (first, second):
        _check_training(model, target)
        upgrade(model.ir, target)
        for graph in (model.ir.graph, *(function.graph for function in model.ir.functions.values())):
            for node in all_nodes(graph):
                node.metadata_props.pop(ORIGIN, None)
    if (versions := [each[ML] for each in imports if ML in each]) and len(set(versions)) > 1:
        raise UnsupportedError(
            f"one model needs version {versions[0]} of {ML}, which still has its trees, and the other {versions[1]}"
        )


def _check_training(model: Model, target: int) -> None:
    """Graphs of training information stay as they are written, which has to mean the same."""
    before = model.ir.opset_imports.get("", target)
    for node in _nodes(model):
        if before < target and _differs(node, before, target):
            raise UnsupportedError(
                f"the training information is of opset {before} and has a {node.op_type}, which means something else"
                f" in {target}: remove it, or make both models with one opset"
            )


def _nodes(model: Model) -> Iterator[onnx.NodeProto]:
    for info in model.training_info:
        yield from nodes_of(info)


def _differs(node: onnx.NodeProto, before: int, after: int) -> bool:
    probe = ir.Model(ir.Graph([], [], nodes=[ir.Node(node.domain, node.op_type, [], version=before)]), ir_version=10)
    return has_outdated(probe, after)
