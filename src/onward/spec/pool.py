"""What pools mean: the window that slides, and what becomes of what is under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import onnx_ir as ir

from onward.spec.meaning import Spec, attributes, image_sizes, means
from onward.spec.window import Window, window


@dataclass(frozen=True)
class Pool(Spec):
    """A pool over windows. `ceil_mode`: windows that begin inside the image count, though they end outside of it."""

    window: Window
    ceil_mode: bool

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        win = window(
            given.pop("kernel_shape"),
            image_sizes(node),
            strides=given.pop("strides", None),
            dilations=given.pop("dilations", None),
            pads=given.pop("pads", None),
            auto_pad=given.pop("auto_pad", "NOTSET"),
            pool=True,
        )
        return cls(win, bool(given.pop("ceil_mode", 0)), **given)


@means("MaxPool")
@dataclass(frozen=True)
class MaxPool(Pool):
    storage_order: int = 0
    """1: the places of the largest elements are counted column by column."""


@means("AveragePool")
@dataclass(frozen=True)
class AveragePool(Pool):
    count_include_pad: int = 0


@means("LpPool")
@dataclass(frozen=True)
class LpPool(Pool):
    p: int = 2


@means("GlobalLpPool")
@dataclass(frozen=True)
class GlobalLpPool(Spec):
    p: int = 2


@means("MaxUnpool")
@dataclass(frozen=True)
class MaxUnpool(Spec):
    """The pool that is undone; None where the node leaves a parameter out."""

    kernel_shape: tuple[int, ...]
    pads: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None


@means("MaxRoiPool")
@dataclass(frozen=True)
class MaxRoiPool(Spec):
    pooled_shape: tuple[int, ...]
    spatial_scale: float = 1.0
