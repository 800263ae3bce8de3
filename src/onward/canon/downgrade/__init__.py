"""Downgrade: nodes become nodes of an older opset that mean the same, or are refused by name.

Only nodes whose op has another version there are touched. One that has is brought down version by version, by the
entries of `downgrade/<family>.py`; an op that is younger than the opset is written by the body in its schema. What a
rewrite writes is brought to the opset as well, up or down.
"""

from collections.abc import Iterable, Mapping

import onnx_ir as ir
from onnx.defs import OpSchema

import onward.canon.upgrade  # noqa: F401  (which registers the upgrades)
from onward.canon.defaults import fill_nodes
from onward.canon.downgrade.bodies import Bodies
from onward.canon.downgrade.fit import fit, fit_types, say_defaults
from onward.canon.downgrade.fold import folded
from onward.canon.downgrade.registry import ENTRIES, Entry, Older, RefusedError, Unsayable
from onward.canon.downgrade.schemas import schema_at, versions_of
from onward.canon.upgrade.registry import ENTRIES as UPGRADES
from onward.canon.upgrade.registry import Entry as Upgrade
from onward.errors import ConversionError, InvalidModelError, OnwardError
from onward.graph.infer import Inference
from onward.graph.origin import mark_origin, origin
from onward.graph.rewriter import DIALECT, describe
from onward.graph.walk import inner_graphs
from onward.registry import import_files

__all__ = ["ENTRIES", "Mover", "RefusedError", "is_moved", "load_downgrades"]


def load_downgrades() -> None:
    """Import every family, so that its entries are registered."""
    import_files(__name__)


def is_moved(node: ir.Node, wanted: int) -> bool:
    """Whether the op of a node, whose version is set, is another one in opset `wanted`."""
    assert node.version is not None
    now, then = (schema_at(node.domain, node.op_type, version) for version in (node.version, wanted))
    if now is None or then is None:
        return now is not then or _removed(node, wanted)
    return bool(now.since_version != then.since_version)


def _removed(node: ir.Node, wanted: int) -> bool:
    """Whether an op is one of those that are in no schema any more."""
    assert node.version is not None
    return any(node.version < since <= wanted for since, _ in UPGRADES.get((node.domain, node.op_type), ()))


