"""Resizing by the helper that knows every mode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onward.backends.emit.arguments import changed, given
from onward.backends.emit.emitter import Emitter, exact
from onward.backends.emit.expr import Expr, ops
from onward.spec.resize import Resize

METHOD = ("mode", "coordinates", "rounding", "policy", "cubic", "exclude_outside", "antialias")


def resized(
    e: Emitter, x: Expr, roi: Expr | None, scales: Any, sizes: Any, axes: Iterable[int] | None, p: Resize
) -> Expr:
    return ops.resize(
        x,
        **given(size=sizes, scales=scales, axes=None if axes is None else e.target.each(axes)),
        **changed(p, *METHOD),
        **given(roi=e.numbers(roi) if p.crops and roi is not None else None),
        **changed(p, "outside"),
    )


def scales_of(e: Emitter, scales: Expr | None) -> Any:
    """Scales as numbers, or what stands for them; None where an empty tensor stands for none, as in many files."""
    if scales is None or e.shape(scales) == (0,):
        return None
    constant = e.const(scales)
    return e.numbers(scales) if constant is None else exact(constant).reshape(-1).tolist()


def sizes_of(e: Emitter, sizes: Expr | None) -> Any:
    return None if sizes is None or e.shape(sizes) == (0,) else e.numbers(sizes)
