"""Ops of `com.microsoft` on rows of tokens: repeated n-grams, hashes."""

import numpy as np
import onnx_ir as ir

from onward.canon.lower.microsoft_attention import count_up, length, refuse
from onward.canon.lower.microsoft_fused import MS
from onward.canon.lower.registry import lowering
from onward.errors import InvalidModelError, UnsupportedError
from onward.graph.rewriter import Rewriter, describe, dims, input_of, needed, require, take

_D = ir.DataType


@lowering(f"{MS}::NGramRepeatBlock")
def ngram_repeat_block(node: ir.Node, op: Rewriter) -> None:
    """No token may follow that would repeat `size` tokens in a row: its score is that of the impossible.

    A row of tokens is filled up in front with one that no token equals, so that there is a window in any.
    """
    ids, scores, size = needed(node, 0), needed(node, 1), require(node, "ngram_size")
    before = op("Pad", ids, op.ints([size, 0]), op.constant(np.array(-1, np.int64)), op.ints([1]))
    count = op("Add", length(ids, 1, op), op.ints([1]))
    places = op("Add", op("Unsqueeze", count_up(count, op), op.ints([1])), count_up(op.ints([size]), op))
    windows = op("Gather", before, places, axis=1)
    follower = op("Slice", windows, op.ints([size - 1]), op.ints([size]), op.ints([2]))
    follower = op("Squeeze", follower, op.ints([2]))
    is_real = op("GreaterOrEqual", follower, op.ints(0))
    if size > 1:
        tail = op("Slice", before, op.ints([1 - size]), op.ints([2**31 - 1]), op.ints([1]))
        head = op("Slice", windows, op.ints([0]), op.ints([size - 1]), op.ints([2]))
        same = op("Cast", op("Equal", head, op("Unsqueeze", tail, op.ints([1]))), to=_D.INT64)
        is_real = op("And", is_real, op("Cast", op("ReduceMin", same, op.ints([2]), keepdims=0), to=_D.BOOL))
    blocked = op("Where", is_real, op.number(float("-inf"), scores), op.number(float("inf"), scores))
    op.replace(op("ScatterElements", scores, op("Max", follower, op.ints(0)), blocked, axis=1, reduction="min"))


MASK = 2**32 - 1
"""Numbers of 32 bits are computed with as those of 64."""


@lowering(f"{MS}::MurmurHash3")
def murmur_hash(node: ir.Node, op: Rewriter) -> None:
    """The 32-bit hash of each number's bytes."""
    x, seed = needed(node, 0), take(node, "seed", 0)
    sizes = {_D.INT32: 1, _D.UINT32: 1, _D.INT64: 2, _D.UINT64: 2, _D.FLOAT: 1, _D.DOUBLE: 2}
    if x.dtype not in sizes:
        raise UnsupportedError(
            f"{describe(node)}: hashes of {x.dtype or 'an unknown type'} have no rule; hash strings before the model"
        )
    count = sizes[x.dtype]
    words = _words(x, count, op)
    h = op.ints(seed & MASK)
    for word in words:
        k = _times(_rotated(_times(word, 0xCC9E2D51, op), 15, op), 0x1B873593, op)
        h = _rotated(op("BitwiseXor", h, k), 13, op)
        h = op("BitwiseAnd", op("Add", op("Mul", h, op.ints(5)), op.ints(0xE6546B64)), op.ints(MASK))
    h = op("BitwiseXor", h, op.ints(4 * count))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = op("BitwiseXor", h, op("Div", h, op.ints(1 << shift)))
        h = h if factor == 1 else _times(h, factor, op)
    if take(node, "positive", 1):
        op.replace(op("Cast", h, to=_D.UINT32))
        return
    wrapped = op("Where", op("Greater", h, op.ints(2**31 - 1)), op("Sub", h, op.ints(2**32)), h)
    op.replace(op("Cast", wrapped, to=_D.INT32))


