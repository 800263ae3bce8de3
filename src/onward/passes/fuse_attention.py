"""softmax(q · kᵀ · scale + mask) · v as one node, however the exporter wrote it.

`onward::SDPA(q, k, v[, mask]; scale, is_causal, widens, hides)` has operands of equal rank, (…, time, width). Without
`scale` the products are divided by the root of the width; with `is_causal`, no position sees a later one; with
`widens`, the mask may turn out to be larger than the scores; with `hides`, it may hide all keys from a query, which
gets zeros then. A mask is of floats to add, or of booleans that are true for what is seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from onward.graph.facts import Facts, Number, Term, multiply, root
from onward.graph.replace import (
    DOMAIN,
    graphs,
    is_op,
    made_by,
    new_node,
    only_user,
    permutation,
    shape_of,
    take_over,
)
from onward.passes.masks import hides, is_causal, is_causal_bias, is_finite
from onward.passes.products import scalar, without_factors

_FLOATS = {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}


def fuse_attention(model: ir.Model) -> int:
    """Rewrites in place; returns how many attentions were found."""
    facts = Facts()
    return sum(_fuse(node, facts) for graph in graphs(model) for node in list(graph) if is_op(node, "MatMul"))


@dataclass
class Scores:
    """q · kᵀ with the scale that applies to it, and the mask over it."""

    q: ir.Value
    keys: ir.Value
    """kᵀ, as the product takes it."""
    scale: Number
    mask: ir.Value | None = None
    is_causal: bool = False
    widens: bool = False
    hides: bool = False


@dataclass
class Attention:
    """What a product of weights and values is, as long as nothing is rewritten."""

    last: ir.Node
    scores: Scores
    v: ir.Value
    scale: float | None
    """None for the usual one."""

    def written(self, op_type: str, facts: Facts, *, domain: str, **attributes: int) -> None:
        """Put one node in the place of all of it."""
        q, mask = self.scores.q, self.scores.mask
        k = _untransposed(self.scores.keys, self.last, facts)
        inputs = [q, k, self.v] + ([] if mask is None else [mask])
        attributes |= {"is_causal": int(self.scores.is_causal)}
        node = new_node(op_type, inputs, {"scale": self.scale, **attributes}, self.last, self.last, domain=domain)
        take_over(self.last.outputs[0], node.outputs[0])


def _fuse(last: ir.Node, facts: Facts) -> bool:
    found = attention_at(last, facts)
    if found is None:
        return False
    found.written("SDPA", facts, domain=DOMAIN, widens=int(found.scores.widens), hides=int(found.scores.hides))
    return True


def attention_at(last: ir.Node, facts: Facts) -> Attention | None:
    """The attention that ends with a product."""
    softmax, is_safe = _weights(last, facts)
    v = last.inputs[1]
    if softmax is None or v is None or v.shape is None:
        return None
    rank = len(v.shape)
    if softmax.attributes.get_int("axis", -1) not in (-1, rank - 1) or v.dtype not in _FLOATS or rank < 2:
        return None
    scores = _masked_scores(softmax, is_safe, facts)
    if scores is None or any(x.shape is None or len(x.shape) != rank for x in (scores.q, scores.keys)):
        return None
    width = facts.dim(scores.q, -1)
    relative = multiply(scores.scale, root(width if isinstance(width, Term) else float(width)))
    tolerance = 1e-12 if v.dtype == ir.DataType.DOUBLE else 1e-6
    is_default = not isinstance(relative, Term) and abs(relative - 1) < tolerance
    if isinstance(scores.scale, Term) and not is_default:
        return None
    return Attention(last, scores, v, None if is_default else float(scores.scale))  # type: ignore[arg-type]


def _weights(last: ir.Node, facts: Facts) -> tuple[ir.Node | None, bool]:
    """The softmax that a product takes, and whether what is no number in it, for want of keys, is zero."""
    softmax, where = made_by(last.inputs[0], "Softmax"), made_by(last.inputs[0], "Where")
    if where is None:
        return (softmax, False) if softmax is not None and only_user(softmax.outputs[0]) is last else (None, False)
    test, softmax = made_by(where.inputs[0], "IsNaN"), made_by(where.inputs[2], "Softmax")
    if test is None or softmax is None or scalar(where.inputs[1], where.inputs[2], facts) != 0:
        return None, False
    readers = {use.node for use in softmax.outputs[0].uses()}
    is_guarded = readers == {test, where} and not softmax.outputs[0].is_graph_output()
    is_last = only_user(test.outputs[0]) is where and only_user(where.outputs[0]) is last
    return (softmax, True) if is_guarded and is_last else (None, False)


def _masked_scores(softmax: ir.Node, is_safe: bool, facts: Facts) -> Scores | None:
    """What a softmax is taken of, if it is scores, perhaps with a mask that can be given to a framework."""
    logits = softmax.inputs[0]
    assert logits is not None
    if only_user(logits) is not softmax:
        return None
    node = made_by(logits, "Add", "Where")
    if node is None:
        return _scaled_product(logits, facts)
    choices = ((0, 1), (1, 0)) if node.op_type == "Add" else ((1, 2), (2, 1))
    for index, other in choices:
        value, mask = node.inputs[index], node.inputs[other]
        scores = None if value is None or only_user(value) is not node else _scaled_product(value, facts)
        if scores is None:
            continue
        rows, columns = facts.dim(scores.q, -2), facts.dim(scores.keys, -1)
        if node.op_type == "Where":
            causal = is_causal(node.inputs[0], rows, columns, facts) is (index == 1)
            scores.is_causal = causal and hides(scalar(mask, value, facts), value)
            return scores if scores.is_causal else None
        if is_causal_bias(mask, rows, columns, facts):
            scores.is_causal = True
            return scores
        finite = is_finite(mask)
        if mask is None or not (finite or is_safe):
            continue
        mask = mask if finite else _seen(mask, facts)
        growth = _growth(mask, scores, facts)
        if growth != "certain":
            scores.mask, scores.widens, scores.hides = mask, growth == "possible", not finite
            return scores
    return None


def _seen(mask: ir.Value, facts: Facts) -> ir.Value:
    """The condition of a mask that is zero where it holds, and else minus infinity; any other mask as it is."""
    where = made_by(mask, "Where")
    if where is None or (shown := where.inputs[0]) is None or shown.shape is None or mask.shape is None:
        return mask
    numbers = [scalar(value, shown, facts) for value in where.inputs[1:]]
    return shown if numbers == [0, -math.inf] and len(shown.shape) == len(mask.shape) else mask


def _growth(mask: ir.Value, scores: Scores, facts: Facts) -> str:
    """Whether a mask makes the scores larger: 'certain' (or it has no rank that fits), 'possible' or 'none'."""
    shape, rank = shape_of(mask), len(shape_of(scores.q) or ())
    if shape is None or not 2 <= len(shape) <= rank:
        return "certain"
    possible = False
    for axis in range(-len(shape), 0):
        sources = {-1: [scores.keys], -2: [scores.q]}.get(axis, [scores.q, scores.keys])
        size, sizes = facts.dim(mask, axis), [facts.dim(x, axis) for x in sources]
        if size == 1 or size in sizes:
            continue
        if isinstance(size, int) and sizes == [1] * len(sizes):
            return "certain"
        possible |= not any(isinstance(n, int) and n > 1 for n in sizes)
    return "possible" if possible else "none"


def _scaled_product(value: ir.Value, facts: Facts) -> Scores | None:
    """q · kᵀ with scalar factors on either operand or on the product."""
    product, scale = without_factors(value, facts)
    matmul = made_by(product, "MatMul")
    if matmul is None or (product is not value and only_user(product) is None):
        return None
    left, right = matmul.inputs
    if left is None or right is None or left.shape is None or right.shape is None:
        return None
    q, q_scale = without_factors(left, facts)
    keys, k_scale = without_factors(right, facts)
    if q.shape is None or keys.shape is None:
        return None
    return Scores(q, keys, multiply(scale, multiply(q_scale, k_scale)))


def _untransposed(keys: ir.Value, before: ir.Node, facts: Facts) -> ir.Value:
    """k for a given kᵀ: what was transposed to get it, or else a transposition of it."""
    assert keys.shape is not None
    rank = len(keys.shape)
    found = _before_long_way(keys, facts)
    if found is not None:
        return found
    source, perm = keys, list(range(rank))
    transpose = made_by(keys, "Transpose")
    if transpose is not None and transpose.inputs[0] is not None:
        source, perm = transpose.inputs[0], permutation(transpose) or perm[::-1]
    perm[-1], perm[-2] = perm[-2], perm[-1]
    if perm == list(range(rank)):
        return source
    node = new_node("Transpose", [source], {"perm": perm}, transpose or before, before)
    k = node.outputs[0]
    k.type, k.shape = keys.type, ir.Shape([*keys.shape[:-2], keys.shape[-1], keys.shape[-2]])
    return k


def _before_long_way(keys: ir.Value, facts: Facts) -> ir.Value | None:
    """k where kᵀ was made by flattening all but two dimensions, swapping those, and restoring the others."""
    restore = made_by(keys, "Reshape")
    swap = made_by(restore.inputs[0], "Transpose") if restore is not None else None
    flatten = made_by(swap.inputs[0], "Reshape") if swap is not None else None
    if restore is None or swap is None or flatten is None:
        return None
    k = flatten.inputs[0]
    if k is None or k.shape is None or permutation(swap) != [0, 2, 1]:
        return None
    flat, full = facts.numbers(flatten.inputs[1]), facts.numbers(restore.inputs[1])
    *others, time, width = (facts.dim(k, axis) for axis in range(len(k.shape)))
    if flat is None or len(flat) != 3 or flat[1:] != [time, width] or full is None:
        return None
    return k if full == [*others, width, time] and 0 not in full else None
