"""Padding around images, as Keras' layers take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.keras.target import applied, made
from onward.backends.tensorflow.window import short


def zero_padded(e: Emitter, of: Expr, x: Expr, begin: Sequence[int], end: Sequence[int]) -> Expr:
    """An image with zeros around it; `of` is the input that it was made of."""
    if not any((*begin, *end)):
        return x
    pairs = list(zip(begin, end, strict=True))
    size: Any = list(pairs[0]) if len(pairs) == 1 else [list(pair) for pair in pairs]
    if list(begin) == list(end):
        size = short(begin)
    return applied(e, made(e, of, f"ZeroPadding{len(pairs)}D", size), x)
