"""The last steps: what nothing reads goes, weights get their names, nodes get dtypes that ONNX Runtime computes."""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes

from onward.frontends.decompose import special
from onward.frontends.jax import norms
from onward.frontends.jax.translate import Translator
from onward.frontends.runtime_kernels import keep_vectors, make_runnable
from onward.graph.build import Builder
from onward.graph.replace import DOMAIN, graphs, is_op, made_by, remove_unread, take_over
from onward.graph.trained import record
from onward.graph.walk import all_nodes
from onward.layout.constants import rename
from onward.layout.onnx_to_onnx import spare_transposes
from onward.model import Model
from onward.passes.fuse_activation import fuse_activation
from onward.passes.fuse_norms import fuse_norms
from onward.passes.merge_directions import merge_directions

ACTIVATIONS = {"Gelu": 20, "HardSwish": 14, "Mish": 18}
"""Since which opset they are there; each has a kernel, or one node less than what it is made of."""
WINDOWS = {
    "Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "GroupNormalization", "MaxPool",
    "AveragePool",
}  # fmt: skip
"""Ops that have channels first, where transposes stand around them."""


def _remove_unread(model: Model) -> None:
    for graph in graphs(model.ir):
        remove_unread(list(graph))


def _write_out(model: Model) -> None:
    """Write the complementary error functions that are no part of another function."""
    tails = [node for node in all_nodes(model.ir.graph) if node.domain == DOMAIN and node.op_type == "Erfc"]
    if not tails:
        return
    op = Builder(model.ir)
    for node in tails:
        apart = ir.Graph([], [], nodes=[], name="erfc")
        op.scope = f"{node.name}/"
        assert node.graph is not None and node.inputs[0] is not None
        with op.inside(apart):
            tail = special.erfc(op, op.tensor(node.inputs[0]))
        written = list(apart)
        apart.remove(written)
        node.graph.insert_before(node, written)
        take_over(node.outputs[0], tail.value)
        node.graph.remove(node, safe=True)


def _can_spare(graph: ir.Graph) -> bool:
    """Whether transposes may go: not around the only op that has them, between an input and a reshape, as of patches.

    A swap of two axes may still become one with what is beside it, as where tokens are mixed.
    """
    nodes = list(all_nodes(graph))
    windows = [node for node in nodes if node.op_type in WINDOWS]
    turns = [node for node in nodes if is_op(node, "Transpose")]
    if len(windows) != 1 or not turns:
        return bool(windows and turns)
    if any(len(node.outputs[0].shape or ()) <= 3 for node in turns):
        return True
    turn, back = made_by(windows[0].inputs[0], "Transpose"), windows[0].outputs[0].consumers()
    if turn is None or turn.inputs[0] is None or turn.inputs[0].producer() is not None:
        return True
    after = [node for one in back if is_op(one, "Transpose") for node in one.outputs[0].consumers()]
    return len(back) != 1 or not after or not all(is_op(node, "Reshape") for node in after)


def finished(translator: Translator) -> Model:
    model = Model(translator.model)
    graph, opset = model.ir.graph, model.ir.opset_imports[""]
    _remove_unread(model)
    _write_out(model)
    norms.fuse(model.ir)
    fuse_norms(model.ir)  # as Keras writes them
    fuse_activation(model.ir, [name for name, since in ACTIVATIONS.items() if opset >= since])
    passes.RemoveUnusedNodesPass()(model.ir)
    merged = merge_directions(model.ir)
    for weight, stored in translator.op.rearranged.items():
        if not weight.uses() and stored.uses() and weight.name is not None:
            name = weight.name
            if name in graph.initializers:
                del graph.initializers[name]
            rename(graph, stored, name)
    if translator.op.variables:
        record(model.ir, {value.name or "": yes for value, yes in translator.op.variables.items()})
    keep_vectors(model.ir)  # before shapes are inferred anew
    if merged or _can_spare(graph):
        spare_transposes(model.ir, translator.op.inference.answers)
        model.validate()
    make_runnable(model.ir)
    passes.RemoveUnusedNodesPass()(model.ir)
    return model
