"""Computes at once, with TensorFlow itself, what is computed from constants alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onward.frontends.tensorflow.values import Value
from onward.graph.build import Tensor

if TYPE_CHECKING:
    from onward.frontends.tensorflow.writer import Writer

NEVER = {"Shape", "Switch", "RefSwitch"}
"""Ops that are left to their rules: a Shape may be known only in part, a Switch gives on one of its outputs only."""
LIMIT = 4096
"""Elements that a result may have, unless it is made of as many: files should not grow by folding."""


class Folder:
    def __init__(self, op: Writer) -> None:
        self._op = op

    def folded(self, operation: Any, inputs: Sequence[Value], limit: int | None = LIMIT) -> list[Value] | None:
        """The results as constants of up to so many elements, or None where they are for the model to compute."""
        if operation.type in NEVER or not inputs or operation.op_def.is_stateful:
            return None
        arrays = []
        for value in inputs:
            if not isinstance(value, Tensor) or value.value in self._op.weights:
                return None
            array = self._op.known(value)
            if array is None:
                return None
            arrays.append(array)
        if any(output.dtype.as_datatype_enum in (8, 18, 20, 21) for output in operation.outputs):
            return None
        allowed = math.inf if limit is None else max(limit, *(array.size for array in arrays))
        if any(
            (math.prod(output.shape.as_list()) if output.shape.is_fully_defined() else 0) > allowed
            for output in operation.outputs
        ):
            return None
        results = self._computed(operation, arrays)
        if results is None or any(result.size > allowed for result in results):
            return None
        return [self._op.array(result) for result in results]

    def _computed(self, operation: Any, arrays: list[Any]) -> list[Any] | None:
        import tensorflow as tf
        from tensorflow.python.eager import context, execute

        if any(attr.WhichOneof("value") == "func" for attr in operation.node_def.attr.values()):
            return None
        inputs = [tf.constant(a, dtype=tensor.dtype) for a, tensor in zip(arrays, operation.inputs, strict=True)]
        pairs = [(attr.name, operation.get_attr(attr.name)) for attr in operation.op_def.attr]
        flat = [item for name, value in pairs for item in (name, _enum(value))]
        with tf.init_scope():
            results = execute.execute(operation.type, len(operation.outputs), inputs, tuple(flat), context.context())
        return [np.asarray(result) for result in results]


def _enum(value: Any) -> Any:
    """A dtype, or a list of them, as the number that TensorFlow's core takes."""
    if isinstance(value, list):
        return [_enum(item) for item in value]
    return getattr(value, "as_datatype_enum", value)
