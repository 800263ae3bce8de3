"""Rotary embeddings and grouped-query attention with a cache, as exporters of language models write them."""

from typing import NamedTuple

import onnx_ir as ir

from onward.canon.lower.microsoft_attention import length, refuse
from onward.canon.lower.microsoft_fused import MS
from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, dims, input_of, is_used, needed, rank, require, take

_D = ir.DataType
TO_THE_END = 2**31 - 1


@lowering(f"{MS}::RotaryEmbedding")
def rotary_embedding(node: ir.Node, op: Rewriter) -> None:
    """Positions are given for each place, or where the first place is."""
    x, positions, cos, sin = (needed(node, i) for i in range(4))
    refuse(node, "places of several rows packed into one", take(node, "is_packed_batching", 0))
    heads, width = take(node, "num_heads", 0), take(node, "rotary_embedding_dim", 0)
    known = rank(x)
    if known is None or rank(positions) is None:
        raise UnsupportedError(f"{describe(node)}: the rank of its input or of its positions is not known")
    if rank(positions) == 1:
        positions = op("Add", positions, _range(length(x, 2 if known == 4 else 1, op), op))
        batch = length(x, 0, op)
        positions = op("Expand", positions, op("Concat", batch, op.ints([1]), axis=0))
    if known == 3 and not heads:
        heads = _heads(x, cos, op)
    given = {"interleaved": take(node, "interleaved", 0), "rotary_embedding_dim": width}
    op.replace(op("RotaryEmbedding", x, cos, sin, positions, **given, num_heads=heads if known == 3 else None))


def _heads(x: ir.Value, cos: ir.Value, op: Rewriter) -> int:
    """How many heads there are, if rotation takes all of each."""
    hidden, half = (dims(x) or [None])[-1], (dims(cos) or [None])[-1]
    if not hidden or not half:
        raise UnsupportedError(f"{describe(op.node)}: the number of heads is not known")
    return hidden // (2 * half)


def _range(end: ir.Value, op: Rewriter) -> ir.Value:
    return op("Range", op.ints(0), op("Squeeze", end, op.ints([0])), op.ints(1))


class _Rows(NamedTuple):
    """How the rows of a batch lie in the cache, each as (batch, 1, 1, 1) or broadcastable to (batch, 1, new, all)."""

    past: ir.Value
    """How many places come from earlier steps: (batch)."""
    query: ir.Value
    """The place of each new element."""
    key: ir.Value
    """The places of the cache."""
    size: ir.Value
    """How many places the cache has."""
    end: ir.Value
    """The place after the last."""


@lowering(f"{MS}::GroupQueryAttention")
def group_query_attention(node: ir.Node, op: Rewriter) -> None:
    """Inputs: query, key, value, earlier keys and values, the last place of each row, the number of places in all."""
    heads, kv_heads = require(node, "num_heads"), require(node, "kv_num_heads")
    refuse(node, "a cache of the size of its window", take(node, "sliding_window_cache", 0))
    refuse(node, "a quantized cache", input_of(node, 12) is not None, input_of(node, 13) is not None)
    refuse(node, "normalisation inside attention", input_of(node, 14) is not None, input_of(node, 15) is not None)
    refuse(node, "scores as an output", len(node.outputs) > 3 and is_used(node.outputs[3]))
    q, k, v = _operands(node, heads, kv_heads, op)
    rows = _rows(node, q, op)
    if take(node, "do_rotary", 0):
        q, k = _rotated(node, q, k, rows, op)
    keys = _cached(k, input_of(node, 3), rows, op)
    values = _cached(v, input_of(node, 4), rows, op)
    mask = _mask(node, q, rows, op)
    all_keys, all_values = keys, values
    sink = input_of(node, 11)
    if sink is not None or take(node, "smooth_softmax", -1) == 1:
        all_keys, all_values, mask = _with_sink(keys, values, mask, sink, q, op)
    scale, softcap = take(node, "scale", 0.0) or None, take(node, "softcap", 0.0) or None
    y = op("Attention", q, all_keys, all_values, mask, scale=scale, softcap=softcap)
    merged = op("Reshape", op("Transpose", y, perm=[0, 2, 1, 3]), op.ints([0, 0, -1]))
    op.replace(*[merged, keys, values, None][: len(node.outputs)])


