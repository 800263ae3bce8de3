"""What reductions mean."""

from __future__ import annotations

from dataclasses import dataclass

from onward.spec.meaning import Spec, means


@means(*(f"Reduce{kind}" for kind in ("Sum", "SumSquare", "Mean", "Max", "Min", "Prod", "L1", "L2")))
@means("ReduceLogSum", "ReduceLogSumExp")
@dataclass(frozen=True)
class Reduce(Spec):
    keepdims: int = 1
    noop_with_empty_axes: int = 0


@means("ArgMax", "ArgMin")
@dataclass(frozen=True)
class IndexOf(Spec):
    axis: int = 0
    keepdims: int = 1
    select_last_index: int = 0


@means("CumSum", "CumProd")
@dataclass(frozen=True)
class Running(Spec):
    exclusive: int = 0
    reverse: int = 0
