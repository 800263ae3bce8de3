"""The gradient of attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onward.graph.build import Tensor
from onward.graph.rewriter import put
from onward.spec.attention import Attention
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.vjp.linear import turned
from onward.training.autodiff.vjp.shape import lengths

PROBABILITIES = 3
"""The `qk_matmul_output_mode` of an op that also gives what its softmax makes."""


@vjp("Attention")
def attention(
    c: Context,
    g: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    past_k: Tensor | None = None,
    past_v: Tensor | None = None,
    *_: Tensor | None,
    p: Attention,
) -> Gradients:
    """By the probabilities that the op itself gives: masks, windows and lengths of any kind have acted on them.

    Query heads that share a head of the keys are rows of one matrix.
    """
    op = c.op
    queries, keys, values = _heads(q, p.q_num_heads), _heads(k, p.kv_num_heads), _heads(v, p.kv_num_heads)
    all_keys = keys if past_k is None else op.Concat(past_k, keys, axis=2)
    all_values = values if past_v is None else op.Concat(past_v, values, axis=2)
    last = op.Shape(all_keys, start=2, end=3)
    rows, shares = _grouped(queries, all_keys), _grouped(_probabilities(c), all_keys, last)
    slope, others = c.gradient(0), c.gradient(3)
    if others is not None and p.scores != "probabilities":
        raise c.refuse("the loss depends on the scores that the op gives out")
    dv = dp = None
    if slope is not None:
        out = _grouped(_heads(slope, p.q_num_heads), all_keys)
        dv, dp = turned(shares) @ out, out @ turned(all_values)
    if others is not None:
        others = _grouped(others, all_keys, last)
        dp = others if dp is None else dp + others
    dq = dk = dm = None
    if dp is not None:
        weighted = dp * shares
        ds = weighted - shares * op.sum(weighted, [-1])
        if mask is not None and c.wants(mask.value):
            each = op.Reshape(ds, op.Concat(op.Shape(queries, start=0, end=3), last, axis=0))
            dm = _of_mask(each, mask)
        factor = op.like(p.scale, q) if p.scale is not None else _default_scale(queries)
        if p.softcap:
            squashed = op.Tanh((rows @ turned(all_keys)) * (factor * (1 / p.softcap)))
            ds = ds * (1 - squashed * squashed)
        scaled = ds * factor
        dq, dk = op.reshape_like(scaled @ all_keys, queries), turned(scaled) @ rows
    dk, dv = _sum(dk, c.gradient(1)), _sum(dv, c.gradient(2))
    (of_past_k, dk), (of_past_v, dv) = _parts(dk, past_k, keys), _parts(dv, past_v, values)
    return [_like(dq, q), _like(dk, k), _like(dv, v), dm, of_past_k, of_past_v]


def _probabilities(c: Context) -> Tensor:
    """Of all heads; the op is made to give them, or, if it gives the scores of an earlier stage, run again."""
    node = c.node
    given = len(node.outputs) > 3 and bool(node.outputs[3].name)
    if not given:
        put(node, qk_matmul_output_mode=PROBABILITIES)
    if node.attributes.get_int("qk_matmul_output_mode", 0) == PROBABILITIES:
        return c.optional_output(3)
    attributes: dict[str, Any] = {**node.attributes, "qk_matmul_output_mode": PROBABILITIES}
    return c.op.many("Attention", 4, *node.inputs, **attributes)[3]


def _heads(x: Tensor, count: int) -> Tensor:
    """Batch, heads, positions and features; the standard also has heads and features in one axis."""
    op = x.op
    if x.rank == 4 or not count:
        return x
    return op.Transpose(op.Reshape(x, op.ints([0, 0, count, -1])), perm=[0, 2, 1, 3])


def _like(gradient: Tensor | None, x: Tensor) -> Tensor | None:
    """A gradient with heads, in the form that the input has."""
    if gradient is None or x.rank == 4:
        return gradient
    return x.op.reshape_like(x.op.Transpose(gradient, perm=[0, 2, 1, 3]), x)


def _grouped(x: Tensor, keys: Tensor, last: Tensor | None = None) -> Tensor:
    """The rows of all heads that share a head of `keys` as one, of `last` elements: as many as they have by default."""
    op = x.op
    if last is None:
        if x.dims is not None and keys.dims is not None and x.dims[1] == keys.dims[1] is not None:
            return x
        last = op.Shape(x, start=3)
    return op.Reshape(x, op.Concat(op.Shape(keys, start=0, end=2), op.ints([-1]), last, axis=0))


def _default_scale(queries: Tensor) -> Tensor:
    op = queries.op
    size = queries.dims[3] if queries.dims is not None else None
    if isinstance(size, int):
        return op.like(1 / math.sqrt(size), queries)
    return op.Reciprocal(op.Sqrt(op.Shape(queries, start=3).cast(queries.dtype)))


def _of_mask(ds: Tensor, mask: Tensor) -> Tensor:
    """A mask may end before the last position: the rest is hidden."""
    op = ds.op
    wide, narrow = (None if t.dims is None else t.dims[-1] for t in (ds, mask))
    if isinstance(wide, int) and isinstance(narrow, int) and 1 < narrow < wide:
        ds = op.Slice(ds, op.ints([0]), op.ints([narrow]), op.ints([-1]))
    return unbroadcast(ds, mask)


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return a if b is None else b if a is None else a + b


def _parts(whole: Tensor | None, past: Tensor | None, new: Tensor) -> Sequence[Tensor | None]:
    """The gradients of what came before and of what is new."""
    if whole is None or past is None:
        return None, whole
    return whole.op.many("Split", 2, whole, lengths(whole.op, [past, new], 2), axis=2)
