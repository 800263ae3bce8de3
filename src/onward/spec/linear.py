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


@means("Einsum")
@dataclass(frozen=True)
class Einsum(Spec):
    equation: str
