"""What reading images between their elements means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import onnx_ir as ir

from onward.spec.meaning import Spec, attributes, means


@means("AffineGrid")
@dataclass(frozen=True)
class AffineGrid(Spec):
    align_corners: bool = False


@means("GridSample")
@dataclass(frozen=True)
class GridSample(AffineGrid):
    mode: str = "linear"
    padding_mode: str = "zeros"


@means("RoiAlign")
@dataclass(frozen=True)
class RoiAlign(Spec):
    half_pixel: bool = True
    """Regions begin half an element earlier, and may be smaller than an element."""
    mode: str = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    """How many samples a cell has along an axis; 0: as many as it has elements."""
    spatial_scale: float = 1.0

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        half = given.pop("coordinate_transformation_mode", "half_pixel") == "half_pixel"
        return cls(half_pixel=half, **given)


@means("NonMaxSuppression")
@dataclass(frozen=True)
class NonMaxSuppression(Spec):
    center_point_box: bool = False
