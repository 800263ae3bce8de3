"""Grouped-query attention over a cache, in terms of standard ops.

`onward::GroupQueryAttention` has the inputs of the op of `com.microsoft` that language models are written with: query,
key, value, earlier keys and values, the last place of each row, the number of places in all, cosines, sines, positions,
what is added to scores, the score of a sink, and the scales of keys and values in a cache of 8-bit integers.
"""

from typing import NamedTuple

import onnx_ir as ir

from onward.canon.lower.microsoft_attention import count_up, length
from onward.canon.lower.registry import lowering
from onward.graph.rewriter import Rewriter, dims, input_of, needed, require, take

_D = ir.DataType


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


@lowering("onward::GroupQueryAttention")
def group_query_attention(node: ir.Node, op: Rewriter) -> None:
    heads, kv_heads = require(node, "num_heads"), require(node, "kv_num_heads")
    q, k, v = _operands(node, heads, kv_heads, op)
    rows = _rows(node, q, op)
    if input_of(node, 7) is not None:
        q, k = _rotated(node, q, k, rows, op)
    scales = [_scale(input_of(node, i), x, kv_heads, op) for i, x in ((12, k), (13, v))]
    bits = take(node, "bits", 8)
    stored = [_in_steps(x, scale, bits, op) for x, scale in zip((k, v), scales, strict=True)]
    keys, values = (_cached(x, input_of(node, i), rows, op) for x, i in zip(stored, (3, 4), strict=True))
    all_keys, all_values = (_of_steps(x, scale, bits, q, op) for x, scale in zip((keys, values), scales, strict=True))
    mask = _mask(node, q, rows, op)
    sink = input_of(node, 11)
    if sink is not None or take(node, "smooth", 0):
        all_keys, all_values, mask = _with_sink(all_keys, all_values, mask, sink, q, op)
    y = op("Attention", q, all_keys, all_values, mask, scale=take(node, "scale"), softcap=take(node, "softcap"))
    merged = op("Reshape", op("Transpose", y, perm=[0, 2, 1, 3]), op.ints([0, 0, -1]))
    op.replace(*[merged, keys, values][: len(node.outputs)])


def _scale(scale: ir.Value | None, x: ir.Value, heads: int, op: Rewriter) -> ir.Value | None:
    """One scale, or those of the channels of each head, so that it broadcasts with a cache."""
    if scale is None:
        return None
    wide = scale if scale.dtype == _D.FLOAT else op("Cast", scale, to=_D.FLOAT)
    flat = op("Reshape", wide, op.ints([-1]))
    if dims(scale) in ([], [1]):
        return flat
    channels = op("Expand", flat, op("Mul", length(x, 3, op), op.ints([heads])))
    return op("Reshape", channels, op.ints([1, heads, 1, -1]))


def _in_steps(x: ir.Value, scale: ir.Value | None, bits: int, op: Rewriter) -> ir.Value:
    """Numbers as signed integers; those of 4 bits are 8 more, two to a byte."""
    if scale is None:
        return x
    most = 2.0 ** (bits - 1)
    steps = op("Round", op("Div", op("Cast", x, to=_D.FLOAT), scale))
    whole = op("Clip", steps, op.floats(-most), op.floats(most - 1))
    if bits == 8:
        return op("Cast", whole, to=_D.INT8)
    codes = op("Add", whole, op.floats(most))
    end, axis, two = op.ints([2**31 - 1]), op.ints([3]), op.ints([2])
    low, high = (op("Slice", codes, op.ints([begin]), end, axis, two) for begin in (0, 1))
    return op("Cast", op("Add", low, op("Mul", high, op.floats(16.0))), to=_D.UINT8)


def _of_steps(x: ir.Value, scale: ir.Value | None, bits: int, like: ir.Value, op: Rewriter) -> ir.Value:
    if scale is None:
        return x
    number = op("Cast", x, to=_D.FLOAT)
    if bits == 4:
        high = op("Floor", op("Div", number, op.floats(16.0)))
        low = op("Sub", number, op("Mul", high, op.floats(16.0)))
        pairs = op("Concat", *(op("Unsqueeze", part, op.ints([4])) for part in (low, high)), axis=4)
        number = op("Sub", op("Reshape", pairs, op.ints([0, 0, 0, -1])), op.floats(8.0))
    product = op("Mul", number, scale)
    return product if like.dtype == _D.FLOAT else op("CastLike", product, like)


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
    query = op("Add", op("Reshape", past, column), op("Reshape", count_up(new, op), op.ints([1, 1, -1, 1])))
    return _Rows(past, query, count_up(size, op), size, op("Reshape", end, column))


def _rotated(node: ir.Node, q: ir.Value, k: ir.Value, rows: _Rows, op: Rewriter) -> tuple[ir.Value, ir.Value]:
    cos, sin, given_positions = needed(node, 7), needed(node, 8), input_of(node, 9)
    own = op("Squeeze", rows.query, op.ints([1, 3]))
    positions = own if given_positions is None else _positions(given_positions, needed(node, 6), q, op)
    half, size = (dims(cos) or [None])[-1], (dims(q) or [None])[-1]
    width = 0 if half is None or 2 * half == size else 2 * half
    given = {"interleaved": take(node, "interleaved", 0), "rotary_embedding_dim": width}
    rotated = [op("RotaryEmbedding", x, cos, sin, positions, **given) for x in (q, k)]
    return rotated[0], rotated[1]


def _positions(positions: ir.Value, total: ir.Value, q: ir.Value, op: Rewriter) -> ir.Value:
    """Of the first elements, all follow the first position of all; later ones have their own."""
    new = length(q, 2, op)
    first = op("Slice", positions, op.ints([0, 0]), op.ints([1, 1]), op.ints([0, 1]))
    is_prompt = op("Equal", op("Reshape", op("Cast", total, to=_D.INT64), op.ints([1])), new)
    return op("Where", is_prompt, op("Add", first, count_up(new, op)), positions)


def _cached(new: ir.Value, earlier: ir.Value | None, rows: _Rows, op: Rewriter) -> ir.Value:
    """The earlier elements of each row, followed by the new ones: (batch, heads, size of the cache, size)."""
    lacking = op("Sub", rows.size, length(new if earlier is None else earlier, 2, op))
    base = new if earlier is None else earlier
    room = op("Pad", base, op("Concat", op.ints([0]), lacking, axis=0), None, op.ints([2]))
    return room if earlier is None else op("TensorScatter", room, new, rows.past, axis=2)


def _mask(node: ir.Node, q: ir.Value, rows: _Rows, op: Rewriter) -> ir.Value:
    """Which places each new element sees, or what is added to their scores."""
    window, is_causal = take(node, "window", 0), take(node, "causal", 1)
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
