"""What each backend makes of each op: the one place that `onward inspect` and the coverage page get it from.

Nothing here needs a framework to be installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import onnx
import onnx_ir as ir

from onward.backends.backend import backend as find
from onward.backends.backend import backends
from onward.canon.lower import LOWERINGS, REFUSED, key_of, load_lowerings
from onward.canon.upgrade.registry import ENTRIES
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.plugins.table import versions

Word = Literal["exact", "lowered", "partial", "unsupported"]
WORDS: dict[Word, str] = {
    "exact": "a rule of its own",
    "lowered": "written in terms of other ops",
    "partial": "a rule that refuses some of what ONNX allows",
    "unsupported": "refused, by name",
}


@dataclass(frozen=True)
class OpStatus:
    """How a backend supports an op."""

    op: str
    """`Gelu`, or `com.microsoft::Gelu` outside the default domain."""
    status: Word
    why: str = ""
    count: int = 0
    """How often the op occurs in the model that was asked about."""

    def __str__(self) -> str:
        return f"{self.status} ({self.why})" if self.why else self.status


OWN_FORMS = {"ai.onnx.preview.training::Gradient": "onward::Gradient"}
"""Ops that backends see in a form of our own, see `onward.passes`."""


def covered() -> list[str]:
    """The names of the backends that have rules of their own."""
    return [one.name for one in backends() if one.is_covered]


def with_rules() -> list[str]:
    """These, and those that have rules of their own for less of ONNX."""
    names = covered()
    known = {id(find(name).target().rules) for name in names}
    return [*names, *(one.name for one in backends() if id(one.target().rules) not in known)]


def coverage(model: Model, backend: str) -> list[OpStatus]:
    """The status of every op in the model, those in subgraphs and functions included, sorted by name."""
    nodes: dict[str, list[ir.Node]] = {}
    for node in nodes_of(model.ir):
        nodes.setdefault(key_of(node), []).append(node)
    own = {f"{domain}::{name}" if domain else name for domain, name, _ in model.ir.functions}
    found = []
    for op in sorted(nodes):
        known = OpStatus(op, "lowered", "a function of this model") if op in own else status(op, backend)
        limit = find(backend).partial().get(op)
        if known.status == "partial" and limit and not any(limit.concerns(node) for node in nodes[op]):
            known = OpStatus(op, "exact")
        found.append(OpStatus(op, known.status, known.why, len(nodes[op])))
    return found


def nodes_of(model: ir.Model) -> Iterator[ir.Node]:
    """Every node of the graph, of the graphs inside it, and of the functions."""
    yield from all_nodes(model.graph)
    for function in model.functions.values():
        yield from all_nodes(function.graph)


def status(op: str, backend: str) -> OpStatus:
    """What a backend makes of an op, whichever model it is in.

    An op whose schema carries a definition that depends on the types of its inputs counts as lowered.
    """
    known = find(backend)
    if op in known.unsupported():
        return OpStatus(op, "unsupported", known.unsupported()[op])
    if op in known.partial():
        return OpStatus(op, "partial", known.partial()[op].why)
    if known.has_rule(OWN_FORMS.get(op, op)) or op == "Constant":
        return OpStatus(op, "exact")
    if any(one.functions for one in versions(op)):
        return OpStatus(op, "lowered", "the body that its plugin gives")
    load_lowerings()
    if op in LOWERINGS:
        return OpStatus(op, "lowered")
    if op in REFUSED:
        return OpStatus(op, "unsupported", REFUSED[op])
    domain, name = split(op)
    schema = _schema(domain, name)
    if ENTRIES.get((domain, name)) and (schema is None or schema.deprecated):
        return OpStatus(op, "lowered", "rewritten as newer ops")
    if schema is None:
        return OpStatus(op, "unsupported", "ONNX has no such op" if domain in _onnx_domains() else "no rule")
    if schema.has_function:
        for inner in _definition(domain, name):
            if status(inner, backend).status == "unsupported":
                return OpStatus(op, "unsupported", f"its definition needs {inner}")
    elif not schema.has_context_dependent_function:
        return OpStatus(op, "unsupported", "no rule")
    return OpStatus(op, "lowered")


def split(op: str) -> tuple[str, str]:
    """`com.microsoft::Gelu` → ('com.microsoft', 'Gelu'); the default domain is ''."""
    domain, _, name = op.rpartition("::")
    return domain, name


@cache
def _onnx_domains() -> frozenset[str]:
    return frozenset(schema.domain for schema in onnx.defs.get_all_schemas())


def _schema(domain: str, name: str) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(name, domain)
    except onnx.defs.SchemaError:
        return None


@cache
def _definition(domain: str, name: str) -> list[str]:
    """The ops that the definition of an op is written in."""
    body = ir.serde.deserialize_function(onnx.defs.get_schema(name, domain).function_body)
    return sorted({key_of(node) for node in all_nodes(body.graph)})
