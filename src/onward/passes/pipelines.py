"""Named sequences of passes, with the reasons for their order."""

from __future__ import annotations

import onnx_ir as ir

from onward.passes.fuse_activation import fuse_activation
from onward.passes.fuse_attention import fuse_attention
from onward.passes.fuse_layernorm import fuse_layernorm
from onward.passes.fuse_linear import fuse_linear
from onward.passes.fuse_rnn import fuse_rnn
from onward.passes.rewrite import graphs, remove_unread


def idioms(model: ir.Model) -> None:
    """Recognise, in place, what frameworks have a name for and exporters wrote as many nodes.

    Runs before constants are folded: a folded weight has lost the name it had in the original model.
    """
    fuse_rnn(model)  # first: with the initial states it drops go nodes that read the sequences between layers
    fuse_linear(model)  # before attention: a product with constant keys or values is a layer that owns them
    fuse_attention(model)
    fuse_layernorm(model)
    fuse_activation(model)
    for graph in graphs(model):
        remove_unread(list(graph))
