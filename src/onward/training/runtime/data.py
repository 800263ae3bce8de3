"""Training data: arrays, or anything that gives batches, such as a PyTorch DataLoader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from onward.errors import InvalidDataError
from onward.training.parallel.workers import Workers, fingerprint

Array = np.ndarray[Any, np.dtype[Any]]


def epoch_of(
    data: Any,
    inputs: Sequence[str],
    size: int,
    order: Sequence[int] | None,
    drop_last: bool = False,
    workers: Workers | None = None,
) -> Iterator[dict[str, Any]]:
    """The batches of one epoch, each with its tensors by name.

    Data are arrays by name, a tuple of arrays in the order of `inputs`, or an iterable of batches: dicts or tuples.
    Arrays are cut into batches of `size`, shuffled by the seed `order`; with `drop_last` a smaller one at the end is
    left out. An iterable comes as it is. Several `workers` are given the same data, and each gets its rows of a batch.
    """
    arrays = arrays_of(data, inputs)
    if arrays is None:
        named = (_named(batch, inputs, number) for number, batch in enumerate(_iterated(data), 1))
        yield from named if workers is None or workers.size == 1 else divided(named, workers)
        return
    total = rows(arrays)
    places = np.arange(total) if order is None else np.random.default_rng(list(order)).permutation(total)
    for start in range(0, total // size * size if drop_last else total, size):
        part = places[start : start + size]
        part = part if workers is None else part[workers.rows(len(part))]
        yield {name: array[part] for name, array in arrays.items()}


def divided(batches: Iterable[Mapping[str, Any]], workers: Workers) -> Iterator[dict[str, Any]]:
    """A worker's rows of batches that have to be the same for all, as their first and last rows show."""
    end: Mapping[str, Any] = {}
    coming = iter(batches)
    for number in count(1):
        with workers.meeting(workers.size, f"batch {number}") as prints:
            batch = next(coming, end)
            ends = [_array(value)[[0, -1]] for value in batch.values() if len(value)]
            prints[workers.rank] = fingerprint(list(batch), *ends)
            own = workers.share(batch, f"batch {number}")
        if (prints != prints[0]).any():
            raise InvalidDataError(
                f"batch {number} is not the same for all workers: give each the same batches in the same order"
                " (a shuffling DataLoader needs a generator with a seed); fit divides their rows"
            )
        if batch is end:
            return
        yield own


def arrays_of(data: Any, inputs: Sequence[str]) -> dict[str, Array] | None:
    """Data as arrays by name; None if they are an iterable of batches."""
    if isinstance(data, Mapping):
        return {str(name): _array(value) for name, value in data.items()}
    if isinstance(data, tuple) and data and all(hasattr(part, "shape") for part in data):
        return {name: _array(value) for name, value in _named(data, inputs, None).items()}
    return None


def rows(arrays: Mapping[str, Array]) -> int:
    """How many samples arrays hold, all of them the same number."""
    sizes = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InvalidDataError(f"the arrays hold different numbers of samples: {shown}")
    if not any(sizes.values()):
        raise InvalidDataError("the data hold no sample")
    return next(iter(sizes.values()))


def batches_in(data: Any, inputs: Sequence[str], size: int, drop_last: bool = False) -> int | None:
    """How many batches an epoch has, if that can be known."""
    arrays = arrays_of(data, inputs)
    if arrays is not None:
        return rows(arrays) // size if drop_last else math.ceil(rows(arrays) / size)
    return len(data) if hasattr(data, "__len__") else None


def _iterated(data: Any) -> Iterable[Any]:
    if not isinstance(data, Iterable) or isinstance(data, str | bytes) or hasattr(data, "shape"):
        raise InvalidDataError(
            f"data of type {type(data).__name__} cannot be trained on: give arrays by name, or an iterable of batches"
        )
    return data


def _named(batch: Any, inputs: Sequence[str], number: int | None) -> dict[str, Any]:
    if isinstance(batch, Mapping):
        return dict(batch)
    what = "the data" if number is None else f"batch {number}"
    if not isinstance(batch, tuple | list):
        raise InvalidDataError(f"{what} is a {type(batch).__name__}: it has to be a dict or a tuple of arrays")
    if len(batch) != len(inputs):
        raise InvalidDataError(f"{what} consists of {len(batch)} arrays, but a step takes {', '.join(inputs)}")
    return dict(zip(inputs, batch, strict=True))


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
