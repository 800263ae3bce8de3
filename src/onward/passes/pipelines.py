"""Any model → the canonical form that backends see: one opset, no functions, defaults filled in, types known.

The one place that joins `canon` and `passes`, with the reasons for their order.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
from onnx_ir.passes import common

from onward.canon.custom import add_bodies
from onward.canon.defaults import fill_defaults
from onward.canon.inline import inline
from onward.canon.lower import has_foreign, has_unruled, lower, lower_foreign
from onward.canon.signature import check_signatures
from onward.canon.upgrade import has_outdated, upgrade
from onward.graph.constants import plain_constants
from onward.graph.infer import Answers, infer
from onward.graph.replace import graphs, remove_unread
from onward.graph.trained import mark_weights
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.passes.arrange_weights import arrange_weights
from onward.passes.fold_constants import fold_constants
from onward.passes.fuse_activation import fuse_activation
from onward.passes.fuse_attention import fuse_attention
from onward.passes.fuse_dense import fuse_dense
from onward.passes.fuse_layernorm import fuse_layernorm
from onward.passes.fuse_linear import fuse_linear
from onward.passes.fuse_repeat import fuse_repeat
from onward.passes.fuse_rnn import fuse_rnn
from onward.passes.gradients import enclose_gradients
from onward.passes.quantized.fuse_codes import fuse_codes
from onward.passes.quantized.fuse_dynamic import fuse_dynamic
from onward.passes.simplify import simplify
from onward.passes.tie_weights import tie_weights


def canonical(model: Model, has_rule: Callable[[str], bool]) -> ir.Model:
    """A new ir model in canonical form; `has_rule` tells which ops the backend knows, the others are lowered."""
    graph = model.ir.clone()
    add_bodies(graph, has_rule)
    inline(graph)
    plain_constants(graph)
    mark_weights(graph)  # before anything is rewritten: what rules make up is no weight
    check_signatures(graph)
    enclose_gradients(graph)  # while tensors still have the names by which gradients refer to them
    answers: Answers = {}
    outdated = has_outdated(graph)
    if outdated:
        infer(graph, answers)  # rewrites are shorter where shapes are known
    upgrade(graph)
    fill_defaults(graph)
    if not outdated:
        infer(graph, answers)
    replaced = False
    if outdated or has_foreign(graph):
        replaced = lower_foreign(graph, has_rule, answers)  # idioms look at standard ops; types all values anew
    typed = None if replaced else _wiring(graph)
    simplify(graph)
    tie_weights(graph)  # before idioms: a linear layer shares a weight that is transposed as it runs
    arrange_weights(graph)  # before idioms: a layer owns constants only
    idioms(graph, has_rule)  # before folding: a folded weight has lost the name it had in the original model
    fold_constants(graph)  # before lowering, which looks for constants
    is_open = typed != _wiring(graph) or has_unruled(graph, has_rule)
    if is_open and lower(graph, has_rule, answers):  # types all values anew
        infer(graph, answers)  # what surrounds a lowered body may be better known now
    common.RemoveUnusedNodesPass()(graph)
    return graph


def idioms(model: ir.Model, has_rule: Callable[[str], bool]) -> None:
    """Recognise, in place, what frameworks have a name for and exporters wrote as many nodes.

    Ops of our own are made for backends that know them only; ops of ONNX can be lowered again.

    Runs before constants are folded: a folded weight has lost the name it had in the original model.
    """
    if has_rule("onward::LSTM"):
        fuse_rnn(model)  # first: with the initial states it drops go nodes that read the sequences between layers
    if _has_all(has_rule, "DynamicLinear", "DynamicConv"):
        fuse_dynamic(model)
    if _has_all(has_rule, "Int8Linear", "Int8Conv", "Rounded"):
        fuse_codes(model)  # before linear layers, whose weights are floats
    if has_rule("onward::Linear"):
        fuse_dense(model)  # before linear layers: what is added after a layer's axes came back is its bias
        fuse_linear(model)  # before attention: a product with constant keys or values is a layer that owns them
    if _has_all(has_rule, "Repeat", "RotateHalf"):
        fuse_repeat(model)
    if has_rule("onward::SDPA"):
        fuse_attention(model)
    fuse_layernorm(model)
    fuse_activation(model)
    for graph in graphs(model):
        remove_unread(list(graph))


def _has_all(has_rule: Callable[[str], bool], *ops: str) -> bool:
    """Whether a backend knows all of these ops of our own."""
    return all(has_rule(f"onward::{op}") for op in ops)


def _wiring(model: ir.Model) -> list[tuple[ir.Node, str, tuple[ir.Value | None, ...], list[ir.Attr]]]:
    """All that types follow from: while it is the same, they hold."""
    nodes = all_nodes(model.graph)
    return [(node, node.op_type, tuple(node.inputs), list(node.attributes.values())) for node in nodes]
