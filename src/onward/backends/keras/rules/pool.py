"""Pools over images that are channels last, and means over them."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.keras.target import applied, made, rule
from onward.backends.keras.window import zero_padded
from onward.backends.tensorflow.rules.pool import pool_padding
from onward.backends.tensorflow.window import short
from onward.spec.pool import AveragePool, MaxPool
from onward.spec.reduce import Reduce
from onward.spec.window import Window

NEVER_NEGATIVE = frozenset({"Relu", "Sigmoid", "Softmax", "Softplus", "HardSigmoid", "Exp", "Abs"})
"""Ops whose results are not below the zeros that a layer pads with."""


@rule("onward.nhwc::MaxPool")
def max_pool(e: Emitter, x: Expr, p: MaxPool) -> Expr | None:
    win = p.window
    padding = pool_padding(p)
    if e.used(1) or not _has_layer(e, x, win, padding):
        return None
    if isinstance(padding, str):
        return applied(e, _layer(e, x, "Max", win, padding), x)
    assert isinstance(x, Arg) and win.begin is not None and win.end is not None
    producer = x._value.producer()
    inside = all(max(b, a) < k for b, a, k in zip(win.begin, win.end, win.kernel, strict=True))
    if producer is None or producer.op_type not in NEVER_NEGATIVE or producer.domain or not inside:
        return None
    return applied(e, _layer(e, x, "Max", win, "VALID"), zero_padded(e, x, x, win.begin, win.end))


@rule("onward.nhwc::AveragePool")
def avg_pool(e: Emitter, x: Expr, p: AveragePool) -> Expr | None:
    win = p.window
    padding = pool_padding(p)
    if not _has_layer(e, x, win, padding):
        return None
    if padding == "VALID" or (padding == "SAME" and not p.count_include_pad):
        return applied(e, _layer(e, x, "Average", win, padding), x)
    if not p.count_include_pad or win.begin is None or win.end is None:
        return None
    return applied(e, _layer(e, x, "Average", win, "VALID"), zero_padded(e, x, x, win.begin, win.end))


def _has_layer(e: Emitter, x: Expr, win: Window, padding: Any) -> bool:
    """TensorFlow has no kernel over three axes in double precision; it is written around elsewhere."""
    rank = len(win.kernel)
    too_wide = rank == 3 and e.dtype(x) == ir.DataType.DOUBLE
    return padding is not None and set(win.dilations) == {1} and rank <= 3 and not too_wide


def _layer(e: Emitter, x: Expr, kind: str, win: Window, padding: str) -> Expr:
    options: dict[str, Any] = {} if win.strides == win.kernel else {"strides": short(win.strides)}
    options |= {} if padding == "VALID" else {"padding": "same"}
    return made(e, x, f"{kind}Pooling{len(win.kernel)}D", short(win.kernel), **options)


def _over_images(e: Emitter, x: Expr, kind: str, keepdims: bool) -> Expr | None:
    """Keras refuses the maximum of nothing: it is used where there is something, and for what TensorFlow wrote."""
    rank, shape = (e.rank(x) or 0) - 2, e.shape(x) or (None,)
    if not 1 <= rank <= 3 or (kind == "Max" and not all(shape) and e.producer != "onward"):
        return None
    kept = {"keepdims": True} if keepdims else {}
    return applied(e, made(e, x, f"Global{kind}Pooling{rank}D", **kept), x)


@rule("onward.nhwc::GlobalAveragePool")
def global_average_pool(e: Emitter, x: Expr) -> Expr | None:
    return _over_images(e, x, "Average", True)


@rule("onward.nhwc::GlobalMaxPool")
def global_max_pool(e: Emitter, x: Expr) -> Expr | None:
    return _over_images(e, x, "Max", True)


def _reduction(op: str, kind: str) -> None:
    @rule(op)
    def reduce(e: Emitter, x: Expr, axes: Expr | None = None, *, p: Reduce) -> Expr | None:
        """Over all axes between the first and the last."""
        rank, over = e.rank(x) or 0, e.static_ints(axes)
        if over is None or sorted(a % rank for a in over) != list(range(1, rank - 1)):
            return None
        return _over_images(e, x, kind, bool(p.keepdims))


_reduction("ReduceMean", "Average")
_reduction("ReduceMax", "Max")
