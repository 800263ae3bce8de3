"""What random numbers mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import onnx_ir as ir

from onward.spec.meaning import Spec, attributes, means

_D = ir.DataType
RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""Ops that draw in whatever mode a model is: not Dropout."""


@means("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
@dataclass(frozen=True)
class Draw(Spec):
    """Numbers of the standard normal distribution, or of 0 to 1, times `factor` plus `shift`."""

    kind: str
    """`normal` or `uniform`."""
    factor: float
    shift: float
    dtype: ir.DataType | None
    """That of the input where the node names none; None where that is not known."""
    shape: tuple[int, ...] = ()
    """Unless there is an input, which has the shape."""
    seed: float | None = None

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        of, like = given.get("dtype"), node.inputs[0] if node.inputs else None
        dtype = _D(of) if of is not None else None if like is None else like.dtype
        more: dict[str, Any] = {"shape": tuple(given.get("shape", ())), "seed": given.get("seed")}
        if node.op_type.startswith("RandomNormal"):
            return cls("normal", given.get("scale", 1.0), given.get("mean", 0.0), dtype, **more)
        low, high = given.get("low", 0.0), given.get("high", 1.0)
        return cls("uniform", high - low, low, dtype, **more)


@means("Bernoulli")
@dataclass(frozen=True)
class Bernoulli(Spec):
    dtype: int | None = None
    seed: float | None = None


@means("Multinomial")
@dataclass(frozen=True)
class Multinomial(Spec):
    dtype: int = _D.INT32
    sample_size: int = 1
    seed: float | None = None
