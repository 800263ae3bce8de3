"""Constants, arguments, variables, and calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.tensorflow.attributes import attributes
from onward.frontends.tensorflow.composite import COMPOSITES
from onward.frontends.tensorflow.registry import RULES, rule
from onward.frontends.tensorflow.values import Value, Variable
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("Const")
def const(op: Writer, *, value: npt.NDArray[Any]) -> Value:
    """In a frozen graph, what was a variable is told by the name of the op that reads it."""
    name = op.operation.name
    readers = {reader.name for reader in op.operation.outputs[0].consumers() if reader.type == "Identity"}
    if f"{name}/read" in readers or any(reader.endswith("/ReadVariableOp") for reader in readers):
        return op.translator.weight(Variable(name, value, trainable=True))
    return op.array(value)


@rule("ReadVariableOp", "VariableV2")
def read_variable(op: Writer, variable: Variable) -> Tensor:
    return op.translator.weight(variable)


@rule("VariableShape")
def variable_shape(op: Writer, variable: Variable, *, out_type: ir.DataType = ir.DataType.INT32) -> Tensor:
    return op.constant(np.asarray(variable.array.shape, out_type.numpy()))


@rule("PartitionedCall", "StatefulPartitionedCall")
def call(op: Writer, *arguments: Value, f: str) -> Sequence[Value]:
    implemented = op.translator.implements(f, op.operation.graph)
    if implemented is not None and (custom := RULES.get(implemented.name)) is not None:
        found = custom.function(op, *arguments, **attributes(implemented, custom.attributes))
        return found if isinstance(found, Sequence) else [found]
    whole = COMPOSITES.get(f)
    return whole(op, *arguments) if whole is not None else op.translator.call(f, op.operation.graph, arguments)


@rule(
    "Identity",
    "Snapshot",
    "EnsureShape",
    "CheckNumerics",
    "DebugGradientIdentity",
    "PlaceholderWithDefault",
)
def itself(op: Writer, value: Value) -> Value:
    return value


@rule("PreventGradient", "StopGradient")
def stop_gradient(op: Writer, value: Value) -> Value:
    return op.translator.stopped(op.operation, value)


@rule("IdentityN")
def identity_n(op: Writer, *values: Value) -> Sequence[Value]:
    return values


@rule("NoOp", "Assert")
def nothing(op: Writer, *values: Value) -> Sequence[Value]:
    return []