def _operands(node: ir.Node, heads: int, kv_heads: int, op: Rewriter) -> list[ir.Value]:
    """Queries, keys and values as (batch, heads, places, size)."""
    q, k, v = needed(node, 0), input_of(node, 1), input_of(node, 2)
    order = [0, 2, 1, 3]
    if k is None or v is None:
        joined = op("Reshape", q, op.ints([0, 0, heads + 2 * kv_heads, -1]))
        parts = op.many(3, "Split", joined, op.ints([heads, kv_heads, kv_heads]), axis=2)
        return [op("Transpose", part, perm=order) for part in parts]
    counts = (heads, kv_heads, kv_heads)
    return [
        op("Transpose", op("Reshape", x, op.ints([0, 0, n, -1])), perm=order)
        for x, n in zip((q, k, v), counts, strict=True)
    ]


def _rows(node: ir.Node, q: ir.Value, op: Rewriter) -> _Rows:
    last = op("Cast", op("Reshape", needed(node, 5), op.ints([-1])), to=_D.INT64)
    end = op("Add", last, op.ints(1))
    new = length(q, 2, op)
    past = op("Max", op("Sub", end, new), op.ints(0))
    size = op("Reshape", op("Cast", needed(node, 6), to=_D.INT64), op.ints([1]))
    if (earlier := input_of(node, 3)) is not None:
        size = op("Max", size, length(earlier, 2, op))
    column = op.ints([-1, 1, 1, 1])
    query = op("Add", op("Reshape", past, column), op("Reshape", _range(new, op), op.ints([1, 1, -1, 1])))
    return _Rows(past, query, _range(size, op), size, op("Reshape", end, column))


def _rotated(node: ir.Node, q: ir.Value, k: ir.Value, rows: _Rows, op: Rewriter) -> tuple[ir.Value, ir.Value]:
    cos, sin, positions = needed(node, 7), needed(node, 8), input_of(node, 9)
    if positions is None:
        positions = op("Squeeze", rows.query, op.ints([1, 3]))
    half, size = (dims(cos) or [None])[-1], (dims(q) or [None])[-1]
    width = 0 if half is None or 2 * half == size else 2 * half
    given = {"interleaved": take(node, "rotary_interleaved", 0), "rotary_embedding_dim": width}
    rotated = [op("RotaryEmbedding", x, cos, sin, positions, **given) for x in (q, k)]
    return rotated[0], rotated[1]


def _cached(new: ir.Value, earlier: ir.Value | None, rows: _Rows, op: Rewriter) -> ir.Value:
    """The earlier elements of each row, followed by the new ones: (batch, heads, size of the cache, size)."""
    lacking = op("Sub", rows.size, length(new if earlier is None else earlier, 2, op))
    base = new if earlier is None else earlier
    room = op("Pad", base, op("Concat", op.ints([0]), lacking, axis=0), None, op.ints([2]))
    return room if earlier is None else op("TensorScatter", room, new, rows.past, axis=2)


def _mask(node: ir.Node, q: ir.Value, rows: _Rows, op: Rewriter) -> ir.Value:
    """Which places each new element sees, or what is added to their scores."""
    window = take(node, "local_window_size", -1)
    is_causal = take(node, "causal", 1)
    seen = op("LessOrEqual", rows.key, rows.query) if is_causal else op("Less", rows.key, rows.end)
    if window > 0:
        near = op("Greater", rows.key, op("Sub", rows.query, op.ints(window)))
        seen = op("And", seen, near)
    bias = input_of(node, 10)
    if bias is None:
        return seen
    lacking = op("Sub", rows.size, length(bias, 3, op))
    wide = op("Pad", bias, op("Concat", op.ints([0]), lacking, axis=0), None, op.ints([3]))
    return op("Where", seen, wide, op.number(float("-inf"), q))


def _with_sink(
    keys: ir.Value, values: ir.Value, mask: ir.Value, sink: ir.Value | None, q: ir.Value, op: Rewriter
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """One more place, of value zero, that takes a share of the attention: its score is the sink of the head, or 0."""
    if mask.dtype == _D.BOOL:
        mask = op("Where", mask, op.number(0.0, q), op.number(float("-inf"), q))
    heads, new = length(q, 1, op), length(q, 2, op)
    score = op.number(0.0, q) if sink is None else op("Reshape", sink, op.ints([1, -1, 1, 1]))
    batch = length(q, 0, op)
    column = op("Expand", score, op("Concat", batch, heads, new, op.ints([1]), axis=0))
    wide = op("Expand", mask, op("Concat", batch, heads, new, op.ints([1]), axis=0))
    one_more = op.ints([0, 1])
    padded = [op("Pad", x, one_more, None, op.ints([2])) for x in (keys, values)]
    return padded[0], padded[1], op("Concat", wide, column, axis=3)
