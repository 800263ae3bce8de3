"""What products of matrices mean."""

from __future__ import annotations

from dataclasses import dataclass

from onward.spec.meaning import Spec, means


@means("Gemm")
@dataclass(frozen=True)
class Gemm(Spec):
    alpha: float = 1.0
    beta: float = 1.0
    transA: bool = False
    transB: bool = False


@means("onward::Linear")
@dataclass(frozen=True)
class Linear(Spec):
    transposed: bool = False
    """The weight is (in, out), not (out, in)."""


@means("onward::QuantizedLinear")
@dataclass(frozen=True)
class QuantizedLinear(Spec):
    """The weight is (out, in), of numbers of a few bits; each block of a row has a scale and a zero point."""

    in_features: int
    out_features: int
    block_size: int
    bits: int

    @property
    def blocks(self) -> int:
        """How many blocks a row has."""
        return -(-self.in_features // self.block_size)


@means("Einsum")
@dataclass(frozen=True)
class Einsum(Spec):
    equation: str
