"""Runs a model as a functional Keras model, made by generated source."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.model import Model
from onward.runners import tensorflow
from onward.runners.calls import Run
from onward.runners.runner import Runner, register


def prepare(model: Model, mode: str) -> Run:
    from onward.backends.keras.convert import built

    return runner_of(built(model).net, model.ir.graph)


def runner_of(net: Any, graph: ir.Graph) -> Run:
    """Runs a functional model on numpy inputs by name."""
    names = [value.name or "" for value in graph.outputs]

    def call(*tensors: Any) -> Any:
        found = net(list(tensors) if len(tensors) > 1 else tensors[0])
        return tuple(found[name] for name in names) if len(names) > 1 else found

    return tensorflow.runner_of(call, graph)


register(Runner("keras", "Keras, as a functional model made by generated source", "keras", prepare, {}))
