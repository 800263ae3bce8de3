"""Normalisations of `com.microsoft` that add before they normalise, and those that look embeddings up first."""

from itertools import takewhile

import numpy as np
import onnx_ir as ir

from onward.canon.lower.microsoft_fused import MS, added
from onward.canon.lower.registry import lowering
from onward.graph.rewriter import Rewriter, input_of, is_used, needed, take

SCOPED = "onward.name"
"""The name by which a node belongs to a module, where that is not its own."""
EPSILON = 1e-12
"""What the joined ops add to the variance by default."""


def _uses(node: ir.Node, index: int) -> bool:
    return index < len(node.outputs) and bool(node.outputs[index].name) and is_used(node.outputs[index])


def _sum(x: ir.Value, skip: ir.Value, bias: ir.Value | None, op: Rewriter) -> ir.Value:
    """The sum, which belongs to the layer that made its terms rather than to the one that begins by normalising it."""
    first = len(op.created)
    total = added(op("Add", x, skip), bias, op)
    own = _scopes(op.node)
    x_scopes, skip_scopes = (_scopes(value.producer()) for value in (x, skip))
    pairs = ((x_scopes, skip_scopes), (own, x_scopes), (own, skip_scopes))
    scope = max((_shared(*pair) for pair in pairs), key=len)
    for node in op.created[first:]:
        if scope:
            node.metadata_props[SCOPED] = "/".join([*scope, (node.name or node.op_type).rpartition("/")[2]])
    return total


def _scopes(node: ir.Node | None) -> list[str]:
    """The names of the modules that a node stands in: `/model/layers.0/mlp/Mul`."""
    name = "" if node is None else node.metadata_props.get(SCOPED) or node.name or ""
    return name.split("/")[:-1]


def _shared(a: list[str], b: list[str]) -> list[str]:
    """The modules that two nodes both stand in."""
    return [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))]


@lowering(f"{MS}::SkipLayerNormalization")
def skip_layer_norm(node: ir.Node, op: Rewriter) -> None:
    total = _sum(needed(node, 0), needed(node, 1), input_of(node, 4), op)
    epsilon = take(node, "epsilon", EPSILON)
    normal = op.many(3, "LayerNormalization", total, needed(node, 2), input_of(node, 3), axis=-1, epsilon=epsilon)
    op.replace(*[*normal, total][: len(node.outputs)])


@lowering("SimplifiedLayerNormalization", f"{MS}::SimplifiedLayerNormalization")
def simplified_layer_norm(node: ir.Node, op: Rewriter) -> None:
    x, scale = needed(node, 0), needed(node, 1)
    axis, epsilon = take(node, "axis", -1), take(node, "epsilon", 1e-5)
    _rms_norm(node, op, x, scale, axis, epsilon)


@lowering(f"{MS}::SkipSimplifiedLayerNormalization")
def skip_simplified_layer_norm(node: ir.Node, op: Rewriter) -> None:
    total = _sum(needed(node, 0), needed(node, 1), input_of(node, 3), op)
    _rms_norm(node, op, total, needed(node, 2), -1, take(node, "epsilon", EPSILON))


def _rms_norm(node: ir.Node, op: Rewriter, x: ir.Value, scale: ir.Value, axis: int, epsilon: float) -> None:
    """Outputs: the normalised input, nothing (a mean), the inverse deviation, the input.

    SimplifiedLayerNormalization has the inverse deviation second.
    """
    y = op("RMSNormalization", x, scale, axis=axis, epsilon=epsilon)
    place = 1 if node.op_type == "SimplifiedLayerNormalization" else 2
    outputs: list[ir.Value | None] = [y, None, None, x]
    if _uses(node, place):
        wide = op("Cast", x, to=ir.DataType.FLOAT)
        mean = op("ReduceMean", op("Mul", wide, wide), op.ints([axis]), keepdims=1)
        outputs[place] = op("Reciprocal", op("Sqrt", op("Add", mean, op.floats(epsilon))))
    op.replace(*outputs[: len(node.outputs)])


@lowering(f"{MS}::EmbedLayerNormalization")
def embed_layer_norm(node: ir.Node, op: Rewriter) -> None:
    tables = [input_of(node, i) for i in (2, 3, 4)]
    embedded(node, op, tables, needed(node, 5), needed(node, 6), input_of(node, 7), input_of(node, 8))


def embedded(
    node: ir.Node,
    op: Rewriter,
    tables: list[ir.Value | None],
    gamma: ir.Value,
    beta: ir.Value,
    mask: ir.Value | None,
    positions: ir.Value | None,
) -> None:
    """The sum of the embeddings of words, positions and segments, normalised; how long each row is; the sum."""
    ids, segments = needed(node, 0), input_of(node, 1)
    words, places, kinds = tables
    assert words is not None and places is not None
    if positions is None:
        length = op("Shape", ids, start=1, end=2)
        at = op("Slice", places, op.ints([0]), length, op.ints([0]))
    else:
        at = op("Gather", places, positions, axis=0)
    total = op("Add", op("Gather", words, ids, axis=0), at)
    if segments is not None and kinds is not None:
        total = op("Add", total, op("Gather", kinds, segments, axis=0))
    y = op("LayerNormalization", total, gamma, beta, axis=-1, epsilon=take(node, "epsilon", EPSILON))
    outputs: list[ir.Value | None] = [y, None, total]
    if _uses(node, 1):
        if mask is None:
            zero = op.constant(np.array([0], np.int32))
            outputs[1] = op("Expand", zero, op("Shape", ids, start=0, end=1))
        else:
            outputs[1] = op("ReduceSum", mask, op.ints([1]), keepdims=0)
    op.replace(*outputs[: len(node.outputs)])


@lowering(f"{MS}::QEmbedLayerNormalization")
def qembed_layer_norm(node: ir.Node, op: Rewriter) -> None:
    """Scales of the five tables are inputs 8 to 12, zero points 13 to 17."""

    def table(index: int) -> ir.Value | None:
        x = input_of(node, index)
        if x is None:
            return None
        return op("DequantizeLinear", x, needed(node, index + 6), input_of(node, index + 11))

    words, places, kinds, gamma, beta = (table(i) for i in range(2, 7))
    assert gamma is not None and beta is not None
    embedded(node, op, [words, places, kinds], gamma, beta, input_of(node, 7), None)