class Mover:
    """Brings the nodes of one model to the opset that is wanted of each domain."""

    def __init__(self, model: ir.Model, wanted: Mapping[str, int], inference: Inference) -> None:
        load_downgrades()
        self._wanted = wanted
        self._inference = inference
        self._op = Older(model, inference)
        self._op.target = wanted[""]
        self._bodies = Bodies(model, self._op.names)
        self._raised: set[ir.Node] = set()
        """Nodes that were upgraded: they may say more than the version that they have has words for."""

    def avoid(self, names: Iterable[str | None]) -> None:
        """Give none of these names to a value."""
        for name in names:
            if name:
                self._op.names.value(name)

    def nodes(self, nodes: Iterable[ir.Node]) -> None:
        """All of the nodes, whose versions are set, and what they become."""
        pending = list(nodes)[::-1]
        while pending:
            node = pending.pop()
            if node.graph is not None and node.domain in self._wanted:
                pending += self._moved(node)[::-1]

    def _moved(self, node: ir.Node) -> list[ir.Node]:
        """Take one step with a node; gives what still has to be looked at, in order."""
        if node.version is None:
            raise InvalidModelError(f"{describe(node)}: the model imports no opset for domain '{node.domain}'")
        wanted = self._wanted[node.domain]
        if not is_moved(node, wanted) and (node not in self._raised or _fits(node, wanted)):
            node.version = wanted
            return []
        mark_origin(node)
        if any(v is not None and v.type is None for v in node.outputs):
            self._inference.node(node)
        try:
            return self._up(node, wanted) if node.version <= wanted else self._down(node, wanted)
        except Unsayable as error:
            lowest = error.since or self._lowest(node)
            words = f"opset {wanted}{_of(node.domain)} cannot say it: {error}"
            raise RefusedError(f"{_named(node)}: {words}; give opset {lowest} or later", node.domain) from error
        except OnwardError:
            raise
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise ConversionError(f"{describe(node)}: it cannot be brought to opset {wanted}: {problem}") from error

    def _lowest(self, node: ir.Node) -> int:
        """The opset of the first version that says what the node, as far as it was brought down, says."""
        assert node.version is not None
        schema = schema_at(node.domain, node.op_type, node.version)
        return node.version if schema is None else int(schema.since_version)

    def _up(self, node: ir.Node, wanted: int) -> list[ir.Node]:
        step = _upgrade(node, wanted)
        if step is None and not _fits(node, wanted):
            step = _upgrade(node, DIALECT)  # what an upgrade left for the next one; from there it goes down again
        if step is None:
            node.version = wanted
            return []
        since, entry = step
        entry(node, self._op.at(node))
        node.version = since
        self._raised.add(node)
        return self._next(node)

    def _down(self, node: ir.Node, wanted: int) -> list[ir.Node]:
        assert node.version is not None
        step = _entry(node, wanted)
        if step is not None:
            since, entry = step
            schema, start = schema_at(node.domain, node.op_type, since - 1), node.version
            if schema is not None:
                say_defaults(node, start, schema)
            before, node.version = node.op_type, since
            entry(node, self._op.at(node))
            if node.op_type != before:
                node.version = DIALECT if node.version == since else node.version
            elif node.graph is not None:
                if schema is not None:
                    fit(node, start, schema, self._op)
                node.version = since - 1
            return self._next(node)
        then = schema_at(node.domain, node.op_type, wanted)
        if then is None:
            return self._written(node)
        say_defaults(node, node.version, then)
        try:
            fit(node, node.version, then, self._op.at(node))
        except Unsayable:
            created = self._by_body(node)
            if created is None:
                raise
            return created
        node.version = wanted
        return self._next(node)

    def _written(self, node: ir.Node) -> list[ir.Node]:
        """An op that is younger than the opset: what it computes, its body, or a refusal."""
        op = self._op.at(node)
        if folded(node, op):
            return self._next(node)
        created = self._by_body(node)
        if created is None:
            first = versions_of(node.domain, node.op_type)
            since = first[0].since_version if first else node.version
            raise Unsayable(f"the op came with version {since}, and there is no way to say it in older ones", since)
        return created

    def _by_body(self, node: ir.Node) -> list[ir.Node] | None:
        """The body of an op in its place, if there is one in other ops."""
        fill_nodes([node], {})
        created = self._bodies.expand(node)
        if created is None:
            return None
        every = []
        for new in created:
            self._inference.node(new)
            schema = schema_at(new.domain, new.op_type, new.version or 0)
            if schema is not None:  # some bodies have no words of their time for all types of their op
                fit_types(new, schema, self._op.at(new))
                every += self._op.created
            every.append(new)
        return every

    def _next(self, node: ir.Node) -> list[ir.Node]:
        """What a rewrite left and made, and the nodes of the graphs inside the latter."""
        created = list(self._op.created)
        inner = [found for new in created for graph in inner_graphs(new) for found in graph]
        return [*created, *inner, *([node] if node.graph is not None else [])]


def _named(node: ir.Node) -> str:
    """The node of the file, and the one that it became if that is what cannot be said."""
    found = origin(node)
    return f"{found}" if found.op_type == node.op_type else f"{found}, as {node.op_type}"


def _of(domain: str) -> str:
    return f" of {domain}" if domain else ""


def _upgrade(node: ir.Node, wanted: int) -> tuple[int, Upgrade] | None:
    assert node.version is not None
    entries = UPGRADES.get((node.domain, node.op_type), ())
    return next(((since, entry) for since, entry in entries if node.version < since <= wanted), None)


def _fits(node: ir.Node, wanted: int) -> bool:
    """Whether the schema of an opset has the attributes and the inputs of a node."""
    schema = schema_at(node.domain, node.op_type, wanted)
    if schema is None:
        return True
    single = OpSchema.FormalParameterOption.Single
    missing = any(f.option == single and v is None for f, v in zip(schema.inputs, node.inputs, strict=False))
    return not missing and all(name in schema.attributes for name in node.attributes)


def _entry(node: ir.Node, wanted: int) -> tuple[int, Entry] | None:
    """The entry for the newest version that has to be left."""
    assert node.version is not None
    entries = ENTRIES.get((node.domain, node.op_type), {})
    newest = max((since for since in entries if wanted < since <= node.version), default=None)
    return None if newest is None else (newest, entries[newest])
