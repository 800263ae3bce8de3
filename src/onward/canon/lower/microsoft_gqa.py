"""Rotary embeddings and grouped-query attention of `com.microsoft`, as exporters of language models write them."""

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.canon.lower.microsoft_attention import count_up, length, refuse
from onward.canon.lower.microsoft_fused import MS
from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.gate.bounds import check_room
from onward.graph.rewriter import Rewriter, describe, dims, input_of, is_used, needed, rank, require, take

_D = ir.DataType


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
        positions = op("Add", positions, count_up(length(x, 2 if known == 4 else 1, op), op))
        batch = length(x, 0, op)
        positions = op("Expand", positions, op("Concat", batch, op.ints([1]), axis=0))
    if known == 3 and not heads:
        heads = _heads(x, cos, op)
    given = {"interleaved": take(node, "interleaved", 0), "rotary_embedding_dim": width}
    op.replace(op("RotaryEmbedding", x, cos, sin, positions, **given, num_heads=heads if known == 3 else None))


@lowering(f"{MS}::MRotaryEmbedding")
def rotary_embedding_of_images(node: ir.Node, op: Rewriter) -> None:
    """Three positions for each place, in time and in an image, each of which turns some of the pairs."""
    x, positions, cos, sin = (needed(node, i) for i in range(4))
    refuse(node, "places of several rows packed into one", take(node, "is_packed_batching", 0))
    refuse(node, "a scale of rotations", take(node, "scale", 1.0) != 1)
    heads, width, known = take(node, "num_heads", 0), take(node, "rotary_embedding_dim", 0), rank(x)
    if known is None:
        raise UnsupportedError(f"{describe(node)}: the rank of its input is not known")
    owner = _owners(require(node, "mrope_section"), take(node, "mrope_layout", 0))
    streams = [op("Squeeze", part, op.ints([0])) for part in op.many(3, "Split", positions, axis=0, num_outputs=3)]
    tables = []
    for table in (cos, sin):
        time, height, breadth = (op("Gather", table, stream, axis=0) for stream in streams)
        mixed = op("Where", op.constant(owner == 1), height, time)
        tables.append(op("Where", op.constant(owner == 2), breadth, mixed))
    if known == 3 and not heads:
        heads = _heads(x, cos, op)
    given = {"interleaved": take(node, "interleaved", 0), "rotary_embedding_dim": width}
    op.replace(op("RotaryEmbedding", x, *tables, **given, num_heads=heads if known == 3 else None))