def _words(x: ir.Value, count: int, op: Rewriter) -> list[ir.Value]:
    """The bits of each number, in words of 32, the lowest first."""
    if x.dtype in (_D.FLOAT, _D.DOUBLE):
        x = op("BitCast", x, to=_D.INT32 if x.dtype == _D.FLOAT else _D.INT64)
        op.created[-1].version = 26
    wide = x if x.dtype == _D.INT64 else op("Cast", x, to=_D.INT64)
    low = op("BitwiseAnd", wide, op.ints(MASK))
    if count == 1:
        return [low]
    rest = op("Div", op("Sub", wide, low), op.ints(2**32))
    return [low, op("BitwiseAnd", rest, op.ints(MASK))]


def _times(x: ir.Value, factor: int, op: Rewriter) -> ir.Value:
    """The lower 32 bits of a product, of which no part is over 48."""
    low = op("Mul", op("BitwiseAnd", x, op.ints(0xFFFF)), op.ints(factor))
    high = op("BitwiseAnd", op("Mul", op("Div", x, op.ints(1 << 16)), op.ints(factor)), op.ints(0xFFFF))
    return op("BitwiseAnd", op("Add", low, op("Mul", high, op.ints(1 << 16))), op.ints(MASK))


def _rotated(x: ir.Value, bits: int, op: Rewriter) -> ir.Value:
    left = op("BitwiseAnd", op("Mul", x, op.ints(1 << bits)), op.ints(MASK))
    return op("BitwiseOr", left, op("Div", x, op.ints(1 << (32 - bits))))


@lowering(f"{MS}::NGramHashMapping")
def ngram_hash_mapping(node: ir.Node, op: Rewriter) -> None:
    """Hashes of the last two, three, … tokens up to each place; before the first place stand the earlier ones."""
    ids, factors, sizes, past, offsets, end, segments = (input_of(node, i) for i in range(7))
    assert ids is not None and factors is not None and sizes is not None
    refuse(node, "rows that begin again", take(node, "reset_on_eos", 0) and end is not None, segments is not None)
    most, heads, pad = require(node, "max_ngram_size"), require(node, "n_head_per_ngram"), require(node, "pad_id")
    if (known := (dims(factors) or [None])[0]) is not None and known < most:
        raise InvalidModelError(f"{describe(node)}: it has {known} factors for {most} tokens")
    before = most - 1
    if past is None:
        fill = op("Reshape", end, op.ints([])) if end is not None else op.number(pad, ids)
        past = op("Expand", fill, op("Concat", length(ids, 0, op), op.ints([before]), axis=0))
    row = op("Concat", past, ids, axis=1)
    size = length(ids, 1, op)
    wide = op("Cast", row, to=_D.INT64)
    hashes: list[ir.Value] = []
    mix: ir.Value | None = None
    for back in range(most):
        begin = op.ints([before - back])
        token = op("Slice", wide, begin, op("Add", begin, size), op.ints([1]))
        factor = op("Cast", op("Slice", factors, op.ints([back]), op.ints([back + 1])), to=_D.INT64)
        product = op("Mul", token, factor)
        mix = product if mix is None else op("BitwiseXor", mix, product)
        if back:
            ends = op.ints([back * heads])
            of_heads = op("Slice", sizes, op.ints([(back - 1) * heads]), ends)
            divisor = op("Cast", of_heads, to=_D.INT64)
            hashes.append(op("Mod", op("Unsqueeze", _narrow(mix, ids, op), op.ints([2])), divisor))
    found = op("Concat", *hashes, axis=2)
    if offsets is not None:
        found = op("Add", found, op("Cast", offsets, to=_D.INT64))
    outputs: list[ir.Value | None] = [op("Cast", found, to=ids.dtype or _D.INT64)]
    if len(node.outputs) > 1:
        width = op("Shape", row, start=1, end=2)
        outputs.append(op("Slice", row, op("Sub", width, op.ints([before])), width, op.ints([1])))
    op.replace(*outputs)


def _narrow(x: ir.Value, like: ir.Value, op: Rewriter) -> ir.Value:
    """Numbers of 64 bits as those of 32 bits are that come of the same bits, where that is the type."""
    if like.dtype == _D.INT64:
        return x
    low = op("BitwiseAnd", x, op.ints(MASK))
    return op("Where", op("Greater", low, op.ints(2**31 - 1)), op("Sub", low, op.ints(2**32)), low)
