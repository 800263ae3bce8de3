"""Running sums, products and extremes."""

from __future__ import annotations

from collections.abc import Callable

from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer
from onward.frontends.lax import running
from onward.graph.build import Tensor


def _running(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def written(op: Writer, x: Tensor, *, axis: int, reverse: bool) -> Tensor:
        return function(op, x, int(axis), reverse)

    return written


for _function in (running.cumsum, running.cumprod, running.cummax, running.cummin, running.cumlogsumexp):
    rule(_function.__name__)(_running(_function))
