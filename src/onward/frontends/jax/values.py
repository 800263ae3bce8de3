"""What the variables of a jaxpr stand for: tensors, and pairs of tensors for what ONNX has no dtype for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onward.frontends.tensorflow.values import Complex
from onward.graph.build import Tensor


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys of random numbers: the two words of each, as uint32."""

    first: Tensor
    second: Tensor


Value = Tensor | Complex | Keys


def parts(value: Value) -> list[Tensor]:
    """The tensors that a value is made of."""
    match value:
        case Complex():
            return [value.real, value.imaginary]
        case Keys():
            return [value.first, value.second]
    return [value]


def joined(like: Sequence[Value], tensors: Iterable[Tensor]) -> list[Value]:
    """Values of the kinds of others, of the tensors they are made of."""
    rest = iter(tensors)
    return [next(rest) if isinstance(value, Tensor) else type(value)(next(rest), next(rest)) for value in like]
