"""Shapes by rules of our own: where a schema's inference function is wrong, and for the ops that Onward adds."""

from collections.abc import Callable

import onnx_ir as ir

from onward.graph.infer_bodies import UNKNOWN, Dims, Kind, kind_of

Dim = int | str | None


def _attention(node: ir.Node, given: list[Kind]) -> list[Kind]:
    """ONNX's function counts a dimension that is not known as 0."""
    q, v = (kind_of(node.inputs[i]).dims for i in (0, 2))
    kinds = [Kind(k.type, k.dims and (None,) * len(k.dims)) for k in given]
    if q is None or len(q) not in (3, 4):
        return kinds
    width: Dim = v[-1] if v is not None and len(v) == len(q) else None
    if len(q) == 3:
        heads, shared = (node.attributes.get_int(f"{name}_num_heads", 0) for name in ("q", "kv"))
        width = width // shared * heads if isinstance(width, int) and shared else None
    kinds[0] = Kind(kinds[0].type, (*q[:-1], width))
    return kinds


def _layer_norm(node: ir.Node, given: list[Kind]) -> list[Kind]:
    """ONNX leaves out the statistics."""
    x, first = kind_of(node.inputs[0]), node.attributes.get_int("axis", -1)
    if x.dims is None:
        return given
    first %= len(x.dims) or 1
    dims = (*x.dims[:first], *[1] * (len(x.dims) - first))
    stash = ir.TensorType(ir.DataType(node.attributes.get_int("stash_type", 1)))
    return [given[0] if given[0].dims is not None else x, *[Kind(stash, dims)] * (len(given) - 1)]


def _like_input(node: ir.Node, given: list[Kind]) -> list[Kind]:
    return [kind_of(node.inputs[0]), *given[1:]]


def _linear(node: ir.Node, given: list[Kind]) -> list[Kind]:
    x, weight = kind_of(node.inputs[0]), kind_of(node.inputs[1]).dims
    out = 1 if node.attributes.get_int("transposed", 0) else 0
    dims: Dims | None = None if x.dims is None else (*x.dims[:-1], None if weight is None else weight[out])
    return [Kind(x.type, dims)]


def _quantized_linear(node: ir.Node, given: list[Kind]) -> list[Kind]:
    x = kind_of(node.inputs[0])
    width = node.attributes.get_int("out_features" if node.domain == "onward" else "N")
    return [Kind(x.type, None if x.dims is None else (*x.dims[:-1], width))]


def _sdpa(node: ir.Node, given: list[Kind]) -> list[Kind]:
    q, v = kind_of(node.inputs[0]), kind_of(node.inputs[2]).dims
    return [Kind(q.type, None if q.dims is None else (*q.dims[:-1], None if v is None else v[-1]))]


def _group_query_attention(node: ir.Node, given: list[Kind]) -> list[Kind]:
    """The result, and a cache of keys and of values that is as long as the earlier one at least, and as wide."""
    q, k = (kind_of(node.inputs[i]) for i in (0, 1))
    heads, shared = (node.attributes.get_int(name, 0) for name in ("num_heads", "kv_num_heads"))
    whole = (q.dims or (None,))[-1]
    parts = heads if k.type is not None else heads + 2 * shared
    width = whole // parts if isinstance(whole, int) and parts else None
    y = Kind(q.type, None if q.dims is None else (*q.dims[:-1], None if width is None else width * heads))
    caches = [kind_of(node.inputs[i]) for i in (3, 4)]
    batch = None if q.dims is None else q.dims[0]
    widths = (width if past.type is None else (past.dims or (None,))[-1] for past in caches)
    return [
        y,
        *(Kind(past.type or q.type, (batch, shared, None, size)) for past, size in zip(caches, widths, strict=True)),
    ]


def _slice(node: ir.Node, given: list[Kind]) -> list[Kind]:
    """In opset 10, ONNX's function gives a part of a dimension the name of the whole."""
    x = kind_of(node.inputs[0]).dims
    if node.version != 10 or x is None or given[0].dims is None or len(x) != len(given[0].dims):
        return given
    axes = ir.convenience.get_const_tensor(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] else None
    cut = range(len(x)) if axes is None else [int(axis) % (len(x) or 1) for axis in axes.numpy().reshape(-1)]
    dims = tuple(None if i in cut and not isinstance(x[i], int) else dim for i, dim in enumerate(given[0].dims))
    return [Kind(given[0].type, dims)]


CORRECTIONS: dict[str, Callable[[ir.Node, list[Kind]], list[Kind]]] = {
    "Attention": _attention,
    "LayerNormalization": _layer_norm,
    "GroupNormalization": _like_input,
    "Slice": _slice,
}
"""By standard op: what to make of the kinds that its schema gives, unless all sizes are known and it gives them all."""

ADDED: dict[str, Callable[[ir.Node, list[Kind]], list[Kind]]] = {
    "onward::Linear": _linear,
    "onward::QuantizedLinear": _quantized_linear,
    "onward::SDPA": _sdpa,
    "onward::Inverse": _like_input,
    "onward::GroupQueryAttention": _group_query_attention,
    "com.microsoft::MatMulNBits": _quantized_linear,
}
"""By op of another domain, for nodes whose outputs have no type yet."""


def added_kinds(node: ir.Node) -> list[Kind]:
    rule = ADDED.get(f"{node.domain}::{node.op_type}")
    return [UNKNOWN] * len(node.outputs) if rule is None else rule(node, [])
