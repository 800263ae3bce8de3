"""Feasible sizes for the dynamic dimensions of a model's inputs.

What the graph says about them (see `linked_sizes`) comes first: sizes that a weight dictates, dimensions that must be
equal. The others get candidates from the kind of input they belong to; which of them fit is for a runtime to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from onward.graph.slots import Slot
from onward.verification.data import language
from onward.verification.data.linked_rules import RULES
from onward.verification.data.linked_sizes import Fit, walk

SUM = re.compile(r"\s*(\w+)\s*\+\s*(\w+)\s*")
"""How exporters write a dimension that is the sum of two: 'past_length + 1'."""


def fit(graph: ir.Graph, inputs: Sequence[Slot], *, loose: bool = False) -> Fit:
    """What the nodes of a graph say about the sizes of its inputs; `loose`: only numbers, not what is equal."""
    found = Fit(loose=loose)
    for slot in inputs:
        if not slot.containers:
            found.dims[id(slot.value)] = slot.dims
        for name in slot.dims:
            if isinstance(name, str) and (parts := SUM.fullmatch(name)):
                found.made[name] = 1, tuple(int(part) if part.isdigit() else part for part in parts.groups())
    walk(found, graph, RULES)
    for value in graph.outputs:
        for declared, dim in zip(value.shape or (), found.dims.get(id(value), ()), strict=False):
            if isinstance(dim, str) and len(found.made.get(dim, (1, ()))[1]) > 1 and not isinstance(declared, int):
                found.equal(declared.value, dim)  # a cache is as long as the earlier and the new words together
    return found


BATCH = (2, 1)
HEIGHT = (64, 224, 32, 96, 48, 320, 640, 112, 128, 8)
WIDTH = (96, 224, 64, 96, 320, 320, 640, 112, 128, 8)
AUDIO = (512, 16000, 576, 256, 1536, 4000, 32000, 80)
TOKENS = (12, 16, 32, 8, 7, 64, 128, 512, 1)
FEATURES = (16, 32, 64, 100, 128, 8, 4, 1, 512, 4000, 16000)
VOLUME = (8, 16, 12, 32, 64, 112, 4, 2)
NEW = (1, 12, 7, 16, 2)
EARLIER = (12, 0, 5, 16, 1)
"""Of the words that a decoder is given, and of those in its cache: a step of it, a prompt, a part of one."""
PARTS = (8, 4, 16, 32, 2, 64, 1)
"""Of something that is a multiple: the size of a head."""
EQUAL = (4, 6, 2, 8, 3, 1, 5, 16)
"""Sizes for all free dimensions at once, where none of the plausible ones fit."""
BATCH_NAME = re.compile(r"batch|^(n|b|bs|none)$|^unk__\d+$|dynamicdimension", re.IGNORECASE)
AUDIO_NAME = re.compile(r"audio|wave|samples|signal|speech|input|sequence|^t$|time", re.IGNORECASE)
BATCH_OF_STATE = re.compile(r"batch|state|hidden|cell|(^|[ _])[hc](_?(0|n|in|x|prev))?$", re.IGNORECASE)
"""Of the second dimension of three, where the first is fixed: recurrent layers keep states as (layers, batch, size)."""
MOST_ELEMENTS = 1 << 22
"""Of the inputs together; larger candidates take too long to try."""


def candidates(
    inputs: Sequence[Slot], known: Mapping[str, int] | None = None, fitted: Fit | None = None
) -> Iterator[dict[str, int]]:
    """Sizes for every dynamic dimension, the most plausible first; those `known` are not varied.

    The second differs from the first in every dimension that is free.
    """
    fitted = (fitted or Fit()).given(known or {})
    free: dict[str, tuple[int, ...]] = {}
    spans = _spans(inputs, fitted)
    axes = [(slot, axis, name) for slot in inputs for axis, name in enumerate(slot.dims) if isinstance(name, str)]
    for slot, axis, name in axes:
        if fitted.variables(name) == [first := fitted.first(name)]:
            likely = spans.get(first) or _at_least(fitted.least.get(name, 1), choices(slot, axis))
            free.setdefault(first, likely)
    for _, _, name in axes:
        for variable in fitted.variables(name):
            free.setdefault(variable, spans.get(variable, PARTS))
    names = [dim for slot in inputs for dim in slot.dims if isinstance(dim, str)]
    tried: list[dict[str, int]] = []
    smallest = dict.fromkeys(free, 1)
    for chosen in [*_plausible(free), *(dict.fromkeys(free, size) for size in EQUAL), smallest, *_single(free)]:
        sizes = chosen | {name: fitted.length(name, chosen) or 0 for name in names} | dict(known or {})
        small = not free or elements(inputs, sizes) <= MOST_ELEMENTS or (not tried and chosen is smallest)
        if small and sizes not in tried:
            tried.append(sizes)
            yield sizes


def _spans(inputs: Sequence[Slot], fitted: Fit) -> dict[str, tuple[int, ...]]:
    """Sizes of what sums of earlier and new places are made of: caches are (batch, heads, places, size)."""
    caches = {fitted.first(str(slot.dims[-2])) for slot in inputs if len(slot.dims) >= 4} | {language.EARLIER}
    found: dict[str, tuple[int, ...]] = {}
    for number, parts in fitted.made.values():
        names = [fitted.first(part) for part in parts if isinstance(part, str)]
        if number == 1 and len(parts) > 1 and not caches.isdisjoint(names):
            found |= {name: EARLIER if name in caches else NEW for name in names}
    return found


def _at_least(least: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size if size >= least else size + least for size in sizes)


def _plausible(free: Mapping[str, tuple[int, ...]]) -> Iterable[dict[str, int]]:
    """The batch alternates while the others go through their sizes; then the same with the other batch."""
    for shift in (0, 1):
        for step in range(max(map(len, free.values()), default=1)):
            yield {
                name: sizes[(step + shift) % 2] if sizes == BATCH else sizes[min(step, len(sizes) - 1)]
                for name, sizes in free.items()
            }


def _single(free: Mapping[str, tuple[int, ...]]) -> Iterable[dict[str, int]]:
    """One dimension goes through its sizes while the others are 1: a batch that could be told from no name is."""
    for name, sizes in free.items():
        for size in sizes:
            yield dict.fromkeys(free, 1) | {name: size}


def elements(inputs: Sequence[Slot], sizes: Mapping[str, int]) -> int:
    return sum(math.prod(sizes[dim] if isinstance(dim, str) else dim for dim in slot.dims) for slot in inputs)


def choices(slot: Slot, axis: int) -> tuple[int, ...]:
    """Plausible sizes of a dynamic dimension."""
    rank, name = len(slot.dims), str(slot.dims[axis])
    if axis == 0 and (rank > 1 or BATCH_NAME.search(name)):
        return BATCH
    if axis == 1 and rank == 3 and isinstance(slot.dims[0], int) and BATCH_OF_STATE.search(f"{name} {slot.name}"):
        return BATCH
    if rank == 4 and (slot.dtype.is_floating_point() or slot.dtype == ir.DataType.UINT8):
        first_spatial = 1 if slot.dims[3] in (1, 3, 4) else 2
        if axis >= first_spatial:
            return HEIGHT if axis == first_spatial else WIDTH
    if rank > 4:
        return VOLUME
    is_signal = AUDIO_NAME.search(name) or AUDIO_NAME.search(slot.name)
    if slot.dtype.is_floating_point() and axis == rank - 1 and rank <= 3 and is_signal:
        return AUDIO
    if slot.dtype.is_integer() or slot.dtype in (ir.DataType.BOOL, ir.DataType.STRING):
        return TOKENS
    return FEATURES
