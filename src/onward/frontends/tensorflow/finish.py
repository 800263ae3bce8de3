"""The last steps: what nothing reads goes, weights get their names, transposes go where the layout allows."""

from __future__ import annotations

import onnx_ir.passes.common as passes

from onward.frontends.runtime_kernels import make_runnable
from onward.frontends.tensorflow.translate import Translator
from onward.graph.trained import record
from onward.layout.constants import rename
from onward.layout.onnx_to_onnx import spare_transposes
from onward.model import Model
from onward.passes.fuse_dense import fuse_dense
from onward.passes.fuse_norms import fuse_norms
from onward.passes.merge_directions import merge_directions


def finished(translator: Translator, model: Model) -> Model:
    graph = model.ir.graph
    fuse_norms(model.ir)
    fuse_dense(model.ir)
    passes.RemoveUnusedNodesPass()(model.ir)
    merge_directions(model.ir)
    passes.RemoveUnusedNodesPass()(model.ir)
    for weight, stored in translator.op.rearranged.items():
        if not weight.uses() and stored.uses() and weight.name is not None:
            name = weight.name
            if name in graph.initializers:
                del graph.initializers[name]
            rename(graph, stored, name)
    if translator.op.variables or translator.knows_variables:
        record(model.ir, {value.name or "": yes for value, yes in translator.op.variables.items()})
    spare_transposes(model.ir)
    model.validate()
    make_runnable(model.ir)
    passes.RemoveUnusedNodesPass()(model.ir)
    return model
