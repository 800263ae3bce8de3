"""Scopes: which module of the original each node belonged to, as far as the names in a file tell."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import cast

import onnx_ir as ir

from onward.backends.emit.names import path_of, strings
from onward.backends.emit.statements import Scope
from onward.graph.replace import DOMAIN, new_node, only_user
from onward.graph.walk import all_nodes
from onward.graph.weight_names import Signature, is_named

NO_MODULE = "_empty_nn_module_stack_from_metadata_hook"
"""What torch.export writes for a node, such as the size of an input, that no module made."""
ALIGNED = "onward.scope"
"""Where a node keeps a scope that is spelled out."""


def has_scope(node: ir.Node) -> bool:
    """Whether the file tells to which module a node belongs."""
    if ALIGNED in node.meta:
        return True
    scopes = node.metadata_props.get("pkg.torch.onnx.name_scopes")
    name = node.metadata_props.get("onward.name") or node.name or ""
    return NO_MODULE not in scopes if scopes is not None else "/" in name


def scope_of(node: ir.Node) -> Scope:
    """The module a node belongs to, as far as the exporter wrote it down."""
    if ALIGNED in node.meta:
        return cast(Scope, node.meta[ALIGNED])
    scopes = node.metadata_props.get("pkg.torch.onnx.name_scopes")
    if scopes:
        modules = [n for n in strings(scopes)[:-1] if n and n != NO_MODULE]
        return path_of(modules[-1]) if modules else ()
    name = node.metadata_props.get("onward.name") or node.name or ""
    if "/" not in name:
        return ()
    return _scope_of_name(name)


@lru_cache(maxsize=65536)
def _scope_of_name(name: str) -> Scope:
    """`/layer1/layer1.0/conv1/Conv` (module names repeat their list's) → ('layer1', '0', 'conv1')."""
    path: tuple[str, ...] = ()
    previous = ""
    for part in [p for p in name.lstrip(";").partition(";")[0].split("/") if p][:-1]:
        fresh = part[len(previous) + 1 :] if previous and part.startswith(previous + ".") else part
        path += path_of(fresh)
        previous = part
    return path


def population(graph: ir.Graph) -> dict[Scope, int]:
    """How many nodes live in each scope; constants are no company."""
    counts: dict[Scope, int] = {}
    for node in all_nodes(graph):
        if node.op_type == "Constant":
            continue
        scope = scope_of(node)
        for i in range(1, len(scope) + 1):
            counts[scope[:i]] = counts.get(scope[:i], 0) + 1
    return counts


def align_scopes(graph: ir.Graph, signature: Signature) -> None:
    """Spell scopes out as the weights' names do, in place.

    An exporter names modules that are called: `/encoder/0/conv` reads `net.encoder.0.conv.weight` where nobody calls
    `net` itself. Where all weights below a scope agree on what is missing, all nodes in the scope stand there.
    """
    found: dict[Scope, Counter[Scope]] = {}
    nodes = [(node, scope) for node in all_nodes(graph) if (scope := scope_of(node))]
    for node, scope in nodes:
        for value in node.inputs:
            owner = _owner(value, signature)
            if owner[-1:] == scope[-1:] and len(value.uses() if value is not None else ()) == 1:
                for length, place in enumerate(_aligned(scope, owner), 1):
                    found.setdefault(scope[:length], Counter())[owner[:place]] += 1
    longer = {scope: next(iter(places)) for scope, places in found.items() if len(places) == 1}
    if all(scope == place for scope, place in longer.items()):
        return
    for node, scope in nodes:
        known = next((n for n in range(len(scope), 0, -1) if scope[:n] in longer), 0)
        if known:
            node.meta[ALIGNED] = longer[scope[:known]] + scope[known:]


def repeat_views(graph: ir.Graph) -> None:
    """Let each module add the axes that it needs to what it is given, in place.

    An exporter does the same only once, in the first layer, and the others would read it from there.
    """
    for node in [node for node in all_nodes(graph) if node.op_type == "Unsqueeze" and not node.domain]:
        scope, maker = scope_of(node), node.inputs[0].producer() if node.inputs[0] is not None else None
        own = any(scope_of(use.node)[: len(scope)] == scope for use in node.outputs[0].uses())
        if not scope or not own or maker is None or scope_of(maker)[: len(scope)] == scope:
            continue
        readers: dict[Scope, list[tuple[ir.Node, int]]] = {}
        for use in node.outputs[0].uses():
            if use.node.graph is node.graph and scope_of(use.node)[: len(scope)] != scope:
                readers.setdefault(scope_of(use.node), []).append((use.node, use.idx))
        places = {reader: i for i, reader in enumerate(node.graph or ())} if readers else {}
        for other, uses in readers.items():
            first = min((reader for reader, _ in uses), key=places.__getitem__)
            attributes = {name: attribute.value for name, attribute in node.attributes.items()}
            view = new_node(node.op_type, node.inputs, attributes, node, first)
            view.meta[ALIGNED] = other
            view.outputs[0].type, view.outputs[0].shape = node.outputs[0].type, node.outputs[0].shape
            for reader, index in uses:
                reader.replace_input_with(index, view.outputs[0])


LAYERS = ("Int8Linear", "DynamicLinear")
_PASSING = ("Rounded", "Reshape", "Transpose", "Cast", "QuantizeLinear", "DequantizeLinear")
"""What stands between a layer and its bias, or its norm, where a network is quantized."""
FARTHEST = 4


def settle_layers(graph: ir.Graph, signature: Signature) -> None:
    """Let quantized layers of which no name is left belong to the module of their bias, or of what they read."""
    for node in all_nodes(graph):
        is_layer = node.op_type in LAYERS and node.domain == DOMAIN
        if not is_layer or has_scope(node) or any(_owner(value, signature) for value in node.inputs):
            continue
        if place := _after(node, signature) or _before(node, signature):
            node.meta[ALIGNED] = (*place, "linear")


def _after(node: ir.Node, signature: Signature) -> Scope:
    """The module of the first weight that is added to what a layer gives."""
    for _ in range(FARTHEST):
        user = only_user(node.outputs[0])
        owner = next(filter(None, (_owner(value, signature) for value in user.inputs)), ()) if user is not None else ()
        if user is None or has_scope(user) or owner or user.op_type not in _PASSING:
            return owner
        node = user
    return ()


def _before(node: ir.Node, signature: Signature) -> Scope:
    """The module around the layer whose result a layer reads."""
    for _ in range(FARTHEST):
        value = node.inputs[0] if node.inputs else None
        maker = value.producer() if value is not None else None
        owner = next(filter(None, (_owner(v, signature) for v in maker.inputs)), ()) if maker is not None else ()
        if maker is None or has_scope(maker) or owner or maker.op_type not in _PASSING:
            return owner[:-1]
        node = maker
    return ()


def _owner(value: ir.Value | None, signature: Signature) -> Scope:
    """The module that has a weight, by its name."""
    if value is None or not value.is_initializer() or not is_named(value, signature):
        return ()
    return path_of(value.name or "")[:-1]


def _aligned(scope: Scope, owner: Scope) -> list[int]:
    """How much of the owner's path each part of a scope reaches; nothing if the owner's path does not have them all."""
    reached, place = [], 0
    for part in scope:
        if part not in owner[place:]:
            return []
        place += owner[place:].index(part) + 1
        reached.append(place)
    return reached if place == len(owner) else []
