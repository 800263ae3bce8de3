"""How the arguments of convolutions and pools are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit import arguments
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import F, dtype, ops
from onward.spec.conv import Conv
from onward.spec.window import Window


def short(values: Sequence[float]) -> Any:
    """One number where all axes agree, else a tuple."""
    return values[0] if values and len(set(values)) == 1 else tuple(values)


def options(**given: Any) -> dict[str, Any]:
    """Keyword arguments without those that have the framework's own default."""
    defaults = {"stride": 1, "dilation": 1, "groups": 1}
    return {k: v for k, v in arguments.options(**given).items() if v != defaults.get(k, 0)}


def typed(e: Emitter, weight: Expr) -> dict[str, Any]:
    """The dtype of a module's weights, where it is not PyTorch's default."""
    kind = e.dtype(weight)
    return {} if kind in (None, ir.DataType.FLOAT) else {"dtype": dtype(kind)}


def pad_list(begin: Sequence[int], end: Sequence[int]) -> tuple[int, ...]:
    """Padding as `F.pad` wants it: last axis first."""
    return tuple(n for pair in reversed(list(zip(begin, end, strict=True))) for n in pair)


def padding(p: Conv) -> Any:
    """A convolution's padding, as helpers take it."""
    return p.auto_pad.lower() if p.is_same else None if p.auto_pad == "VALID" else p.pads


def padded(x: Expr, window: Window, value: float = 0.0, pool: bool = False) -> Expr:
    """`x` with the padding that the framework's own call does not take."""
    fill = {} if value == 0 else {"value": value}
    if window.begin is not None and window.end is not None:
        return F.pad(x, pad_list(window.begin, window.end), **fill)
    lower = {"lower": True} if window.lower else {}
    if pool:
        return ops.pool_pad_same(x, window.kernel, window.strides, **lower, **fill)
    dilation = {} if set(window.dilations) == {1} else {"dilation": window.dilations}
    return ops.pad_same(x, window.kernel, window.strides, **dilation, **lower)
