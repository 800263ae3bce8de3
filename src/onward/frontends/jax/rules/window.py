"""Windows that move along axes, padding, and reductions by functions of two numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.jax.bodies import mapped
from onward.frontends.jax.dimensions import Dim, is_known
from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer
from onward.frontends.lax import window
from onward.frontends.lax.pad import pad as padded
from onward.frontends.lax.reduce import Pair, reduced_by
from onward.frontends.lax.sizes import Size
from onward.frontends.lax.window import Moves
from onward.graph.build import Tensor


def _moves(
    op: Writer,
    window_dimensions: Sequence[Dim],
    window_strides: Sequence[Dim],
    padding: Sequence[tuple[Dim, Dim]],
    base_dilation: Sequence[Dim] | None = None,
    window_dilation: Sequence[Dim] | None = None,
) -> Moves:
    ones = [1] * len(window_dimensions)
    parts = (
        window_dimensions,
        window_strides,
        [low for low, _ in padding],
        [high for _, high in padding],
        base_dilation or ones,
        window_dilation or ones,
    )
    return Moves(*(op.numbers_of(part, "a size of a window") for part in parts))


def _reduces(kind: str) -> Callable[..., Tensor]:
    def function(
        op: Writer,
        x: Tensor,
        *,
        window_dimensions: Sequence[Dim],
        window_strides: Sequence[Dim],
        padding: Sequence[tuple[Dim, Dim]],
        base_dilation: Sequence[Dim],
        window_dilation: Sequence[Dim],
    ) -> Tensor:
        moves = _moves(op, window_dimensions, window_strides, padding, base_dilation, window_dilation)
        return window.reduce_window(op, x, moves, kind)

    return function


for _name, _kind in (("sum", "add"), ("max", "max"), ("min", "min"), ("prod", "mul")):
    rule(f"reduce_window_{_name}")(_reduces(_kind))


def _pair(op: Writer, jaxpr: Any, consts: Sequence[Any]) -> Pair:
    function = mapped(op, jaxpr, consts)

    def pair(first: Sequence[Tensor], second: Sequence[Tensor]) -> Sequence[Tensor]:
        results = function(*first, *second)
        tensors = [result for result in results if isinstance(result, Tensor)]
        if len(tensors) != len(results):
            raise UnsupportedError("a reduction of other than real numbers by a function is not supported")
        return tensors

    return pair


@rule("reduce_window")
def reduce_window(
    op: Writer,
    *inputs: Tensor,
    jaxpr: Any,
    consts: Sequence[Any],
    window_dimensions: Sequence[Dim],
    window_strides: Sequence[Dim],
    padding: Sequence[tuple[Dim, Dim]],
    base_dilation: Sequence[Dim],
    window_dilation: Sequence[Dim],
) -> Sequence[Tensor]:
    half = len(inputs) // 2
    moves = _moves(op, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return window.reduce_windows(op, inputs[:half], inputs[half:], moves, _pair(op, jaxpr, consts))


@rule("reduce")
def reduce(
    op: Writer, *inputs: Tensor, jaxpr: Any, dimensions: Sequence[int], consts: Sequence[Any] = ()
) -> Sequence[Tensor]:
    half = len(inputs) // 2
    return reduced_by(op, inputs[:half], inputs[half:], list(dimensions), _pair(op, jaxpr, consts))


def _chosen(select: Any) -> str:
    name = str(getattr(select, "name", select))
    if name not in ("ge", "le"):
        raise UnsupportedError(f"what {name} chooses in a window is not supported")
    return "max" if name == "ge" else "min"


@rule("select_and_scatter_add")
def select_and_scatter_add(
    op: Writer,
    source: Tensor,
    x: Tensor,
    *,
    select_prim: Any,
    window_dimensions: Sequence[Dim],
    window_strides: Sequence[Dim],
    padding: Sequence[tuple[Dim, Dim]],
) -> Tensor:
    moves = _moves(op, window_dimensions, window_strides, padding)
    return window.select_and_scatter(op, x, source, moves, _chosen(select_prim))


@rule("select_and_gather_add")
def select_and_gather_add(
    op: Writer,
    tangents: Tensor,
    x: Tensor,
    *,
    select_prim: Any,
    window_dimensions: Sequence[Dim],
    window_strides: Sequence[Dim],
    padding: Sequence[tuple[Dim, Dim]],
    base_dilation: Sequence[Dim],
    window_dilation: Sequence[Dim],
) -> Tensor:
    moves = _moves(op, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return window.select_and_gather(op, x, tangents, moves, _chosen(select_prim))


@rule("pad")
def pad(op: Writer, x: Tensor, filler: Tensor, *, padding_config: Sequence[tuple[Dim, Dim, Dim]]) -> Tensor:
    def number(dim: Dim) -> Size:
        return int(dim) if is_known(dim) else op.size(dim)

    before, after = ([number(config[i]) for config in padding_config] for i in (0, 1))
    between = op.numbers_of([config[2] for config in padding_config], "the padding between numbers")
    return padded(op, x, filler, before, after, between)
