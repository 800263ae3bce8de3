"""What convolutions mean: the window that slides, and what is cut off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import onnx_ir as ir

from onward.spec.meaning import Spec, attributes, image_sizes, means, rank, sizes
from onward.spec.window import Ints, Transposed, Window, transposed, window


@means("Col2Im")
@dataclass(frozen=True)
class Strided(Spec):
    """None where the node leaves a parameter out."""

    dilations: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None


@means("DeformConv")
@dataclass(frozen=True)
class DeformConv(Strided):
    kernel_shape: Ints | None = None
    group: int = 1
    offset_group: int = 1


@means("Conv", "ConvInteger", "QLinearConv")
@dataclass(frozen=True)
class Conv(Strided):
    kernel_shape: Ints | None = None
    """As the node or the shape of its weight has it; None where a size is not known."""
    axes: int | None = None
    """The number of spatial axes, as far as it is known."""
    sizes: tuple[int | None, ...] | None = None
    auto_pad: str = "NOTSET"
    group: int = 1

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given, weight = attributes(node), 3 if node.op_type == "QLinearConv" else 1
        found = given.pop("kernel_shape", None) or (sizes(node, weight) or ())[2:]
        kernel = None if not found or None in found else tuple(found)
        axes = len(found) or (rank(node, weight) or rank(node) or 2) - 2
        return cls(kernel_shape=kernel, axes=axes or None, sizes=image_sizes(node), **given)

    @property
    def is_same(self) -> bool:
        """Whether the padding is automatic."""
        return self.auto_pad.startswith("SAME")

    @cached_property
    def window(self) -> Window | None:
        """None where the rank is not known; its kernel is of zeros where the sizes are not."""
        if self.axes is None:
            return None
        win = window(
            self.kernel_shape or (0,) * self.axes,
            self.sizes,
            strides=self.strides,
            dilations=self.dilations,
            pads=self.pads,
            auto_pad=self.auto_pad,
        )
        return win if self.kernel_shape else replace(win, begin=None, end=None) if win.same else win


@means("ConvTranspose")
@dataclass(frozen=True)
class ConvTranspose(Conv):
    output_padding: Ints | None = None
    output_shape: Ints | None = None

    @cached_property
    def cut(self) -> Transposed | None:
        """The window and what is cut off; None where that depends on a size not known yet."""
        if self.axes is None or (self.kernel_shape is None and (self.output_shape or self.is_same)):
            return None
        return transposed(
            self.kernel_shape or (0,) * self.axes,
            self.sizes,
            strides=self.strides,
            dilations=self.dilations,
            pads=self.pads,
            auto_pad=self.auto_pad,
            output_padding=self.output_padding,
            output_shape=self.output_shape,
        )
