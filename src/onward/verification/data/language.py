"""What ops of language models that ONNX Runtime has say about the sizes and values of their inputs.

The mask of the words so far, their number, and the earlier keys and values have to fit one another: an attention over a
cache leaves undefined what it gives for places that its lengths leave out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from onward.graph.slots import Dim
from onward.verification.data.clues import Clues, Use
from onward.verification.data.clues import Rule as ClueRule
from onward.verification.data.linked_shapes import first
from onward.verification.data.linked_sizes import Rule, Shapes, View

MS = "com.microsoft"
EARLIER = "places that are filled"
"""The number of words before the new ones, where a cache has more room than they take."""
COUNTED = {"Sub", "Add", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Identity"}
"""Ops between the sum of a mask and the last places of its rows."""


def _product(v: View) -> Shapes:
    dims = v.dims(0)
    v.equal((0, -1), v.number("K") or None)
    return None if not dims else [(*dims[:-1], v.number("N") or None)]


def _skipped(v: View) -> Shapes:
    """The result, a mean, a deviation, and the sum."""
    dims = v.fit.broadcast([v.dims(0), v.dims(1)])
    return [dims, None, None, dims]


def _rows(v: View) -> Shapes:
    table, indices = v.dims(0), v.dims(1)
    return None if table is None or indices is None else [(*indices, *[None] * (len(table) - 1))]


def _rotary(v: View) -> Shapes:
    if v.rank(1) == 2:
        v.equal((1, 0), (0, 0))
        v.equal((1, 1), (0, 1) if v.rank() == 3 else (0, 2))
    return [v.dims(0)]


def _grouped(v: View) -> Shapes:
    """The places in all are the earlier and the new ones, or as many of a larger cache as are filled."""
    heads, shared, packed = v.number("num_heads"), v.number("kv_num_heads"), v.value(1) is None
    for index in (1, 2, 3, 4, 5):
        v.equal((index, 0), (0, 0))
    for index in (1, 2):
        v.equal((index, 1), (0, 1))
    for axis in (2, 3):
        v.equal((4, axis), (3, axis))
    v.equal((3, 1), shared or None)
    new, past, total = v.axis(0, 1), v.axis(3, 2), _total(v)
    roomy = v.fit.size(past) is not None
    v.fit.equal(total, v.fit.total([EARLIER if roomy else past, new]))
    room = past if roomy else total
    cache = (v.axis(0, 0), v.axis(3, 1), room, v.axis(3, 3))
    width = v.size(0, -1)
    if packed and width is not None:
        width = width // (heads + 2 * shared) * heads
    return [(v.axis(0, 0), new, width), cache, cache]


def _total(v: View) -> Dim | None:
    """The number of places in all, where the shape of an input says it."""
    found = v.fit.vector(v.value(6))
    return found[0] if found is not None and len(found) == 1 else None


def _many_heads(v: View) -> Shapes:
    v.equal((6, 0), (0, 0))
    v.equal((7, 0), (0, 0))
    v.equal((7, 2), (6, 2))
    new = v.axis(1, 1) if v.rank(1) == 3 else v.axis(0, 1)
    total = new if v.value(6) is None else v.fit.total([v.axis(6, 2), new])
    v.equal((4, 0), (0, 0))
    if v.rank(4) == 2:
        v.fit.equal(v.axis(4, 1), total)
    v.fit.equal(v.axis(5, -1), total)
    return [v.dims(0) if v.rank() == 3 else None]


def _attention(v: View) -> Shapes:
    """The past is (2, batch, heads, places, size)."""
    v.equal((4, 0), 2)
    v.equal((4, 1), (0, 0))
    v.equal((3, 0), (0, 0))
    total = v.axis(0, 1) if v.value(4) is None else v.fit.total([v.axis(4, 3), v.axis(0, 1)])
    if v.rank(3) == 2:
        v.fit.equal(v.axis(3, 1), total)
    weight = v.size(1, 1)
    return [(v.axis(0, 0), v.axis(0, 1), weight // 3 if weight else None)]


TABLE: dict[str, Rule] = {
    f"{MS}::MatMulNBits": _product,
    **dict.fromkeys((f"{MS}::SkipLayerNormalization", f"{MS}::SkipSimplifiedLayerNormalization"), _skipped),
    f"{MS}::GatherBlockQuantized": _rows,
    f"{MS}::RotaryEmbedding": _rotary,
    f"{MS}::GroupQueryAttention": _grouped,
    f"{MS}::MultiHeadAttention": _many_heads,
    f"{MS}::Attention": _attention,
    **dict.fromkeys((f"{MS}::MoE", f"{MS}::QMoE", f"{MS}::BiasGelu"), first),
}


def _places(use: Use) -> tuple[int, int] | None:
    """The earlier and the new places of an attention over a cache."""
    new, past = use.length(0, 1), use.length(3, 2)
    if new is None:
        return None
    total = use.fit.length(_total(use), use.sizes)
    if total is not None:
        return max(total - new, 0), new
    if isinstance(use.axis(3, 2), str):
        return past or 0, new
    return max(min((past or 0) // 2, (past or 0) - new), 0), new


def _grouped_clues(clues: Clues, use: Use) -> None:
    found = _places(use)
    if use.index == 9:
        clues.below(use.length(7, 0))
    if found is None:
        return
    earlier, new = found
    if use.index in (3, 4):
        clues.filled = earlier
    elif use.index in (5, 6) and use.direct:
        number = earlier + new - (use.index == 5)
        clues.exact = lambda shape: np.full(shape, number)


def _positions(clues: Clues, use: Use) -> None:
    if use.index == 1:
        clues.below(use.length(2, 0))


def _picked(clues: Clues, use: Use) -> None:
    if use.index == 1:
        clues.below(use.length(0, use.number("gather_axis")))


def _many_heads_clues(clues: Clues, use: Use) -> None:
    if use.index == 4:
        _lengths_or_mask(clues, use)


def _attention_clues(clues: Clues, use: Use) -> None:
    if use.index == 3:
        _lengths_or_mask(clues, use)


def _lengths_or_mask(clues: Clues, use: Use) -> None:
    if use.rank(use.index) == 1:
        clues.is_length, clues.longest = True, use.length(0, 1)
    else:
        clues.is_mask = True


def _summed(clues: Clues, use: Use) -> None:
    """A mask whose sums are the lengths of rows: all of them are full, or a part of the caches is undefined."""
    if use.index == 0 and any(_is_last_place(node, index) for node, index in _counted(use.node.outputs[0])):
        clues.exact = np.ones


def _is_last_place(node: ir.Node, index: int) -> bool:
    return (node.domain, node.op_type, index) == (MS, "GroupQueryAttention", 5)


def _counted(value: ir.Value) -> Iterator[tuple[ir.Node, int]]:
    for node, index in value.uses():
        yield node, index
        if node.op_type in COUNTED:
            yield from _counted(node.outputs[0])


CLUES: dict[str, ClueRule] = {
    f"{MS}::GroupQueryAttention": _grouped_clues,
    f"{MS}::RotaryEmbedding": _positions,
    f"{MS}::GatherBlockQuantized": _picked,
    f"{MS}::MultiHeadAttention": _many_heads_clues,
    f"{MS}::Attention": _attention_clues,
}


def summed(after: ClueRule) -> ClueRule:
    """The rule of a sum, which may be that of a mask."""

    def rule(clues: Clues, use: Use) -> None:
        after(clues, use)
        _summed(clues, use)

    return rule
