"""Branches and loops over other graphs of the file."""

from __future__ import annotations

import onnx_ir as ir

from onward.canon.build import Tensor
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.registry import rule


@rule("IF")
def if_(op: Writer, condition: Tensor, *arguments: Tensor) -> list[Tensor]:
    options, walk = op.operation.options, op.operation.graph
    bodies = []
    for number in (options.thenSubgraphIndex, options.elseSubgraphIndex):
        graph = ir.Graph([], [], nodes=[], name=op.names.node("branch"))
        with op.inside(graph):
            for result in walk.called(number, arguments):
                graph.outputs.append(op.Identity(result).value)
        bodies.append(graph)
    test = op.Reshape(condition, op.ints([]))
    return op.many("If", len(bodies[0].outputs), test, then_branch=bodies[0], else_branch=bodies[1])


@rule("WHILE")
def while_(op: Writer, *arguments: Tensor) -> list[Tensor]:
    options, walk = op.operation.options, op.operation.graph
    first = walk.called(options.condSubgraphIndex, arguments)[0]
    inner = ir.Graph([], [], nodes=[], name=op.names.node("loop"))
    for dtype in (ir.DataType.INT64, ir.DataType.BOOL):
        inner.inputs.append(ir.Value(name=op.names.value("loop"), type=ir.TensorType(dtype), shape=ir.Shape([])))
    states = []
    for argument in arguments:
        shape = None if argument.dims is None else ir.Shape([None] * len(argument.dims))
        value = ir.Value(name=op.names.value("loop"), type=argument.value.type, shape=shape)
        inner.inputs.append(value)
        states.append(op.tensor(value))
    with op.inside(inner):
        results = walk.called(options.bodySubgraphIndex, states)
        goes_on = walk.called(options.condSubgraphIndex, results)[0]
        inner.outputs.append(op.Reshape(goes_on, op.ints([])).value)
        inner.outputs.extend(op.Identity(result).value for result in results)
    start = op.Reshape(first, op.ints([]))
    return op.many("Loop", len(arguments), None, start, *arguments, body=inner)
