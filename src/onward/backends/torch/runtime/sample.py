"""Reading an image between its elements."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor


def sample_linear(x: Tensor, coordinates: Sequence[Tensor]) -> Tensor:
    """The values of `x` (batch, channels, axes …) at fractional places, by linear interpolation; zero outside.

    `coordinates` has a tensor (batch, places) for each axis; the result is (batch, channels, places).
    """
    lows = [torch.floor(c) for c in coordinates]
    total: Tensor | None = None
    for corner in itertools.product((0, 1), repeat=len(lows)):
        places = [low.long() + up for low, up in zip(lows, corner, strict=True)]
        weight = torch.ones_like(coordinates[0])
        for c, low, up in zip(coordinates, lows, corner, strict=True):
            weight = weight * (c - low if up else 1 - (c - low))
        part = gather_or_zero(x, places) * weight.to(x.dtype)[:, None]
        total = part if total is None else total + part
    assert total is not None
    return total


def gather_or_zero(x: Tensor, places: Sequence[Tensor]) -> Tensor:
    """The elements of `x` (batch, channels, axes …) at whole places, zero outside; see `sample_linear`."""
    inside = torch.ones_like(places[0], dtype=torch.bool)
    index = torch.zeros_like(places[0])
    for place, size in zip(places, x.shape[2:], strict=True):
        inside = inside & (place >= 0) & (place < size)
        index = index * size + place.clamp(0, size - 1)
    values = x.flatten(2).gather(2, index[:, None].expand(-1, x.shape[1], -1))
    return torch.where(inside[:, None], values, torch.zeros((), dtype=x.dtype, device=x.device))
