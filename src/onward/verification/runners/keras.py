"""Runs a model as a functional Keras model, made by generated source."""

from __future__ import annotations

from typing import Any

from onward.model import Model
from onward.verification.runners import Run, Runner, register


def prepare(model: Model, mode: str) -> Run:
    from onward.backends.keras.convert import to_keras
    from onward.verification.runners.tensorflow import runner_of

    net = to_keras(model)
    names = [value.name or "" for value in model.ir.graph.outputs]

    def call(*tensors: Any) -> Any:
        found = net(list(tensors) if len(tensors) > 1 else tensors[0])
        return tuple(found[name] for name in names) if len(names) > 1 else found

    return runner_of(call, model.ir.graph)


register(Runner("keras", "Keras, as a functional model made by generated source", "keras", prepare, {}))
