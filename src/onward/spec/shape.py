"""What ops that rearrange elements mean, and those that make tensors of a shape alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onward.spec.index import Along
from onward.spec.meaning import Spec, means


@means("Reshape")
@dataclass(frozen=True)
class Reshape(Spec):
    allowzero: int = 0


@means("Flatten")
@dataclass(frozen=True)
class Flatten(Along):
    axis: int = 1


@means("Transpose")
@dataclass(frozen=True)
class Transpose(Spec):
    perm: Sequence[int] | None = None


@means("Concat")
@dataclass(frozen=True)
class Concat(Along):
    pass


@means("Split")
@dataclass(frozen=True)
class Split(Along):
    num_outputs: int | None = None


@means("Shape")
@dataclass(frozen=True)
class Shape(Spec):
    start: int = 0
    end: int | None = None


@means("Range")
@dataclass(frozen=True)
class Range(Spec):
    stash_type: int = 1


@means("ConstantOfShape")
@dataclass(frozen=True)
class ConstantOfShape(Spec):
    value: ir.TensorProtocol | None = None

    @property
    def dtype(self) -> ir.DataType:
        return ir.DataType.FLOAT if self.value is None else self.value.dtype

    @property
    def fill(self) -> Any:
        return 0 if self.value is None else self.value.numpy().reshape(-1)[0].item()

    @property
    def is_zero(self) -> bool:
        """Whether it is filled with 0, and not with -0.0."""
        return bool(self.fill == 0 and math.copysign(1, self.fill) > 0)


@means("EyeLike")
@dataclass(frozen=True)
class EyeLike(Spec):
    dtype: int | None = None
    k: int = 0


@means("Trilu")
@dataclass(frozen=True)
class Trilu(Spec):
    upper: int = 1


@means("DepthToSpace", "SpaceToDepth")
@dataclass(frozen=True)
class Blocks(Spec):
    blocksize: int
    mode: str = "DCR"
