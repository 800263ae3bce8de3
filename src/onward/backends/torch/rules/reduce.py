"""Reductions over axes, ArgMax and ArgMin, running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.dtypes import UNSIGNED, bits, from_bits, from_ordered, ordered
from onward.backends.torch.rules.elementwise import is_float
from onward.backends.torch.target import dtype, ops, rule, torch
from onward.errors import UnsupportedError

_D = ir.DataType


class Axes:
    """What a reduction is over, as arguments for a PyTorch function that takes `dim` and `keepdim`."""

    def __init__(self, e: Emitter, x: Expr, axes: Expr | None, keepdims: int, noop: int) -> None:
        self.keepdims = bool(keepdims)
        self.known = self._known(e, axes)
        """The axes, [] for all of them, or None where they are computed when the model runs."""
        self.none = self.known == [] and bool(noop)
        """Whether nothing at all is reduced."""
        self._open = axes.tolist() if axes is not None and self.known is None else None
        self.may_be_none = self.none or (self._open is not None and bool(noop))
        self._rank = e.rank(x)
        self._shape = e.shape(x)

    @staticmethod
    def _known(e: Emitter, axes: Expr | None) -> list[int] | None:
        if axes is None or e.shape(axes) == (0,):
            return []
        return e.static_ints(axes)

    @property
    def may_be_empty(self) -> bool:
        """Whether it is not sure that there is something to reduce."""
        if self.known is None or self._shape is None:
            return True
        over = range(len(self._shape)) if not self.known else self.known
        return any(not self._shape[i] for i in over)

    @property
    def certain(self) -> bool:
        """Whether the axes can be listed."""
        return self.known is not None and (bool(self.known) or bool(self._rank))

    @property
    def single(self) -> bool:
        """Whether `dim` is one number, or nothing."""
        return self.known is not None and (len(self.known) == 1 or (not self.known and not self.keepdims))

    def apply(self, function: Expr, x: Expr, needs_dim: bool = False, **extra: Any) -> Expr:
        """`function(x, dim=…, keepdim=…)`, or `x` where nothing is reduced."""
        keep = {"keepdim": True} if self.keepdims else {}
        if self.none:
            return x
        if self.may_be_none:
            return ops.over_axes(function, x, self._open, keepdim=self.keepdims, **extra)
        if self._open is not None:
            return function(x, dim=self._open, **keep, **extra)
        wanted = self.known or []
        if not wanted and not self.keepdims and not needs_dim:
            return function(x, **extra)
        if not wanted and self._rank is not None:
            wanted = list(range(self._rank))
        return function(x, dim=wanted[0] if len(wanted) == 1 else tuple(wanted), **keep, **extra)


def _reduction(op: str) -> Callable[[Callable[[Emitter, Expr, Axes], Expr]], Any]:
    """Registers `reduce(e, x, axes)` as the rule of a Reduce… op."""

    def register(reduce: Callable[[Emitter, Expr, Axes], Expr]) -> Any:
        @rule(op)
        def apply(
            e: Emitter,
            x: Expr,
            axes: Expr | None = None,
            *,
            keepdims: int = 1,
            noop_with_empty_axes: int = 0,
        ) -> Expr:
            return reduce(e, x, Axes(e, x, axes, keepdims, noop_with_empty_axes))

        return reduce

    return register


def _width(e: Emitter, x: Expr) -> dict[str, Any]:
    """Keeps sums and products of 32-bit integers, which PyTorch would widen, in the dtype that `bits` has."""
    return {"dtype": torch.int32} if e.dtype(x) in (_D.INT32, _D.UINT32) else {}


def _sum(e: Emitter, x: Expr, over: Axes, term: Callable[[Expr], Expr] = lambda x: x) -> Expr:
    return from_bits(e, x, over.apply(torch.sum, term(bits(e, x)), **_width(e, x)))


def _in_float(e: Emitter, x: Expr, compute: Callable[[Expr], Expr]) -> Expr:
    """A float function; of integers it is computed in double precision and cut off."""
    return compute(x) if is_float(e, x) else compute(x.to(torch.float64)).to(dtype(e.dtype(x) or _D.INT64))


@_reduction("ReduceSum")
def reduce_sum(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _sum(e, x, over)


@_reduction("ReduceL1")
def reduce_l1(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _sum(e, x, over, (lambda x: x) if e.dtype(x) in UNSIGNED else torch.abs)


@_reduction("ReduceSumSquare")
def reduce_sum_square(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _sum(e, x, over, torch.square)


@_reduction("ReduceL2")
def reduce_l2(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _in_float(e, x, lambda x: over.apply(torch.linalg.vector_norm, torch.abs(x) if over.may_be_none else x))


@_reduction("ReduceLogSum")
def reduce_log_sum(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _in_float(e, x, lambda x: torch.log(over.apply(torch.sum, x)))


@_reduction("ReduceLogSumExp")
def reduce_log_sum_exp(e: Emitter, x: Expr, over: Axes) -> Expr:
    function = torch.logsumexp if over.certain else ops.log_sum_exp
    return _in_float(e, x, lambda x: over.apply(function, x, needs_dim=True))


@_reduction("ReduceMean")
def reduce_mean(e: Emitter, x: Expr, over: Axes) -> Expr:
    if is_float(e, x):
        return over.apply(torch.mean, x)
    if e.dtype(x) == _D.UINT64:
        raise UnsupportedError("PyTorch has no mean of uint64 numbers; cast them to int64 first")
    return from_ordered(e, x, over.apply(ops.integer_mean, ordered(e, x)))


@_reduction("ReduceProd")
def reduce_product(e: Emitter, x: Expr, over: Axes) -> Expr:
    function = torch.prod if over.single else ops.reduce_prod
    return from_bits(e, x, over.apply(function, bits(e, x), **_width(e, x)))


@_reduction("ReduceMax")
def reduce_max(e: Emitter, x: Expr, over: Axes) -> Expr:
    function = ops.reduce_max if over.may_be_empty else torch.amax
    return from_ordered(e, x, over.apply(function, ordered(e, x)))


@_reduction("ReduceMin")
def reduce_min(e: Emitter, x: Expr, over: Axes) -> Expr:
    function = ops.reduce_min if over.may_be_empty else torch.amin
    return from_ordered(e, x, over.apply(function, ordered(e, x)))


def _index_of(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Expr:
        keep = {"keepdim": True} if keepdims else {}
        if select_last_index:
            return ops.last_index(function, ordered(e, x), dim=axis, **keep)
        return function(ordered(e, x), dim=axis, **keep)


_index_of("ArgMax", torch.argmax)
_index_of("ArgMin", torch.argmin)


def _running(op: str, function: Expr, start: int) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, axis: Expr, *, exclusive: int = 0, reverse: int = 0) -> Expr:
        along = e.scalar(axis, 1)
        along = axis.item() if along is None else along
        values = bits(e, x)
        if reverse:
            values = torch.flip(values, (along,))
        if exclusive:
            values = ops.shifted(values, along, start)
        total = function(values, dim=along, **_width(e, x))
        return from_bits(e, x, torch.flip(total, (along,)) if reverse else total)


_running("CumSum", torch.cumsum, 0)
_running("CumProd", torch.cumprod, 1)
