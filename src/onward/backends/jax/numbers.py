"""What rules ask of inputs whose numbers Python has to know when the function runs."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.target import ops
from onward.graph.origin import origin


def is_string(e: Emitter, x: Expr) -> bool:
    """Whether a value is a numpy array of strings (or a list of those)."""
    return e.dtype(x) == ir.DataType.STRING


def scalar(e: Emitter, x: Expr, hint: str = "n") -> Any:
    """An input that holds one number which decides a size, as that number or as an expression for it."""
    found = e.scalar(x, 1)
    if found is not None:
        return found
    constant = e.const(x)
    if constant is not None and constant.size == 1:
        return constant.reshape(-1)[0].item()
    return e.let_host(ops.number(x, str(origin(e.node))), hint)


def in_numpy(e: Emitter, x: Expr) -> Expr:
    """A tensor as an array of numpy, for what numpy or Python does with it."""
    return x if is_string(e, x) else ops.known(x, str(origin(e.node)))


def integers(e: Emitter, x: Expr, hint: str = "n") -> Any:
    """The numbers of a one-dimensional input: a list where their count is known, else an expression for a list."""
    numbers, shape = e.numbers(x), e.shape(x)
    if not isinstance(numbers, Expr) or shape is None or len(shape) > 1:
        return numbers
    count = math.prod(d for d in shape if d is not None) if None not in shape else None
    if count == 1:
        return [scalar(e, x, hint)]
    return numbers if count is None or not 0 < count <= 8 else e.unpack(numbers, count, hint, "host")