def _owners(sections: list[int], layout: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Which of the three positions turns each pair: in chunks, or in turns as far as those of images reach."""
    check_room("the positions of pairs", [max(sum(sections), *sections)], 8)
    if not layout:
        return np.repeat(np.arange(3), sections)
    owner = np.zeros(sum(sections), np.int64)
    for number in (1, 2):
        owner[number : 3 * sections[number] : 3] = number
    return owner


def _heads(x: ir.Value, cos: ir.Value, op: Rewriter) -> int:
    """How many heads there are, if rotation takes all of each."""
    hidden, half = (dims(x) or [None])[-1], (dims(cos) or [None])[-1]
    if not hidden or not half:
        raise UnsupportedError(f"{describe(op.node)}: the number of heads is not known")
    return hidden // (2 * half)


@lowering(f"{MS}::GroupQueryAttention")
def group_query_attention(node: ir.Node, op: Rewriter) -> None:
    """As `onward::GroupQueryAttention`, which has the same inputs."""
    refuse(node, "a cache of the size of its window", take(node, "sliding_window_cache", 0))
    refuse(node, "scores as an output", len(node.outputs) > 3 and is_used(node.outputs[3]))
    window = take(node, "local_window_size", -1)
    refuse(node, "a window of no places", window == 0)
    quantized = [take(node, f"{x}_quant_type", "NONE") != "NONE" for x in ("k", "v")]
    bits = take(node, "kv_cache_bit_width", 8) if any(quantized) else 8
    tables = [7, 8, 9] if take(node, "do_rotary", 0) else []
    scales = [index for index, used in zip((12, 13), quantized, strict=True) if used]
    kept = [*range(7), *tables, 10, 11, *scales]
    inputs = [input_of(node, i) if i in kept else None for i in range(14)]
    heads, kv_heads = require(node, "num_heads"), require(node, "kv_num_heads")
    if (q_scale := input_of(node, 14)) is not None and (k_scale := input_of(node, 15)) is not None:
        scales_of = {"q": (q_scale, heads), "k": (k_scale, kv_heads)}
        inputs[:3] = _normalised(inputs[:3], scales_of, take(node, "qk_norm_epsilon", 1e-6), op)
    outputs = op.own(
        3,
        "GroupQueryAttention",
        *inputs,
        num_heads=heads,
        kv_num_heads=kv_heads,
        scale=take(node, "scale", 0.0) or None,
        softcap=take(node, "softcap", 0.0) or None,
        window=window if window > 0 else None,
        causal=None if take(node, "causal", 1) else 0,
        smooth=1 if take(node, "smooth_softmax", -1) == 1 else None,
        interleaved=take(node, "rotary_interleaved", 0) or None,
        bits=None if bits == 8 else bits,
    )
    op.replace(*[*outputs, None][: len(node.outputs)])


def _normalised(
    inputs: list[ir.Value | None], scales: dict[str, tuple[ir.Value, int]], epsilon: float, op: Rewriter
) -> list[ir.Value | None]:
    """Queries and keys, each head of which is divided by the root of the mean of its squares."""
    q, k, v = inputs
    (q_scale, heads), (k_scale, kv_heads) = scales["q"], scales["k"]
    assert q is not None
    if k is None:
        apart = op("Reshape", q, op.ints([0, 0, heads + 2 * kv_heads, -1]))
        parts = op.many(3, "Split", apart, op.ints([heads, kv_heads, kv_heads]), axis=2)
        q, k, v = (op("Reshape", part, op.ints([0, 0, -1])) for part in parts)

    def normal(x: ir.Value, scale: ir.Value, count: int) -> ir.Value:
        by_head = op("Reshape", x, op.ints([0, 0, count, -1]))
        return op("Reshape", op("RMSNormalization", by_head, scale, epsilon=epsilon), op.ints([0, 0, -1]))

    return [normal(q, q_scale, heads), normal(k, k_scale, kv_heads), v]


@lowering(f"{MS}::SparseAttention")
def sparse_attention(node: ir.Node, op: Rewriter) -> None:
    """Attention over a cache in which blocks of queries see blocks of keys, in layouts that heads take in turns."""
    size, heads, kv_heads = (require(node, name) for name in ("sparse_block_size", "num_heads", "kv_num_heads"))
    total, ends = needed(node, 7), needed(node, 8)
    q, past = needed(node, 0), needed(node, 3)
    blocks = _blocks(node, op)
    check_room("the layouts of sparse attention", (heads, *blocks.shape[1:]), 1)
    of_heads = op.constant(np.stack([blocks[i % len(blocks)] for i in range(heads)]))
    new, places = length(q, 1, op), length(past, 2, op)
    start = op("Sub", op("Cast", op("Reshape", ends, op.ints([-1, 1])), to=_D.INT64), new)
    query = op("Add", op("Max", start, op.ints(0)), count_up(new, op))
    last = op.ints(blocks.shape[1] - 1)
    rows, columns = (op("Min", op("Div", x, op.ints(size)), last) for x in (query, count_up(places, op)))
    seen = op("Gather", op("Gather", of_heads, rows, axis=1), columns, axis=3)
    hidden = op("Where", seen, op.number(0.0, q), op.number(float("-inf"), q))
    bias = op("Transpose", hidden, perm=[1, 0, 2, 3])
    tables = [input_of(node, i) for i in (9, 10)] if take(node, "do_rotary", 0) else [None, None]
    inputs = [input_of(node, i) for i in range(5)]
    outputs = op.own(
        *(3, "GroupQueryAttention"),
        *inputs,
        op("Sub", ends, op.number(1, ends)),
        total,
        *tables,
        None,
        bias,
        num_heads=heads,
        kv_num_heads=kv_heads,
        scale=take(node, "scale", 0.0) or None,
        interleaved=take(node, "rotary_interleaved", 0) or None,
    )
    op.replace(*outputs[: len(node.outputs)])


def _blocks(node: ir.Node, op: Rewriter) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which blocks of keys a block of queries sees, in each layout."""
    begins, columns = (ir.convenience.get_const_tensor(needed(node, i)) for i in (5, 6))
    if begins is None or columns is None:
        raise UnsupportedError(f"{describe(node)}: its layout of blocks is computed by the model; make it a constant")
    rows, which = begins.numpy(), columns.numpy()
    count = rows.shape[1] - 1
    check_room("the layouts of sparse attention", (len(rows), count, count), 1)
    seen = np.zeros((len(rows), count, count), np.bool_)
    for layout in range(len(rows)):
        for row in range(count):
            seen[layout, row, which[layout, rows[layout, row] : rows[layout, row + 1]]] = True
    return seen
