"""Attention of `com.microsoft`, as the standard op: projections, masks in all their forms, earlier keys and values."""

from collections.abc import Sequence

import onnx_ir as ir

from onward.canon.lower.microsoft_fused import MS, added
from onward.canon.lower.microsoft_matmul import worth
from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, dims, input_of, is_used, needed, rank, require, take

FILTER = -10000.0
"""What is added to the scores of masked places, unless the node says otherwise."""


def length(x: ir.Value, axis: int, op: Rewriter) -> ir.Value:
    """One dimension of `x`, as a vector of one element."""
    known = dims(x)
    size = known[axis] if known else None
    return op("Shape", x, start=axis, end=axis + 1) if size is None else op.ints([size])


def count_up(end: ir.Value, op: Rewriter) -> ir.Value:
    """0, 1, … up to `end`, a vector of one element."""
    return op("Range", op.ints(0), op("Squeeze", end, op.ints([0])), op.ints(1))


def refuse(node: ir.Node, what: str, *present: object) -> None:
    if any(present):
        raise UnsupportedError(f"{describe(node)}: Onward does not support {what}")


def _is_given(node: ir.Node, index: int) -> bool:
    return input_of(node, index) is not None


def _uses(node: ir.Node, index: int) -> bool:
    return index < len(node.outputs) and bool(node.outputs[index].name) and is_used(node.outputs[index])


def _mask(mask: ir.Value, queries: ir.Value, total: ir.Value, value: float, like: ir.Value, op: Rewriter) -> ir.Value:
    """What a mask adds to scores of shape (batch, heads, queries, total). It is one of:

    (batch, total) or (batch, queries, total), 0 for masked; (batch, 1, longest, longest), of which the last rows
    count; (batch) or (2 * batch), where each row ends and begins.
    """
    known = rank(mask)
    if known is None:
        raise UnsupportedError(f"{describe(op.node)}: the rank of its mask is not known")
    if known == 1:
        hidden = _outside(mask, like, total, op)
    else:
        if known == 4:
            ends = op("Concat", total, total, axis=0)
            begins = op("Concat", op("Sub", total, queries), op.ints([0]), axis=0)
            mask = op("Slice", mask, begins, ends, op.ints([2, 3]))
        else:
            mask = op("Unsqueeze", mask, op.ints([1, 2] if known == 2 else [1]))
        hidden = op("LessOrEqual", mask, op.number(0, mask))
    share = op("CastLike", hidden, like) if like.dtype is None else op("Cast", hidden, to=like.dtype)
    return op("Mul", share, op.number(value, like))


def _outside(limits: ir.Value, like: ir.Value, total: ir.Value, op: Rewriter) -> ir.Value:
    """Which places of each row are not before its end, or before its beginning: (batch, 1, 1, total)."""
    batch = length(like, 0, op)
    places = count_up(total, op)
    wide = op("Cast", limits, to=ir.DataType.INT64)
    column = op.ints([-1, 1, 1, 1])
    size, rows = (_size(x) for x in (limits, like))
    if size is not None and size == rows:
        return op("GreaterOrEqual", places, op("Reshape", wide, column))
    after = op("GreaterOrEqual", places, op("Reshape", op("Slice", wide, op.ints([0]), batch), column))
    filled = op("Concat", wide, op("Expand", op.ints([0]), batch), axis=0)
    begins = op("Slice", filled, batch, op("Add", batch, batch))
    return op("Or", after, op("Less", places, op("Reshape", begins, column)))


def _size(x: ir.Value, axis: int = 0) -> int | str | None:
    """A dimension, as a number or by its name."""
    found = None if x.shape is None else x.shape[axis]
    return found if found is None or isinstance(found, int) else found.value


def _as_long(q: ir.Value, k: ir.Value) -> bool:
    """Whether it is known that there are as many queries as keys."""
    queries, keys = (_size(x, 2 if rank(x) == 4 else 1) for x in (q, k))
    return queries is not None and queries == keys


def _later(queries: ir.Value, total: ir.Value, like: ir.Value, op: Rewriter) -> ir.Value:
    """What hides the keys behind the place of each query. The last query sees all, however many there are."""
    row, last = op("Unsqueeze", count_up(queries, op), op.ints([1])), op("Sub", queries, op.ints([1]))
    seen = op("Or", op("LessOrEqual", count_up(total, op), row), op("Equal", row, last))
    return op("Where", seen, op.number(0.0, like), op.number(float("-inf"), like))


