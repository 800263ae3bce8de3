"""What normalisations mean."""

from __future__ import annotations

from dataclasses import dataclass

from onward.spec.meaning import Spec, means


@means("InstanceNormalization")
@dataclass(frozen=True)
class Norm(Spec):
    epsilon: float = 1e-5


@means("BatchNormalization")
@dataclass(frozen=True)
class BatchNorm(Norm):
    momentum: float = 0.9
    training_mode: bool = False
    unbiased: bool | None = None
    """Which variance the running one takes in, where training goes on; no file has this attribute."""


@means("LayerNormalization", "RMSNormalization")
@dataclass(frozen=True)
class LayerNorm(Norm):
    """Over all axes from `axis` on."""

    axis: int = -1
    stash_type: int = 1
    """The dtype of the statistics."""


@means("GroupNormalization")
@dataclass(frozen=True, kw_only=True)
class GroupNorm(Norm):
    num_groups: int
    stash_type: int = 1


@means("LRN")
@dataclass(frozen=True)
class LRN(Spec):
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0


@means("LpNormalization")
@dataclass(frozen=True)
class LpNorm(Spec):
    axis: int = -1
    p: int = 2


@means("MeanVarianceNormalization")
@dataclass(frozen=True)
class MeanVarianceNorm(Spec):
    axes: tuple[int, ...] = (0, 2, 3)
