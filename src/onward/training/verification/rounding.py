"""The same graph of gradients, rounded otherwise: what is measured where a start that is one bit off shows too little.

Near the end of a training the loss is a small difference of large numbers, and so is its gradient. There it matters how
a framework rounds on the way, and not only how it rounds weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

from onward.model import Model
from onward.verification.noise.jitter import jittered


def rounded_otherwise(graph: ir.Model, seed: int) -> ir.Model:
    """Every result inside is off by about a unit in the last place; drawn anew in each run."""
    proto = Model(graph.clone()).to_proto()
    nodes = [new for number, node in enumerate(proto.graph.node) for new in _parts(proto.graph, node, number)]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    made: ir.Model = ir.from_proto(jittered(proto, seed))
    return made


def _parts(graph: onnx.GraphProto, node: onnx.NodeProto, number: int) -> Iterator[onnx.NodeProto]:
    """LogSoftmax as the ops that it consists of, whose results are rounded: what it gives is far smaller than these."""
    if node.op_type != "LogSoftmax" or node.domain not in ("", "ai.onnx"):
        yield node
        return
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), -1)
    axes, largest, moved, powers, total, log = (f"{node.output[0]}/part/{number}/{i}" for i in range(6))
    graph.initializer.append(numpy_helper.from_array(np.array([axis], np.int64), axes))
    yield helper.make_node("ReduceMax", [node.input[0], axes], [largest])
    yield helper.make_node("Sub", [node.input[0], largest], [moved])
    yield helper.make_node("Exp", [moved], [powers])
    yield helper.make_node("ReduceSum", [powers, axes], [total])
    yield helper.make_node("Log", [total], [log])
    yield helper.make_node("Sub", [moved, log], [node.output[0]])
