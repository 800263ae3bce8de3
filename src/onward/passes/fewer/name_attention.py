"""Attention that is written out, as the operator that ONNX has for it."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.facts import Facts
from onward.graph.replace import graphs, is_op
from onward.passes.fuse_attention import Scores, attention_at

SINCE = 23
"""The opset that brought Attention."""


def name_attention(model: ir.Model) -> int:
    """In place; returns how many were found."""
    if model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0)) < SINCE:
        return 0
    facts, count = Facts(), 0
    for graph in graphs(model):
        for node in list(graph):
            found = attention_at(node, facts) if is_op(node, "MatMul") else None
            if found is not None and found.v.dtype == ir.DataType.FLOAT and _is_plain(found.scores, found.v, facts):
                found.written("Attention", facts, domain="")
                count += 1
    return count


def _is_plain(scores: Scores, v: ir.Value, facts: Facts) -> bool:
    """Whether the operator means the same, and ONNX Runtime runs it.

    Heads are an axis. It refuses tensors without elements, so that all sizes have to be known, and a mask that has one
    row for all queries.
    """
    q, keys, mask = scores.q, scores.keys, scores.mask
    if len(v.shape or ()) != 4 or scores.widens or scores.hides:
        return False
    batch, heads, rows, width = (facts.dim(q, axis) for axis in range(4))
    columns = facts.dim(keys, 3)
    if not all(isinstance(size, int) and size > 0 for size in (batch, heads, rows, width, columns, facts.dim(v, 3))):
        return False
    others = [facts.dim(keys, axis) for axis in (0, 1)], [facts.dim(v, axis) for axis in (0, 1, 2)]
    if others != ([batch, heads], [batch, heads, columns]):
        return False
    if mask is None:
        return not scores.is_causal or rows == columns
    if mask.shape is None or len(mask.shape) not in (2, 4) or mask.dtype not in (ir.DataType.FLOAT, ir.DataType.BOOL):
        return False
    *outer, last = (facts.dim(mask, axis) for axis in range(len(mask.shape)))
    fits = all(size in (1, given) for size, given in zip(outer[:-1], (batch, heads), strict=False))
    return fits and [outer[-1], last] == [rows, columns] and not scores.is_causal
