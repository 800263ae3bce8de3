"""Gradients of ops that move elements without changing them."""

from __future__ import annotations

from onward.training.autodiff import Context, is_real
from onward.training.broadcast import unbroadcast
from onward.training.build import Tensor
from onward.training.vjp import Gradients, no_gradient, vjp


@vjp("Identity")
def identity(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g


@vjp("Cast")
def cast(c: Context, g: Tensor, x: Tensor, **_: object) -> Gradients:
    return g.cast(x.dtype) if is_real(x.value) and is_real(c.node.outputs[0]) else None


@vjp("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(c: Context, g: Tensor, x: Tensor, *_: object, **__: object) -> Gradients:
    return c.op.reshape_like(g, x)


@vjp("Transpose")
def transpose(c: Context, g: Tensor, x: Tensor, *, perm: list[int] | None = None) -> Gradients:
    return c.op.Transpose(g, perm=None if perm is None else [perm.index(axis) for axis in range(len(perm))])


@vjp("Expand")
def expand(c: Context, g: Tensor, x: Tensor, shape: Tensor) -> Gradients:
    return unbroadcast(g, x)


no_gradient("its output depends on the shape alone", "Shape", "Size", "ConstantOfShape")