def _attend(
    node: ir.Node,
    op: Rewriter,
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    heads: int,
    *,
    mask: ir.Value | None,
    bias: ir.Value | None,
    past: Sequence[ir.Value | None],
    as_long: bool = True,
) -> Sequence[ir.Value]:
    """The standard op: its result, and all keys and values so far. `as_long`: there are as many queries as new keys."""
    queries = length(q, 2 if rank(q) == 4 else 1, op)
    total = length(k, 2 if rank(k) == 4 else 1, op)
    if past[0] is not None:
        total = op("Add", total, length(past[0], 2, op))
    if mask is not None:
        extra = _mask(mask, queries, total, take(node, "mask_filter_value", FILTER), q, op)
        bias = extra if bias is None else op("Add", bias, extra)
    is_causal = take(node, "unidirectional", 0)
    if is_causal and not as_long:
        later = _later(queries, total, q, op)
        bias, is_causal = later if bias is None else op("Add", bias, later), 0
    packed = rank(q) != 4
    scale = take(node, "scale") or None
    return op.many(
        3,
        "Attention",
        q,
        k,
        v,
        bias,
        *past,
        q_num_heads=heads if packed else None,
        kv_num_heads=heads if packed else None,
        is_causal=1 if is_causal else None,
        scale=scale,
    )


def _self_attention(
    node: ir.Node, op: Rewriter, joined: ir.Value, mask: ir.Value | None, past: ir.Value | None, bias: ir.Value | None
) -> None:
    """Queries, keys and values side by side; earlier keys and values in one tensor."""
    heads, sizes = require(node, "num_heads"), take(node, "qkv_hidden_sizes")
    if sizes:
        q, k, v = op.many(3, "Split", joined, op.ints(sizes), axis=2)
    else:
        q, k, v = op.many(3, "Split", joined, axis=2, num_outputs=3)
    earlier: list[ir.Value | None] = [None, None]
    if past is not None:
        parts = op.many(2, "Split", past, axis=0, num_outputs=2)
        earlier = [op("Squeeze", part, op.ints([0])) for part in parts]
    y, keys, values = _attend(node, op, q, k, v, heads, mask=mask, bias=bias, past=earlier)
    present = None
    if _uses(node, 1):
        present = op("Concat", *(op("Unsqueeze", x, op.ints([0])) for x in (keys, values)), axis=0)
    op.replace(*[y, present, None][: len(node.outputs)])


@lowering(f"{MS}::Attention")
def attention(node: ir.Node, op: Rewriter) -> None:
    refuse(node, "rotary embedding inside attention", take(node, "do_rotary", 0))
    refuse(node, "earlier keys and values in a shared buffer", take(node, "past_present_share_buffer", 0))
    refuse(node, "scores as an output", _uses(node, 2))
    joined = added(op("MatMul", needed(node, 0), needed(node, 1)), input_of(node, 2), op)
    _self_attention(node, op, joined, input_of(node, 3), input_of(node, 4), input_of(node, 5))


@lowering(f"{MS}::QAttention")
def qattention(node: ir.Node, op: Rewriter) -> None:
    refuse(node, "rotary embedding inside attention", take(node, "do_rotary", 0))
    refuse(node, "earlier keys and values in a shared buffer", take(node, "past_present_share_buffer", 0))
    x, weight, bias, x_scale, w_scale = (needed(node, i) for i in range(5))
    total = op("MatMulInteger", x, weight, input_of(node, 6), input_of(node, 7))
    joined = worth(total, op("Mul", x_scale, w_scale), bias, op)
    _self_attention(node, op, joined, input_of(node, 5), input_of(node, 8), None)


@lowering(f"{MS}::MultiHeadAttention")
def multi_head_attention(node: ir.Node, op: Rewriter) -> None:
    refuse(node, "earlier keys and values in a shared buffer", _is_given(node, 8), _is_given(node, 9))
    refuse(node, "scores as an output", _uses(node, 3))
    heads = require(node, "num_heads")
    q, k, v = _operands(node, op)
    if (bias := input_of(node, 3)) is not None:
        q, k, v = _biased(q, k, v, bias, op)
    if rank(k) == 4 and rank(q) == 3:
        q = _split_heads(q, heads, op)
    past = [input_of(node, 6), input_of(node, 7)]
    mask, extra = input_of(node, 4), input_of(node, 5)
    as_long = past[0] is not None or input_of(node, 1) is None or _as_long(q, k)
    y, keys, values = _attend(node, op, q, k, v, heads, mask=mask, bias=extra, past=past, as_long=as_long)
    if rank(q) == 4:
        y = op("Reshape", op("Transpose", y, perm=[0, 2, 1, 3]), op.ints([0, 0, -1]))
    op.replace(*[y, keys, values, None][: len(node.outputs)])


