"""The loss of a trainable model as it is used: without dropout, with running statistics, nothing is changed."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from onward.errors import UnsupportedError
from onward.graph.build import Builder
from onward.graph.walk import all_nodes
from onward.spec.random import RANDOM
from onward.training.recipe.modes import inference_mode
from onward.training.recipe.targets import class_labels
from onward.training.step_graphs import LOSS, give_out, keep_outputs
from onward.training.trainable import Trainable

RIGHT = "onward.right"
"""How many labels the highest score was that of."""
COUNTED = "onward.counted"
"""How many labels were of a class."""


def evaluation(trainable: Trainable) -> ir.Model:
    """The graph of the loss and, where labels are classes, of what accuracy is computed from."""
    model = trainable.gradients.clone()
    keep_outputs(model, {LOSS})
    labels = next(iter(class_labels(model.graph, trainable.label_inputs).values()), None)
    if labels is not None:
        op = Builder(model)
        wanted = op.tensor(labels.wanted)
        best = op.ArgMax(op.tensor(labels.scores), axis=labels.axis, keepdims=0)
        right = op.Equal(best, wanted.cast(ir.DataType.INT64))
        counts = op.Not(op.Equal(wanted, labels.ignored[0] if labels.ignored else -1))
        for name, flags in ((RIGHT, op.And(right, counts)), (COUNTED, counts)):
            give_out(op, op.ReduceSum(flags.cast(ir.DataType.INT64), keepdims=0), name)
    common.RemoveUnusedNodesPass()(model)
    inference_mode(model)
    common.RemoveUnusedNodesPass()(model)
    if drawn := next((node for node in all_nodes(model.graph) if node.op_type in RANDOM), None):
        raise UnsupportedError(
            f"the loss cannot be computed without the random numbers of training: {drawn.op_type} {drawn.name!r} has"
            " one mode only; evaluate the saved model"
        )
    return model
