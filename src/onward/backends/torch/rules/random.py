"""Random numbers. With a seed in the file, every call of the model draws the same ones."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import scaled
from onward.backends.torch.dtypes import UNSIGNED
from onward.backends.torch.target import dtype, ops, rule, torch
from onward.spec.random import Bernoulli, Draw, Multinomial

_D = ir.DataType


def seeded(e: Emitter, seed: float | None) -> dict[str, Any]:
    """The generator to draw from, as a keyword argument; PyTorch's own without a seed."""
    return {} if seed is None else {"generator": ops.seeded_generator(float(seed), device=e.device)}


@rule("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def draw(e: Emitter, x: Expr | None = None, *, p: Draw) -> Expr:
    name = "randn" if p.kind == "normal" else "rand"
    own = None if x is None else e.dtype(x)
    if x is not None and p.seed is None and own != _D.STRING:
        like: Expr = getattr(torch, f"{name}_like")
        return scaled(like(x, **({} if p.dtype == own else {"dtype": dtype(p.dtype or _D.FLOAT)})), p.factor, p.shift)
    function: Expr = getattr(torch, name)
    typed = {} if p.dtype in (None, _D.FLOAT) else {"dtype": dtype(p.dtype)}
    drawn = function(p.shape if x is None else x.shape, **typed, device=e.device, **seeded(e, p.seed))
    return scaled(drawn, p.factor, p.shift)


@rule("Bernoulli")
def bernoulli(e: Emitter, x: Expr, p: Bernoulli) -> Expr:
    drawn = torch.bernoulli(x, **seeded(e, p.seed))
    of = e.dtype(x) if p.dtype is None else _D(p.dtype)
    if of is None or of == e.dtype(x):
        return drawn
    return drawn.to(torch.int64).to(dtype(of)) if of in UNSIGNED else drawn.to(dtype(of))


@rule("Multinomial")
def multinomial(e: Emitter, x: Expr, p: Multinomial) -> Expr:
    drawn = torch.multinomial(torch.softmax(x, dim=-1), p.sample_size, replacement=True, **seeded(e, p.seed))
    return drawn if p.dtype == _D.INT64 else drawn.to(dtype(p.dtype))
