"""Reductions over axes, ArgMax and ArgMin, running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.elementwise import in_float, is_float
from onward.backends.shared.reduce import known_axes, reductions
from onward.backends.torch.dtypes import UNSIGNED, bits, from_bits, from_ordered, ordered
from onward.backends.torch.target import TARGET, ops, rule, torch
from onward.errors import UnsupportedError
from onward.spec.reduce import IndexOf, Reduce, Running

_D = ir.DataType


class Axes:
    """What a reduction is over, as arguments for a PyTorch function that takes `dim` and `keepdim`."""

    def __init__(self, e: Emitter, x: Expr, axes: Expr | None, p: Reduce) -> None:
        self.keepdims, noop = bool(p.keepdims), bool(p.noop_with_empty_axes)
        self.known = known_axes(e, axes)
        self.none = self.known == [] and noop
        """Whether nothing at all is reduced."""
        self._open = axes.tolist() if axes is not None and self.known is None else None
        self.may_be_none = self.none or (self._open is not None and noop)
        self._rank = e.rank(x)
        self._shape = e.shape(x)

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


def _width(e: Emitter, x: Expr) -> dict[str, Any]:
    """Keeps sums and products of 32-bit integers, which PyTorch would widen, in the dtype that `bits` has."""
    return {"dtype": torch.int32} if e.dtype(x) in (_D.INT32, _D.UINT32) else {}


def _sum(e: Emitter, x: Expr, over: Axes, term: Callable[[Expr], Expr] = lambda x: x) -> Expr:
    return from_bits(e, x, over.apply(torch.sum, term(bits(e, x)), **_width(e, x)))


def _l1(e: Emitter, x: Expr, over: Axes) -> Expr:
    return _sum(e, x, over, (lambda x: x) if e.dtype(x) in UNSIGNED else torch.abs)


def _l2(e: Emitter, x: Expr, over: Axes) -> Expr:
    return in_float(e, x, lambda x: over.apply(torch.linalg.vector_norm, torch.abs(x) if over.may_be_none else x))


def _log_sum_exp(e: Emitter, x: Expr, over: Axes) -> Expr:
    function = torch.logsumexp if over.certain else ops.log_sum_exp
    return in_float(e, x, lambda x: over.apply(function, x, needs_dim=True))


def _mean(e: Emitter, x: Expr, over: Axes) -> Expr:
    if is_float(e, x):
        return over.apply(torch.mean, x)
    if e.dtype(x) == _D.UINT64:
        raise UnsupportedError("PyTorch has no mean of uint64 numbers; cast them to int64 first")
    return from_ordered(e, x, over.apply(ops.integer_mean, ordered(e, x)))


def _product(e: Emitter, x: Expr, over: Axes) -> Expr:
    function = torch.prod if over.single else ops.reduce_prod
    return from_bits(e, x, over.apply(function, bits(e, x), **_width(e, x)))


def _extreme(e: Emitter, x: Expr, over: Axes, own: Expr, helper: Expr) -> Expr:
    return from_ordered(e, x, over.apply(helper if over.may_be_empty else own, ordered(e, x)))


TARGET.rules.take(
    reductions(
        Axes,
        {
            "ReduceSum": _sum,
            "ReduceL1": _l1,
            "ReduceL2": _l2,
            "ReduceSumSquare": lambda e, x, over: _sum(e, x, over, torch.square),
            "ReduceLogSum": lambda e, x, over: in_float(e, x, lambda x: torch.log(over.apply(torch.sum, x))),
            "ReduceLogSumExp": _log_sum_exp,
            "ReduceMean": _mean,
            "ReduceProd": _product,
            "ReduceMax": lambda e, x, over: _extreme(e, x, over, torch.amax, ops.reduce_max),
            "ReduceMin": lambda e, x, over: _extreme(e, x, over, torch.amin, ops.reduce_min),
        },
    )
)


def _index_of(op: str, function: Expr) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, p: IndexOf) -> Expr:
        keep = {"keepdim": True} if p.keepdims else {}
        if p.select_last_index:
            return ops.last_index(function, ordered(e, x), dim=p.axis, **keep)
        return function(ordered(e, x), dim=p.axis, **keep)


_index_of("ArgMax", torch.argmax)
_index_of("ArgMin", torch.argmin)


def _running(op: str, function: Expr, start: int) -> None:
    @rule(op)
    def apply(e: Emitter, x: Expr, axis: Expr, p: Running) -> Expr:
        along = e.scalar(axis, 1)
        along = axis.item() if along is None else along
        values = bits(e, x)
        if p.reverse:
            values = torch.flip(values, (along,))
        if p.exclusive:
            values = ops.shifted(values, along, start)
        total = function(values, dim=along, **_width(e, x))
        return from_bits(e, x, torch.flip(total, (along,)) if p.reverse else total)


_running("CumSum", torch.cumsum, 0)
_running("CumProd", torch.cumprod, 1)
