"""Models that keep something from call to call: which outputs of the ONNX model are for the next call."""

from __future__ import annotations

import json
from collections.abc import Sequence

from onward.model import Model, load

KEY = "onward.states"
"""Of the metadata: names of outputs; the input that one is for has its name without `SUFFIX`."""
SUFFIX = "_next"


def mark(model: Model, outputs: Sequence[str]) -> None:
    if outputs:
        model.ir.metadata_props[KEY] = json.dumps(list(outputs))


def states_of(model: Model) -> list[str]:
    return list(json.loads(model.ir.metadata_props.get(KEY, "[]")))


def without_states(model: Model) -> Model:
    """The same, but for what is for the next call, which the framework it comes from does not show."""
    hidden = states_of(model)
    if not hidden:
        return model
    proto = model.to_proto()
    kept = [output for output in proto.graph.output if output.name not in hidden]
    del proto.graph.output[:]
    proto.graph.output.extend(kept)
    return load(proto)
