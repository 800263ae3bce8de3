"""Ops that mean what an op of TensorFlow means are written by its rule."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import RULES
from onward.frontends.tensorflow.rules.complex_numbers import applied
from onward.frontends.tensorflow.values import Complex
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

ACTIVATIONS = ("", "Relu", "", "Relu6", "Tanh")
"""By the number of a fused activation; 2 is a cut to -1 and 1."""


def like(op: Writer, op_type: str, *inputs: Any, **options: Any) -> Any:
    """What the rule of a TensorFlow op writes."""
    rule = RULES.get(op_type)
    assert rule is not None
    outer, op.operation = op.operation, SimpleNamespace(type=op_type, inputs=[], outputs=[], graph=None)
    try:
        if any(isinstance(value, Complex) for value in inputs):
            return applied(op, op_type, rule, inputs, options)
        return rule.function(op, *inputs, **options)
    finally:
        op.operation = outer


def activated(op: Writer, x: Tensor, function: int) -> Tensor:
    """With the activation that the op has built in."""
    if function == 0:
        return x
    if function == 2:
        return op.Clip(x, op.like(-1, x), op.like(1, x))
    if function >= len(ACTIVATIONS):
        raise UnsupportedError(f"a fused activation of number {function} is not supported")
    return like(op, ACTIVATIONS[function], x)  # type: ignore[no-any-return]


def fused(op: Writer) -> int:
    """The activation that the op being written has built in."""
    return int(getattr(op.operation.options, "fusedActivationFunction", 0))


def custom_options(op: Writer) -> dict[str, Any]:
    """Those of an op that is no builtin one, where they have names."""
    from flatbuffers import flexbuffers

    return dict(flexbuffers.GetRoot(bytearray(op.operation.custom)).Value)


def padding(op: Writer) -> str:
    return ("SAME", "VALID")[op.operation.options.padding]
