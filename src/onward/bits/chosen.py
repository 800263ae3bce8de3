"""Nodes as a user names them."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import onnx_ir as ir


def is_named(node: ir.Node, patterns: Sequence[str]) -> bool:
    """Whether its name fits one of the patterns, or its op is one of them."""
    return any(node.op_type == one or fnmatch.fnmatchcase(node.name or "", one) for one in patterns)
