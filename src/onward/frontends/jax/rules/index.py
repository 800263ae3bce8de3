"""Gathering, scattering and slicing at places that are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.jax.bodies import elementwise
from onward.frontends.jax.dimensions import Dim, is_known
from onward.frontends.jax.registry import complex_rule, rule
from onward.frontends.jax.rules.complex_numbers import pair
from onward.frontends.jax.values import Value
from onward.frontends.jax.writer import Writer
from onward.frontends.lax import index, scatter
from onward.frontends.lax.complex_numbers import times
from onward.frontends.lax.index import Windows
from onward.frontends.lax.sizes import Size
from onward.frontends.tensorflow.values import Complex
from onward.graph.build import Number, Tensor

MODES = {"CLIP": "clip", "FILL_OR_DROP": "fill", "PROMISE_IN_BOUNDS": "promise", "ONE_HOT": "clip"}


def mode_of(mode: Any) -> str:
    return MODES[str(getattr(mode, "name", mode)).upper()]


def windows_of(op: Writer, sizes: Sequence[Dim], shape: Sequence[Dim]) -> list[Size | None]:
    """Sizes of windows, None for all of an axis."""
    return [
        int(length) if is_known(length) else None if str(length) == str(dim) else op.size(length)
        for length, dim in zip(sizes, shape, strict=True)
    ]


def _windows(*axes: Sequence[Any]) -> Windows:
    """JAX counts axes in numbers of numpy, too."""
    return Windows(*([int(axis) for axis in some] for some in axes))


def _written(numbers: Any) -> Windows:
    """Of a scatter."""
    return _windows(
        numbers.update_window_dims,
        numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
    )


@rule("gather")
def gather(
    op: Writer,
    x: Tensor,
    indices: Tensor,
    *,
    dimension_numbers: Any,
    slice_sizes: Sequence[Dim],
    mode: Any,
    fill_value: Number | None,
) -> Tensor:
    numbers = dimension_numbers
    windows = _windows(
        numbers.offset_dims,
        numbers.collapsed_slice_dims,
        numbers.start_index_map,
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
    )
    window = windows_of(op, slice_sizes, op.ins[0].shape)
    return index.gather(op, x, indices, windows, window, mode_of(mode), fill_value)


def _scatters(kind: str) -> Callable[..., Tensor]:
    def function(
        op: Writer,
        x: Tensor,
        indices: Tensor,
        updates: Tensor,
        *,
        dimension_numbers: Any,
        mode: Any,
        unique_indices: bool,
        update_jaxpr: Any,
        update_consts: Sequence[Any],
    ) -> Tensor:
        windows = _written(dimension_numbers)
        combine: str | scatter.Body = kind
        if kind == "set" and update_jaxpr is not None and not _is_second(update_jaxpr):
            combine = elementwise(op, update_jaxpr, update_consts)
        return scatter.scatter(op, x, indices, updates, windows, combine, mode_of(mode), unique_indices)

    return function


def _is_second(jaxpr: Any) -> bool:
    """Whether a function of two values gives the second one."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return not inner.eqns and inner.outvars[0] is inner.invars[1]


for _kind, _name in (
    ("set", "scatter"),
    ("add", "scatter-add"),
    ("add", "scatter_add"),
    ("mul", "scatter-mul"),
    ("mul", "scatter_mul"),
    ("min", "scatter-min"),
    ("min", "scatter_min"),
    ("max", "scatter-max"),
    ("max", "scatter_max"),
):
    rule(_name)(_scatters(_kind))


@rule("scatter-sub", "scatter_sub")
def scatter_sub(
    op: Writer, x: Tensor, indices: Tensor, updates: Tensor, *, dimension_numbers: Any, mode: Any
) -> Tensor:
    minus = op.like(0, updates) - updates
    return _scatters("add")(
        op,
        x,
        indices,
        minus,
        dimension_numbers=dimension_numbers,
        mode=mode,
        unique_indices=False,
        update_jaxpr=None,
        update_consts=(),
    )


@complex_rule("scatter-mul", "scatter_mul")
def scatter_mul(
    op: Writer, x: Value, indices: Tensor, updates: Value, *, dimension_numbers: Any, mode: Any, unique_indices: bool
) -> Complex:
    """Of complex numbers, where no place is written twice: what is there, times what is written."""
    windows, shape = _written(dimension_numbers), op.ins[0].shape
    known, outer = op.known(indices), len(op.ins[1].shape) - 1
    rows = None if known is None else known.reshape(-1, known.shape[-1])
    if not unique_indices and outer and (rows is None or len(np.unique(rows, axis=0)) < len(rows)):
        raise UnsupportedError("products of complex numbers at places that may be equal are not supported")
    kept = [d for d in range(len(shape)) if d not in windows.gone and d not in windows.batch]
    given = dict(zip(kept, windows.inner, strict=True))
    window = windows_of(op, [op.ins[2].shape[given[d]] if d in given else 1 for d in range(len(shape))], shape)
    whole, factors = pair(op, x), pair(op, updates)
    old = Complex(*(index.gather(op, part, indices, windows, window) for part in (whole.real, whole.imaginary)))
    new = times(old, factors)
    both = ((whole.real, new.real), (whole.imaginary, new.imaginary))
    return Complex(
        *(scatter.scatter(op, part, indices, values, windows, "set", mode_of(mode), True) for part, values in both)
    )


@rule("dynamic_slice")
def dynamic_slice(op: Writer, x: Tensor, *starts: Tensor, slice_sizes: Sequence[Dim]) -> Tensor:
    window = windows_of(op, slice_sizes, op.ins[0].shape)
    return index.dynamic_slice(op, x, starts[: len(window)], window)


@rule("dynamic_update_slice")
def dynamic_update_slice(op: Writer, x: Tensor, update: Tensor, *starts: Tensor) -> Tensor:
    return index.dynamic_update_slice(op, x, update, starts)
