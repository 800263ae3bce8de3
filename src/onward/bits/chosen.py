"""Nodes as a user names them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence

import onnx_ir as ir

from onward.advice.nearest import meant
from onward.errors import OnwardError


def is_named(node: ir.Node, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns fits its name, its op, the name of a weight that it reads, or that of a result."""
    return any(name == one or fnmatch.fnmatchcase(name, one) for one in patterns for name in _names(node))


def check_patterns(patterns: Sequence[str], nodes: Iterable[ir.Node]) -> None:
    """Refuse a pattern that names none of the nodes."""
    nodes = list(nodes)
    for one in patterns:
        if not any(is_named(node, [one]) for node in nodes):
            hint = meant(one, dict.fromkeys(name for node in nodes for name in _names(node)))
            raise OnwardError(f"{one!r} is no node that would be in fewer bits, nor a weight or the op of one{hint}")


def _names(node: ir.Node) -> Iterator[str]:
    weights = (value.name for value in node.inputs if value is not None and value.is_initializer())
    yield from filter(None, (node.name, node.op_type, *weights, *(value.name for value in node.outputs)))
