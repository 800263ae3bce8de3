"""Embeddings."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.keras.target import LAYERS, applied, made, owning, owns
from onward.spec.index import Along


@LAYERS.register("Gather")
def gather(e: Emitter, x: Expr, indices: Expr, p: Along) -> Expr | None:
    """Rows of a table of weights, by indices that are given to the model or computed."""
    shape = e.shape(x)
    if p.axis != 0 or shape is None or len(shape) != 2 or not owns(e, x) or not e.is_weight(x):
        return None
    if e.rank(indices) is None or e.const(indices) is not None or e.host(indices) is not None:
        return None
    if e.dtype(indices) not in (ir.DataType.INT32, ir.DataType.INT64):
        return None
    return applied(e, owning(e, made(e, x, "Embedding", *shape), "embedding", weight=x), indices)
