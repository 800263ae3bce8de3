"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import without_zeros
from onward.backends.torch.target import F, nn, ops, rule
from onward.backends.torch.window import options, padded, short, spatial, typed
from onward.spec.window import Transposed, transposed, window

Ints = Sequence[int]


@rule("Conv")
def conv(
    e: Emitter,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr:
    b = without_zeros(e, b)
    kernel = _kernel(e, x, w, kernel_shape, needed=auto_pad.startswith("SAME"))
    if kernel is None or len(kernel) > 3:
        padding = auto_pad.lower() if auto_pad.startswith("SAME") else None if auto_pad == "VALID" else pads
        given = _lists(stride=strides, dilation=dilations)
        return ops.conv_nd(x, w, b, **given, **options(padding=padding, groups=group))
    win = window(kernel, spatial(e, x), strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad)
    if not win.symmetric:
        x = padded(x, win)
    arguments = options(
        stride=short(win.strides),
        padding=short(win.begin) if win.begin and win.symmetric else 0,
        dilation=short(win.dilations),
        groups=group,
    )
    return _layer(e, "Conv", x, w, b, len(kernel), group, arguments)


@rule("ConvTranspose")
def conv_transpose(
    e: Emitter,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr:
    b = without_zeros(e, b)
    kernel = _kernel(e, x, w, kernel_shape, needed=bool(output_shape) or auto_pad.startswith("SAME"))
    spec = None
    if kernel is not None and len(kernel) <= 3:
        spec = transposed(
            kernel,
            spatial(e, x),
            strides=strides,
            dilations=dilations,
            pads=pads,
            auto_pad=auto_pad,
            output_padding=output_padding,
            output_shape=output_shape,
        )
    if spec is None or not _expressible(spec):
        return ops.conv_transpose_nd(
            x,
            w,
            b,
            **options(
                stride=strides,
                pads=pads,
                dilation=dilations,
                groups=group,
                output_padding=output_padding,
                output_shape=output_shape,
                auto_pad=None if auto_pad == "NOTSET" else auto_pad,
            ),
        )
    extra = spec.extra
    arguments = options(
        stride=short(spec.window.strides),
        padding=short(spec.begin),
        output_padding=short([max(n, 0) for n in extra]),
        groups=group,
        dilation=short(spec.window.dilations),
    )
    y = _layer(e, "ConvTranspose", x, w, b, len(spec.begin), group, arguments)
    if min(extra) < 0:
        return y[(..., *(slice(None, min(n, 0) or None) for n in extra))]
    return y


@rule("DeformConv")
def deform_conv(
    e: Emitter,
    x: Expr,
    w: Expr,
    offset: Expr,
    b: Expr | None = None,
    mask: Expr | None = None,
    *,
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    offset_group: int = 1,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr:
    given = _lists(stride=strides, pads=pads, dilation=dilations)
    more = options(groups=group, offset_groups=None if offset_group == 1 else offset_group)
    return ops.deform_conv(x, w, offset, **options(bias=b, mask=mask), **given, **more)


@rule("Col2Im")
def col2im(
    e: Emitter,
    x: Expr,
    image_shape: Expr,
    block_shape: Expr,
    *,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr:
    image, block = e.numbers(image_shape), e.numbers(block_shape)
    rank = len(block) if isinstance(block, list) else 0
    even = not pads or list(pads[:rank]) == list(pads[rank:])
    if rank != 2 or not isinstance(image, list) or not even:
        return ops.col2im(x, image, block, **_lists(stride=strides, pads=pads, dilation=dilations))
    given = {k: short(v) for k, v in _lists(dilation=dilations, padding=(pads or ())[:2], stride=strides).items()}
    return F.fold(x, tuple(image), tuple(block), **given)


def _lists(**given: Ints | None) -> dict[str, Any]:
    """Those of the helpers' arguments that say something."""
    return {k: tuple(v) for k, v in given.items() if v and set(v) != {0 if k in ("pads", "padding") else 1}}


def _expressible(spec: Transposed) -> bool:
    """PyTorch takes no negative padding, and an output padding below the stride or the dilation only."""
    limits = map(max, spec.window.strides, spec.window.dilations)
    return min(spec.begin) >= 0 and all(n < limit for n, limit in zip(spec.extra, limits, strict=True))


def _kernel(e: Emitter, x: Expr, w: Expr, given: Ints | None, needed: bool) -> tuple[int, ...] | None:
    """The kernel's sizes; zeros where unknown and not `needed`; None where not even the rank is known."""
    if given:
        return tuple(given)
    shape = e.shape(w)
    sizes = None if shape is None else shape[2:]
    if sizes is not None and None not in sizes:
        return tuple(n for n in sizes if n is not None)
    if needed:
        return None
    rank = e.rank(w) or e.rank(x)
    return None if rank is None else (0,) * (rank - 2)


def _layer(
    e: Emitter, name: str, x: Expr, w: Expr, b: Expr | None, rank: int, group: int, arguments: dict[str, Any]
) -> Expr:
    """A module where it can own the weights, else a call of the function."""
    weight = e.const(w)
    if weight is None or (b is not None and e.const(b) is None) or e.named_otherwise(weight=w, bias=b):
        function: Expr = getattr(F, f"conv{rank}d" if name == "Conv" else f"conv_transpose{rank}d")
        return function(x, w, **options(bias=b), **arguments)
    first, second = weight.shape[:2]
    channels = (second * group, first) if name == "Conv" else (first, second * group)
    if b is None:
        arguments = {**arguments, "bias": False}
    layer = getattr(nn, f"{name}{rank}d")(*channels, short(weight.shape[2:]), **arguments, **typed(e, w))
    return e.module(layer, "conv", weight=w, bias=b)(x)
