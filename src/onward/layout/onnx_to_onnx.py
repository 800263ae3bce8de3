"""ONNX → ONNX: the same function with other layouts of its inputs and outputs, and fewer transposes inside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from onward.canon.inline import inline
from onward.canon.upgrade import upgrade
from onward.errors import UnsupportedError
from onward.graph.constants import plain_constants
from onward.graph.infer import Answers, infer
from onward.graph.known import Known
from onward.graph.origin import KEY as ORIGIN
from onward.graph.trained import record, recorded
from onward.graph.walk import all_nodes
from onward.layout.channels_last import Moved, drop_defaults, relayout
from onward.layout.channelwise import lift, lower
from onward.layout.constants import KEY
from onward.layout.meanings import Meanings
from onward.layout.orders import RANKS, Layout
from onward.layout.roles import ONNX
from onward.model import Model

OLDEST = 13
"""The oldest opset whose ops have the axes where the rules look for them; older models are upgraded."""
UPGRADED = 21


@dataclass(frozen=True)
class Relaid:
    model: Model
    moved: Moved
    before: int
    """Transposes in the graph, and in the graphs inside it."""
    after: int


def relaid(
    model: Model,
    to: Layout | None,
    inputs_nhwc: Iterable[str] | None = None,
    outputs_nhwc: Iterable[str] | None = None,
) -> Relaid:
    """A new model of standard ops that computes the same.

    Images with two or three spatial axes are handed over in the layout `to`, or as they are for None. Where names are
    given, these inputs (or outputs) are handed over channels last, and the others as they are.
    """
    if model.training_info:
        raise UnsupportedError("the model has training info, whose bindings name weights by the layout they have")
    graph = model.ir.clone()
    prepare(graph, model.ir_version)
    before = transposes(graph)
    lift(graph)
    moved = relayout(
        graph,
        ONNX,
        _wanted(graph.graph, graph.graph.inputs, to, inputs_nhwc),
        _wanted(graph.graph, graph.graph.outputs, to, outputs_nhwc),
    )
    _lowered(graph)
    result = Model(graph, path=model.path, ir_version=model.ir_version, data_files=model.data_files)
    result.validate()
    return Relaid(result, moved, before, transposes(graph))


def spare_transposes(model: ir.Model, answers: Answers | None = None) -> None:
    """The same in place, for a graph that is the caller's own: inputs and outputs are handed over as they are.

    `answers` are those of an inference that was made of it before.
    """
    prepare(model, model.ir_version, answers)
    lift(model)
    relayout(model, ONNX, {}, {})
    _lowered(model)


def prepare(model: ir.Model, ir_version: int, answers: Answers | None = None) -> None:
    """Make it one that the pass can take, of an opset that ONNX Runtime runs: typed, without functions, not too old."""
    if model.functions:
        inline(model)
    plain_constants(model)
    if ir_version < 4:
        drop_defaults(model.graph)
    infer(model, answers)
    if model.opset_imports.get("", OLDEST) < OLDEST:
        upgrade(model, UPGRADED)
        infer(model)


def _lowered(model: ir.Model) -> None:
    """Standard ops again, after the pass."""
    lower(model)
    _keep_record(model)
    for node in all_nodes(model.graph):
        node.metadata_props.pop(ORIGIN, None)


def _keep_record(model: ir.Model) -> None:
    """Weights that are stored in another order under another name are trained as before."""
    known = recorded(model)
    if known is not None:
        values = model.graph.initializers
        made = {name: known[of] for name, value in values.items() if (of := value.metadata_props.get(KEY)) in known}
        record(model, known | made)


def transposes(model: ir.Model) -> int:
    return sum(node.op_type == "Transpose" and node.domain == "" for node in all_nodes(model.graph))


def _wanted(
    graph: ir.Graph, values: Iterable[ir.Value], to: Layout | None, names: Iterable[str] | None
) -> dict[str, Layout]:
    if names is not None:
        return dict.fromkeys(names, Layout.LAST)
    if to is None:
        return {}
    known = Known()
    for node in graph:
        known.node(node)
    meanings = Meanings(graph, known)
    return {value.name or "": to for value in values if _is_image(value, meanings)}


def _is_image(value: ir.Value, meanings: Meanings) -> bool:
    """Whether the graph says where the channels of a value are, and it is no series in time."""
    if value.is_initializer() or not isinstance(value.type, ir.TensorType):
        return False
    return len(value.shape or ()) in RANKS[1:] and meanings.is_image(value)
