"""A model at another opset: only what has to change does, up or down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import onnx
import onnx_ir as ir

from onward.canon.called import callers_first, type_inputs
from onward.canon.downgrade import Mover, RefusedError, is_moved
from onward.canon.inline import inline
from onward.canon.ir_version import at_ir_version, keep_weights
from onward.canon.training import moved_training, names_in
from onward.canon.upgrade import ML
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer
from onward.graph.origin import KEY
from onward.graph.rewriter import is_used
from onward.graph.scan import keep_ranks, ranks_of_results
from onward.graph.walk import all_graphs, all_nodes
from onward.hub.write import copied
from onward.model import Model

OLDEST = 7
"""The oldest opset that is written: ONNX Runtime runs none before it."""


@dataclass(frozen=True)
class Moved:
    """A model at the opset that was asked for."""

    model: Model
    changed: int
    """How many nodes of the original had to change."""
    dropped: tuple[str, ...] = ()
    """What an older form of the file has no place for, a phrase each."""


def newest_opset() -> int:
    return int(onnx.defs.onnx_opset_version())


def at_opset(model: Model, opset: int | None, ir_version: int | None = None) -> Moved:
    """A copy of `model` at version `opset` of the default domain, in an IR version that runtimes of its time read.

    Its nodes are the same, but for those whose op has another version there; names of inputs, outputs, weights and
    values between nodes stay. `ai.onnx.ml` goes down to the version that was released with the opset. Raises
    `UnsupportedError` that names the first node which the opset cannot say.
    """
    if opset is not None and not OLDEST <= opset <= newest_opset():
        raise OnwardError(f"opset {opset} cannot be written: give one from {OLDEST} to {newest_opset()}")
    present, kept = _opset_of(model.ir, ""), names_in(model.training_info)
    inlined = ir_version is not None and ir_version < 8
    graph, changed, wanted = _moved(model.ir, opset or present, opset is not None, inlined, kept)
    infos = moved_training(model, wanted, graph) if opset and present != opset else model.training_info
    made = replace(model, ir=graph, training_info=list(infos), path=None, ir_version=0 if opset else model.ir_version)
    dropped = at_ir_version(made, ir_version)
    keep_weights(made, model.ir_version)
    return Moved(made, changed, tuple(dropped))


def ml_of(opset: int) -> int:
    """The version of `ai.onnx.ml` that was released with an opset."""
    rows = [row for row in onnx.helper.VERSION_TABLE if row[2] >= opset]
    return max(1, min(int(row[3]) for row in rows if row[2] == min(r[2] for r in rows)))


def _moved(
    model: ir.Model, opset: int, with_ml: bool, inlined: bool, kept: set[str]
) -> tuple[ir.Model, int, dict[str, int]]:
    """A copy at an opset, how many nodes changed, and the versions of the domains.

    `ai.onnx.ml` is a later one than the opset's where that cannot say the model: it is a domain of its own.
    """
    wanted = {"": opset}
    later: list[int] = []
    if (ml := _opset_of(model, ML)) and with_ml:
        later = list(range(min(ml, ml_of(opset)), ml + 1))
        wanted[ML] = later.pop(0)
    while True:
        try:
            graph, changed = _with_functions(model, wanted, inlined, kept)
            return graph, changed, wanted
        except RefusedError as error:
            if error.domain != ML or not later:
                raise
            wanted[ML] = later.pop(0)


def _with_functions(model: ir.Model, wanted: Mapping[str, int], inlined: bool, kept: set[str]) -> tuple[ir.Model, int]:
    """Functions stay; where they alone say too little they are inlined: what surrounds a call says more."""
    graph = copied(model)
    _plain_domain(graph)
    if graph.functions and not inlined and not _needs_inlining(graph, wanted):
        try:
            return graph, _move(graph, wanted, kept)
        except UnsupportedError:
            graph = copied(model)
            _plain_domain(graph)
    if graph.functions:
        _inline(graph)
    return graph, _move(graph, wanted, kept)


def _opset_of(model: ir.Model, domain: str) -> int:
    names = ("", "ai.onnx") if not domain else (domain,)
    return next((model.opset_imports[name] for name in names if name in model.opset_imports), 0 if domain else 1)


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        yield from all_graphs(graph)


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs


def _plain_domain(model: ir.Model) -> None:
    """The default domain has two names, of which one is used in the schemas."""
    for imports in (model.opset_imports, *(f.opset_imports for f in model.functions.values())):
        if "ai.onnx" in imports:
            imports[""] = imports.pop("ai.onnx")
    if not model.opset_imports and model.ir_version < 3:
        model.opset_imports[""] = 1


def _set_versions(nodes: Iterable[ir.Node], imports: Mapping[str, int]) -> list[ir.Node]:
    nodes = list(nodes)
    for node in nodes:
        node.domain = "" if node.domain == "ai.onnx" else node.domain
        node.version = node.version or imports.get(node.domain)
    return nodes


def _inline(model: ir.Model) -> None:
    """Origins that inlining writes are for messages, not for the file."""
    inline(model)
    for node in all_nodes(model.graph):
        node.metadata_props.pop(KEY, None)


def _needs_inlining(model: ir.Model, wanted: Mapping[str, int]) -> bool:
    """Whether a node that has to change takes an attribute from the function that it is in."""
    for function in model.functions.values():
        for node in _set_versions(all_nodes(function.graph), function.opset_imports):
            refers = any(attribute.is_ref() for attribute in node.attributes.values())
            if refers and node.version is not None and node.domain in wanted and is_moved(node, wanted[node.domain]):
                return True
    return False


def _move(model: ir.Model, wanted: Mapping[str, int], kept: set[str]) -> int:
    """Bring all nodes to the opsets wanted, in place; gives how many had to change."""
    nodes = _set_versions(all_nodes(model.graph), model.opset_imports)
    for function in model.functions.values():
        nodes += _set_versions(all_nodes(function.graph), function.opset_imports)
    moving = [n for n in nodes if n.domain in wanted and n.version is not None and is_moved(n, wanted[n.domain])]
    if moving:
        declared = _declared(model)
        inside = {v: _Declared(v.type, v.shape) for f in model.functions.values() for v in _values(f.graph)}
        unread = {node for node in nodes if not _is_read(node, kept)}
        idle = {value for graph in _graphs(model) for value in graph.initializers.values() if not is_used(value)}
        inference = infer(model)
        for function in callers_first(model):
            type_inputs(function, model)
            inference.graph(function.graph)
        Mover(model, wanted, inference).nodes(moving)
        _remove_left(model, unread, idle, kept)
        ranks = ranks_of_results(model)
        for graph in _graphs(model):
            for value in _values(graph):
                if (kind := declared.get(value.name or "")) is not None:
                    value.type, value.shape = kind.type or value.type, kind.shape
        for function in model.functions.values():  # what was inferred holds for one of its calls
            for value in _values(function.graph):
                value.type, value.shape = inside.get(value, _Declared(None, None))
        keep_ranks(ranks)
        _forget_marks(model)
    for imports in (model.opset_imports, *(f.opset_imports for f in model.functions.values())):
        for domain in imports.keys() & wanted.keys():
            imports[domain] = wanted[domain]
    model.opset_imports.setdefault("", wanted[""])
    return len(moving)


class _Declared(NamedTuple):
    type: ir.TypeProtocol | None
    shape: ir.Shape | None


def _declared(model: ir.Model) -> dict[str, _Declared]:
    """What the file says of its values, by name; nothing of a name that several graphs have."""
    found: dict[str, _Declared] = {}
    several = set()
    for graph in _graphs(model):
        for value in _values(graph):
            name = value.name or ""
            if name in found:
                several.add(name)
            found[name] = _Declared(value.type, value.shape)
    return {name: kind for name, kind in found.items() if name and name not in several}


def _is_read(node: ir.Node, kept: set[str]) -> bool:
    return any(is_used(value) or value.name in kept for value in node.outputs)


def _remove_left(model: ir.Model, unread: set[ir.Node], idle: set[ir.Value], kept: set[str]) -> None:
    """Remove constants and nodes that nothing reads any more; those that nothing read before stay."""
    for graph in reversed(list(_graphs(model))):
        for node in reversed(list(graph)):
            if node not in unread and not _is_read(node, kept):
                graph.remove(node, safe=True)
    for graph in _graphs(model):
        for name, value in list(graph.initializers.items()):
            if not (is_used(value) or value in idle or value.is_graph_input() or name in kept):
                graph.initializers.pop(name)


def _forget_marks(model: ir.Model) -> None:
    for graph in _graphs(model):
        for node in graph:
            node.metadata_props.pop(KEY, None)
