"""Random numbers. With a seed in the file, every call of the model draws the same ones."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.dtypes import UNSIGNED
from onward.backends.torch.target import dtype, ops, rule, torch

_D = ir.DataType


def seeded(e: Emitter, seed: float | None) -> dict[str, Any]:
    return {} if seed is None else {"generator": ops.seeded_generator(float(seed), device=e.device)}


def _scaled(x: Expr, factor: float, offset: float) -> Expr:
    x = x if factor == 1 else x * factor
    return x if offset == 0 else x + offset


@rule("RandomNormal")
def normal(
    e: Emitter,
    *,
    shape: list[int],
    dtype: int = _D.FLOAT,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Expr:
    made = torch.randn(tuple(shape), dtype=_dtype(dtype), device=e.device, **seeded(e, seed))
    return _scaled(made, scale, mean)


@rule("RandomUniform")
def uniform(
    e: Emitter,
    *,
    shape: list[int],
    dtype: int = _D.FLOAT,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Expr:
    made = torch.rand(tuple(shape), dtype=_dtype(dtype), device=e.device, **seeded(e, seed))
    return _scaled(made, high - low, low)


@rule("RandomNormalLike")
def normal_like(
    e: Emitter,
    x: Expr,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Expr:
    made = torch.randn(x.shape, dtype=_dtype(dtype or e.dtype(x)), device=e.device, **seeded(e, seed))
    return _scaled(made, scale, mean)


@rule("RandomUniformLike")
def uniform_like(
    e: Emitter,
    x: Expr,
    *,
    dtype: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Expr:
    made = torch.rand(x.shape, dtype=_dtype(dtype or e.dtype(x)), device=e.device, **seeded(e, seed))
    return _scaled(made, high - low, low)


@rule("Bernoulli")
def bernoulli(e: Emitter, x: Expr, *, dtype: int | None = None, seed: float | None = None) -> Expr:
    drawn = torch.bernoulli(x, **seeded(e, seed))
    of = _D(dtype) if dtype else e.dtype(x)
    if of == e.dtype(x):
        return drawn
    return drawn.to(torch.int64).to(_dtype(of)) if of in UNSIGNED else drawn.to(_dtype(of))


@rule("Multinomial")
def multinomial(e: Emitter, x: Expr, *, dtype: int = _D.INT32, sample_size: int = 1, seed: float | None = None) -> Expr:
    drawn = torch.multinomial(torch.softmax(x, dim=-1), sample_size, replacement=True, **seeded(e, seed))
    return drawn if dtype == _D.INT64 else drawn.to(_dtype(dtype))


def _dtype(of: int | None) -> Expr:
    return dtype(of or _D.FLOAT)
