"""Quantiles: which places of sorted values they lie between, and the value between two."""

from __future__ import annotations

from typing import Literal

from onward.frontends.dataframe.tensors.rows.rows import INT64
from onward.graph.build import Tensor

Interpolation = Literal["linear", "lower", "higher", "midpoint", "nearest", "median"]
"""What lies between two values; "median" is the midpoint, or the one value where there is a middle one."""


def between(at: Tensor, how: Interpolation) -> tuple[Tensor, Tensor, Tensor]:
    """The places below and above the place `at`, a float64, as int64, and the share of the upper one."""
    op = at.op
    low, high = op.Floor(at), op.Ceil(at)
    if how == "lower":
        high = low
    elif how == "higher":
        low = high
    elif how == "nearest":
        low = high = op.Round(at)
    return low.cast(INT64), high.cast(INT64), at - low


def mixed(low: Tensor, high: Tensor, share: Tensor, how: Interpolation, as_numpy: bool = False) -> Tensor:
    """The value between two. Equal ones, infinite too, have themselves between them, but not in numpy."""
    op = low.op
    if how in ("lower", "higher", "nearest"):
        return low
    if how == "median" or (how == "midpoint" and not as_numpy):
        return op.Where(op.Equal(low, high), low, (low + high) * 0.5)
    step = high - low
    if how == "midpoint":
        share = op.where(op.Equal(share, op.like(0, share)), op.like(0, share), 0.5)
    line = op.Where(share >= 0.5, high - step * (1 - share), low + step * share)
    if as_numpy:
        return line
    exact = op.Or(op.Equal(low, high), op.Equal(share, op.like(0, share)))
    return op.Where(exact, low, line)
