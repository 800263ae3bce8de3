"""Times rounded to fixed lengths, as pandas and Polars round them.

A result can be out of the range of int64 where the time is less than one length away from its end. It is wrapped there;
pandas raises an error. `fits_floor` and its fellows tell where: they compare the result with the time.
"""

from __future__ import annotations

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.integers import remainder_by
from onward.graph.build import Tensor


def _checked(length: int) -> None:
    if not 1 <= length < 2**62:
        raise UnsupportedError(f"times cannot be rounded to {length} ticks: give from 1 to {2**62 - 1}")


def floor(ticks: Tensor, length: int, start: int = 0) -> Tensor:
    """The last multiple of `length` ticks, counted from `start`, that is not after the time: 2 or 4 nodes.

    pandas' `.dt.floor` and Polars' `truncate`, where a week starts four days after 1970-01-01.
    """
    _checked(length)
    if length == 1:
        return ticks
    return ticks - _past(ticks, length, start)


def _past(ticks: Tensor, length: int, start: int) -> Tensor:
    """The ticks since the last multiple, also where `ticks - start` would overflow."""
    if start % length == 0:
        return remainder_by(ticks, length)
    return remainder_by(remainder_by(ticks, length) + (length - start % length), length)


def ceil(ticks: Tensor, length: int) -> Tensor:
    """The first multiple of `length` ticks that is not before the time: 3 nodes."""
    _checked(length)
    if length == 1:
        return ticks
    return ticks + remainder_by(ticks.op.Neg(ticks), length)


def round_half_even(ticks: Tensor, length: int) -> Tensor:
    """The nearest multiple of `length` ticks; of two the one that is an even multiple, as pandas: 5 or 7 nodes."""
    _checked(length)
    op = ticks.op
    if length == 1:
        return ticks
    if length % 2:
        past = remainder_by(ticks, length)
        return ticks + (op.where(past > length // 2, op.like(length, ticks), 0) - past)
    # Two lengths around an odd multiple: exactly half a length away or more goes to the even one beside it.
    # Clip is safe here: its numbers are from -2 to 1.
    past = remainder_by(ticks, 2 * length) - length
    steps = op.Clip(past / (length // 2), op.index(-1), op.index(1))
    return ticks + (steps * length - past)


def round_half_up(ticks: Tensor, length: int, start: int = 0) -> Tensor:
    """The nearest multiple of `length` ticks from `start`; of two the later one, as Polars' `round`: 5 to 7 nodes."""
    _checked(length)
    op = ticks.op
    if length == 1:
        return ticks
    past = _past(ticks, length, start)
    return ticks + (op.where(past >= (length + 1) // 2, op.like(length, ticks), 0) - past)


def fits_floor(ticks: Tensor, floored: Tensor) -> Tensor:
    """Where a time rounded down is in the range of int64."""
    return floored <= ticks


def fits_ceil(ticks: Tensor, ceiled: Tensor) -> Tensor:
    """Where a time rounded up is in the range of int64."""
    return ceiled >= ticks


def fits_round(ticks: Tensor, rounded: Tensor) -> Tensor:
    """Where a rounded time is in the range of int64: one that was wrapped has another sign. 4 nodes."""
    op = ticks.op
    return op.Or(op.BitwiseXor(ticks, rounded) >= 0, op.Equal(rounded, 0))
