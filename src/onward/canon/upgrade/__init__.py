"""Upgrade: every node of a model, of whatever opset, becomes a node of the newest opset that means the same.

The work is done in memory and in one pass over the nodes. Weights are neither loaded nor copied. Where a
shape would simplify a rewrite but is not known, the rewrite computes with `Shape` instead; so the result is
right without shape inference, and shorter after it.
"""

from collections.abc import Iterable, Mapping
from functools import cache

import onnx
import onnx_ir as ir

from onward.canon.upgrade import (
    activation,
    control_flow,
    elementwise,
    ml,
    norm,
    pool,
    quantize,
    reduce,
    removed,
    resize,
    rnn,
    shape,
    signal,
)
from onward.canon.upgrade.registry import ENTRIES, Entry
from onward.errors import ConversionError, InvalidModelError, OnwardError, UnsupportedError
from onward.graph.infer_types import infer_types
from onward.graph.origin import mark_origin
from onward.graph.rewriter import DIALECT, Rewriter, describe
from onward.graph.walk import all_nodes

__all__ = ["ML", "has_outdated", "newest", "upgrade", "upgrade_node"]

FAMILIES = (
    activation,
    control_flow,
    elementwise,
    ml,
    norm,
    pool,
    quantize,
    reduce,
    removed,
    resize,
    rnn,
    shape,
    signal,
)

ML = "ai.onnx.ml"

KEPT = {"TreeEnsembleClassifier", "TreeEnsembleRegressor"}
"""Ops of `ai.onnx.ml` that version 5 deprecates and backends implement as they are: a model with one of them
goes to version 4."""


@cache
def newest() -> dict[str, int]:
    """The newest version of each domain that upgrades are known for."""
    ml = max(s.since_version for s in onnx.defs.get_all_schemas() if s.domain == ML)
    return {"": onnx.defs.onnx_opset_version(), ML: ml}


def upgrade(model: ir.Model, target: int | None = None) -> None:
    """Bring `model` to the newest opset, in place: its graph, the graphs inside it, and its functions.

    `target` stops at an older opset of the default domain, for a runtime that knows no newer: at 21 or later, or at any
    from which on no node has to be rewritten.
    """
    versions = _targets(model, target)
    if target is not None and target < DIALECT and has_outdated(model, target):
        raise ValueError(f"nodes are rewritten in opset {DIALECT} or a newer one, and not in {target}")
    op = Rewriter(model)
    graph_opsets = _opsets(model.graph.opset_imports, model.ir_version)
    _upgrade_scope(all_nodes(model.graph), graph_opsets, versions, op)
    _set_opsets(model.graph.opset_imports, versions)
    for function in model.functions.values():
        opsets = _opsets(function.opset_imports, model.ir_version)
        _upgrade_scope(all_nodes(function.graph), opsets, versions, op)
        _set_opsets(function.opset_imports, versions)


def has_outdated(model: ir.Model, target: int | None = None) -> bool:
    """Whether there is a node that `upgrade` has to rewrite: the others mean the same in the newest opset, or in
    `target`.
    """
    versions = _targets(model, target)
    ops: set[tuple[str, str, int]] = set()
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        opsets = _opsets(graph.opset_imports, model.ir_version)
        ops |= {(n.domain, n.op_type, n.version or opsets.get(n.domain) or 0) for n in all_nodes(graph)}
    return any(_next_entry(*op, versions.get(op[0], 0)) for op in ops)


def _targets(model: ir.Model, target: int | None = None) -> dict[str, int]:
    versions = dict(newest())
    if any(node.domain == ML and node.op_type in KEPT for node in all_nodes(model.graph)):
        versions[ML] = max(4, model.opset_imports.get(ML, 4))
    if target is not None:
        if not 1 <= target <= versions[""]:
            raise ValueError(f"target opset {target} is not between 1 and {versions['']}")
        versions[""] = target
    return versions


def _opsets(imports: Mapping[str, int], ir_version: int) -> dict[str, int]:
    opsets = {"" if domain == "ai.onnx" else domain: version for domain, version in imports.items()}
    if not opsets and ir_version < 3:
        opsets[""] = 1
    return opsets


def _set_opsets(imports: dict[str, int], versions: Mapping[str, int]) -> None:
    imports.pop("ai.onnx", None)
    imports[""] = versions[""]
    for domain in imports.keys() & versions.keys():
        imports[domain] = versions[domain]


def _upgrade_scope(
    nodes: Iterable[ir.Node], opsets: Mapping[str, int], versions: Mapping[str, int], op: Rewriter
) -> None:
    nodes = list(nodes)
    for node in nodes:
        mark_origin(node)
        if node.version is None:
            node.version = opsets.get(node.domain)
    for node in nodes:
        if node.domain in versions:
            upgrade_node(node, versions[node.domain], op)


def upgrade_node(node: ir.Node, target: int, op: Rewriter) -> list[ir.Node]:
    """Bring one node, whose version is set, to version `target` of its domain; gives what it became, in order."""
    if node.version is None:
        raise InvalidModelError(f"{describe(node)}: the model imports no opset for domain '{node.domain}'")
    if node.version > target:
        raise UnsupportedError(
            f"{describe(node)}: opset {node.version} is newer than {target}, the newest one known; "
            "install a newer release of the onnx package"
        )
    infer_types(node)
    created: list[ir.Node] = []
    while step := _next_entry(node.domain, node.op_type, node.version, target):
        since, entry = step
        _apply(entry, node, since, op)
        node.version = since
        created += op.created
        if node.graph is None:
            break
    else:
        node.version = target
    results = set(node.outputs)
    after = [new for new in created if results.intersection(new.inputs)]
    before = [new for new in created if new not in after]
    become = [found for new in before for found in upgrade_node(new, target, op)]
    become += [node] if node.graph is not None else []
    return become + [found for new in after for found in upgrade_node(new, target, op)]


def _apply(entry: Entry, node: ir.Node, since: int, op: Rewriter) -> None:
    try:
        entry(node, op.at(node))
    except OnwardError:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise ConversionError(f"{describe(node)}: it cannot be upgraded to version {since}: {problem}") from error


def _next_entry(domain: str, op_type: str, version: int, target: int) -> tuple[int, Entry] | None:
    entries = ENTRIES.get((domain, op_type), ())
    return next((entry for entry in entries if version < entry[0] <= target), None)