@lowering(f"{MS}::DecoderMaskedMultiHeadAttention")
def decoder_attention(node: ir.Node, op: Rewriter) -> None:
    """One new element at a time, over keys and values in a buffer that has room for more, or over those of an encoder.

    Inputs: query, key, value, mask, what is added to scores, buffers of keys and values, how many places of these are
    filled, the number of beams, where each beam was before, bias.
    """
    refuse(node, "places that beams exchange", _is_given(node, 9))
    refuse(node, "scores as an output", _uses(node, 3))
    heads, past = require(node, "num_heads"), [input_of(node, 5), input_of(node, 6)]
    take(node, "past_present_share_buffer", 1)
    take(node, "output_qk", 0)
    q, k, v = needed(node, 0), input_of(node, 1), input_of(node, 2)
    if k is None or v is None:
        q, k, v = op.many(3, "Split", q, axis=2, num_outputs=3)
    if (bias := input_of(node, 10)) is not None:
        q, k, v = _biased(q, k, v, bias, op)
    q, keys, values = (x if rank(x) == 4 else _split_heads(x, heads, op) for x in (q, k, v))
    outputs: list[ir.Value | None] = [None, None]
    if past[0] is not None and past[1] is not None:
        filled = op("Cast", op("Reshape", needed(node, 7), op.ints([1])), to=ir.DataType.INT64)
        rows = op("Expand", filled, length(q, 0, op))
        buffers = [op("TensorScatter", old, new, rows, axis=2) for old, new in zip(past, (keys, values), strict=True)]
        end = op("Add", filled, op.ints([1]))
        keys, values = (op("Slice", x, op.ints([0]), end, op.ints([2])) for x in buffers)
        outputs = list(buffers)
    mask, extra = input_of(node, 3), input_of(node, 4)
    y, _, _ = _attend(node, op, q, keys, values, heads, mask=mask, bias=extra, past=[None, None])
    y = op("Reshape", op("Transpose", y, perm=[0, 2, 1, 3]), op.ints([0, 0, -1]))
    op.replace(*[y, *outputs, None][: len(node.outputs)])


def _operands(node: ir.Node, op: Rewriter) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Queries, keys and values, each (batch, places, width) or, where the node has them so, with heads apart."""
    q, k, v = needed(node, 0), input_of(node, 1), input_of(node, 2)
    if rank(q) is None or (k is not None and rank(k) is None):
        raise UnsupportedError(f"{describe(node)}: the rank of its inputs is not known")
    if k is None:
        parts = _apart(q, 3, op)
        return parts[0], parts[1], parts[2]
    if v is None:
        keys, values = _apart(k, 2, op)
        return q, keys, values
    return q, k, v


def _apart(x: ir.Value, count: int, op: Rewriter) -> list[ir.Value]:
    """(batch, places, heads, count, size) as so many of (batch, places, width)."""
    parts = op.many(count, "Split", x, axis=3, num_outputs=count)
    return [op("Reshape", part, op.ints([0, 0, -1])) for part in parts]


def _biased(q: ir.Value, k: ir.Value, v: ir.Value, bias: ir.Value, op: Rewriter) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Keys and values that come with heads apart were projected before and have no bias."""
    width = length(q, 2, op)
    q = op("Add", q, op("Slice", bias, op.ints([0]), width))
    if rank(k) == 4:
        return q, k, v
    twice = op("Add", width, width)
    k = op("Add", k, op("Slice", bias, width, twice))
    v = op("Add", v, op("Slice", bias, twice, op.ints([2**31 - 1])))
    return q, k, v


def _split_heads(x: ir.Value, heads: int, op: Rewriter) -> ir.Value:
    return op("Transpose", op("Reshape", x, op.ints([0, 0, heads, -1])), perm=[0, 2, 1, 3])
