"""Random numbers. With a seed in the file, every call of the model draws the same ones."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import scaled
from onward.backends.torch.dtypes import UNSIGNED
from onward.backends.torch.target import dtype as torch_dtype
from onward.backends.torch.target import ops, rule, torch

_D = ir.DataType


def seeded(e: Emitter, seed: float | None) -> dict[str, Any]:
    """The generator to draw from, as a keyword argument; PyTorch's own without a seed."""
    return {} if seed is None else {"generator": ops.seeded_generator(float(seed), device=e.device)}


def _typed(of: ir.DataType | int | None) -> dict[str, Any]:
    return {} if of in (None, _D.FLOAT) else {"dtype": torch_dtype(of)}


def _draw(e: Emitter, function: Expr, shape: list[int], dtype: int, seed: float | None) -> Expr:
    return function(tuple(shape), **_typed(dtype), device=e.device, **seeded(e, seed))


def _draw_like(e: Emitter, name: str, x: Expr, dtype: int | None, seed: float | None) -> Expr:
    own = e.dtype(x)
    if seed is None and own != _D.STRING:
        function: Expr = getattr(torch, f"{name}_like")
        return function(x, **({} if dtype in (None, own) else {"dtype": torch_dtype(dtype or _D.FLOAT)}))
    plain: Expr = getattr(torch, name)
    return plain(x.shape, **_typed(dtype or own), device=e.device, **seeded(e, seed))


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
    return scaled(_draw(e, torch.randn, shape, dtype, seed), scale, mean)


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
    return scaled(_draw(e, torch.rand, shape, dtype, seed), high - low, low)


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
    return scaled(_draw_like(e, "randn", x, dtype, seed), scale, mean)


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
    return scaled(_draw_like(e, "rand", x, dtype, seed), high - low, low)


@rule("Bernoulli")
def bernoulli(e: Emitter, x: Expr, *, dtype: int | None = None, seed: float | None = None) -> Expr:
    drawn = torch.bernoulli(x, **seeded(e, seed))
    of = e.dtype(x) if dtype is None else _D(dtype)
    if of is None or of == e.dtype(x):
        return drawn
    return drawn.to(torch.int64).to(torch_dtype(of)) if of in UNSIGNED else drawn.to(torch_dtype(of))


@rule("Multinomial")
def multinomial(e: Emitter, x: Expr, *, dtype: int = _D.INT32, sample_size: int = 1, seed: float | None = None) -> Expr:
    drawn = torch.multinomial(torch.softmax(x, dim=-1), sample_size, replacement=True, **seeded(e, seed))
    return drawn if dtype == _D.INT64 else drawn.to(torch_dtype(dtype))
