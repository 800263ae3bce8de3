"""Lower on demand: an op that a backend has no rule for is written in terms of simpler ones.

The definition is one of our own (`lower/<family>.py`), or else the function body that the op's schema carries. Nodes
are taken in order and typed on the way, since a definition may depend on the types of its inputs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from onward.canon.defaults import fill_nodes
from onward.canon.inline import Inliner
from onward.canon.lower.bodies import Definition, body_of, captured_by, definition, nodes_in
from onward.canon.lower.refused import REFUSED
from onward.canon.lower.registry import DIALECT, LOWERINGS
from onward.canon.upgrade import ML, upgrade_node
from onward.errors import UnsupportedError
from onward.graph.infer import Answers, Inference
from onward.graph.origin import mark_origin
from onward.graph.rewriter import Rewriter, describe
from onward.graph.walk import all_nodes, inner_graphs
from onward.registry import import_files

__all__ = [
    "LOWERINGS",
    "REFUSED",
    "has_foreign",
    "has_unruled",
    "key_of",
    "load_lowerings",
    "lower",
    "lower_foreign",
    "lower_nodes",
]

UPGRADED = ("", ML)
"""Domains whose nodes come in several versions."""


def load_lowerings() -> None:
    """Import every family, so that its lowerings are registered."""
    import_files(__name__)


def key_of(node: ir.Node) -> str:
    """`Gelu`, or `com.microsoft::Gelu` outside the default domain."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"


def lower(model: ir.Model, has_rule: Callable[[str], bool], answers: Answers | None = None) -> bool:
    """Replace every node without a rule by its definition, in place, as long as it has one; type all values.

    The model is at the newest opset, with its functions inlined and default attributes filled in. A node that has
    neither a rule nor a definition stays: the backend says what it lacks. Tells whether anything was replaced.
    `answers` of an earlier inference spare this one the same questions.
    """
    return lower_nodes(model, lambda node: not has_rule(key_of(node)), answers)


def lower_nodes(model: ir.Model, is_chosen: Callable[[ir.Node], bool], answers: Answers | None = None) -> bool:
    """As `lower`, for the nodes that are chosen."""
    load_lowerings()
    lowerer = _Lowerer(model, is_chosen, answers)
    lowerer.graph(model.graph)
    return lowerer.changed


def lower_foreign(model: ir.Model, has_rule: Callable[[str], bool], answers: Answers | None = None) -> bool:
    """As `lower`, for ops that ONNX does not define: so that what looks for patterns sees standard ops."""
    return lower(model, lambda key: has_rule(key) or not _is_foreign(key), answers)


def has_foreign(model: ir.Model) -> bool:
    """Whether there is anything for `lower_foreign` to replace."""
    return any(_is_foreign(key_of(node)) for node in all_nodes(model.graph))


def has_unruled(model: ir.Model, has_rule: Callable[[str], bool]) -> bool:
    """Whether there is anything for `lower` to look into; constants are no computation."""
    return not all(has_rule(key) for key in {key_of(node) for node in all_nodes(model.graph)} - {"Constant"})


def _is_foreign(key: str) -> bool:
    return key.startswith("com.microsoft::") or key == "SimplifiedLayerNormalization"


class _Typing(Rewriter):
    """A rewriter whose new values are typed as far as those of the model are."""

    def __init__(self, model: ir.Model, inference: Inference) -> None:
        super().__init__(model)
        self._inference = inference

    def _new(
        self, count: int, op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]
    ) -> ir.Node:
        new = super()._new(count, op_type, inputs, attributes)
        new.version = new.version if new.domain else DIALECT
        self._inference.node(new)
        return new


class _Lowerer:
    def __init__(self, model: ir.Model, is_chosen: Callable[[ir.Node], bool], answers: Answers | None) -> None:
        self.changed = False
        self._is_chosen = is_chosen
        self._opsets = model.opset_imports
        self._inference = Inference(model, answers)
        self._op = _Typing(model, self._inference)
        self._calls: dict[ir.OperatorIdentifier, ir.Function] = {}
        self._inliner = Inliner(self._calls, self._op.names, names_bodies=False)
        self._definitions: dict[bytes, Definition] = {}

    def graph(self, graph: ir.Graph) -> None:
        self._inference.enter(graph)
        for node in list(graph):
            self._node(node)

    def _node(self, node: ir.Node) -> None:
        pending = [node]
        while pending:
            node = pending.pop()
            graph = node.graph
            if self._is_chosen(node) and (created := self._expand(node)) is not None:
                pending += reversed([new for new in created if new.graph is graph])
                continue
            self._inference.node(node)
            for inner in inner_graphs(node):
                self._inference.depth += 1
                self.graph(inner)
                self._inference.depth -= 1

    def _expand(self, node: ir.Node) -> list[ir.Node] | None:
        """Put the definition of `node` in its place; gives the nodes of the definition, or None if there is none."""
        key = key_of(node)
        if key in REFUSED:
            raise UnsupportedError(f"{describe(node)}: {REFUSED[key]}")
        own = LOWERINGS.get(key)
        if own is not None:
            mark_origin(node)
            own(node, self._op.at(node))
            return self._canonical(list(self._op.created))
        body = body_of(node)
        if body is None:
            return None
        known = self._definitions.get(body)
        if known is None:
            known = self._definitions[body] = definition(body)
        if not known.serves(node):
            return None
        self._calls[node.op_identifier()] = known.function
        self._inliner.expand(node, captured_by(node, known.function))
        self._calls.clear()
        return self._canonical(self._inliner.created)

    def _canonical(self, created: list[ir.Node]) -> list[ir.Node]:
        """The same at the opset of the model, with default attributes."""
        self.changed = True
        nodes = [node for new in created for node in (new, *nodes_in(new))]
        become = [found for node in nodes for found in self._upgraded(node)]
        fill_nodes(become, self._opsets)
        return become

    def _upgraded(self, node: ir.Node) -> list[ir.Node]:
        target = self._opsets.get(node.domain)
        if node.version is None:
            node.version = target
        if target is None or node.domain not in UPGRADED:
            return [node]
        return upgrade_node(node, target, self._op)
