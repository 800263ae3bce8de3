"""What the workers of one training say to each other. All of it is sums: of gradients, of losses, of numbers.

A worker that fails tells the others when they meet next, so that all stop, each with a message of its own.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np

from onward.errors import InvalidDataError, OnwardError, RunFailure
from onward.training.runtime.divergence import DivergedError

Array = np.ndarray[Any, np.dtype[Any]]
FINE, FAILED, DIVERGED = range(3)


class Reduce(Protocol):
    """Adds arrays up over workers. Each calls it as often as the others, with arrays of the same size and dtype."""

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""

    @property
    def size(self) -> int:
        """How many workers there are."""

    def __call__(self, flat: Array) -> None:
        """Put the sum over all workers in the place of an array of one dimension, of float32 or float64."""


class WorkerError(RunFailure):
    """Another worker has failed; its own message says why."""


class WorkerDivergedError(DivergedError):
    """Another worker's loss is no longer a number; its own message says more."""


class LostWorkerError(OnwardError):
    """Another worker has ended without a word, or does not answer any more."""


OF_OTHERS = (WorkerError, WorkerDivergedError, LostWorkerError)
"""Errors whose cause another worker knows better."""


class Workers:
    """The workers of a training as one of them sees them; it may be the only one."""

    def __init__(self, reduce: Reduce | None = None) -> None:
        self.rank, self.size = (0, 1) if reduce is None else (reduce.rank, reduce.size)
        self._reduce = reduce
        self._wish: Callable[[], bool] = bool
        self._stopping = False
        if self.size > 1:
            ones = np.ones(1)
            self.add(ones)
            if ones[0] != self.size:
                raise OnwardError(
                    f"reduce made {ones[0]:g} of a 1 from each of {self.size} workers: it has to put the sum over "
                    "the workers in the place of an array"
                )

    @property
    def lead(self) -> bool:
        """Whether this is worker 0, which writes files and decides."""
        return self.rank == 0

    def add(self, flat: Array) -> None:
        """Put the sum over workers in the place of an array of one dimension."""
        if self._reduce is not None and self.size > 1:
            self._reduce(flat)

    def stopping(self, wish: Callable[[], bool]) -> Callable[[], bool]:
        """Whether to stop: what one worker wishes, all do, after the same step."""
        if self.size == 1:
            return wish
        self._wish, self._stopping = wish, False
        return lambda: self._stopping

    @contextmanager
    def meeting(self, count: int, doing: str) -> Iterator[Array]:
        """Numbers, zeros at first, that are sums over all workers behind the block. If one fails in it, all do."""
        numbers = np.zeros(count)
        if self.size == 1:
            yield numbers
            return
        try:
            yield numbers
        except Exception as error:
            numbers[...] = 0
            with suppress(OnwardError):
                self._meet(numbers, DIVERGED if isinstance(error, DivergedError) else FAILED, doing)
            raise
        self._meet(numbers, FINE, doing)

    def _meet(self, numbers: Array, state: int, doing: str) -> None:
        said = np.zeros(1 + self.size + len(numbers))
        said[0] = self._wish()
        said[1 + self.rank] = state
        said[1 + self.size :] = numbers
        self.add(said)
        self._stopping = self._stopping or bool(said[0])
        numbers[...] = said[1 + self.size :]
        states = said[1:][: self.size]
        if state == FINE and states.any():
            number = int(np.flatnonzero(states)[0])
            if states[number] == DIVERGED:
                raise WorkerDivergedError(f"{doing}: worker {number} has no finite loss; its own message says more")
            raise WorkerError(f"{doing}: worker {number} failed; its own message says why")

    def take(self, arrays: Mapping[str, Array]) -> None:
        """Bring arrays to what they are at worker 0, bit for bit."""
        for array in arrays.values() if self.size > 1 else ():
            flat = np.ascontiguousarray(array).reshape(-1)
            exact = flat.dtype in (np.float32, np.float64)
            sent = flat.copy() if exact else flat.view(np.uint8).astype(np.float32)
            if not self.lead:
                sent[...] = 0
            self.add(sent)
            array[...] = (sent if exact else sent.astype(np.uint8).view(flat.dtype)).reshape(array.shape)

    def told(self, said: Any) -> Any:
        """What worker 0 says: numbers, texts, lists and dicts."""
        if self.size == 1:
            return said
        text = np.frombuffer(json.dumps(said).encode() if self.lead else b"", np.uint8)
        with self.meeting(1, "worker 0 tells the others where it is") as length:
            length[0] = len(text)
        heard = {"text": text.copy() if self.lead else np.zeros(int(length[0]), np.uint8)}
        self.take(heard)
        return json.loads(heard["text"].tobytes())

    def agree(self, fingerprint: int, doing: str) -> bool:
        """Whether all have the same number, up to 2**53."""
        with self.meeting(self.size, doing) as numbers:
            numbers[self.rank] = fingerprint
        return self.size == 1 or bool((numbers == numbers[0]).all())

    def share(self, batch: Mapping[str, Any], doing: str) -> dict[str, Any]:
        """This worker's rows of a batch that is the same for all of them."""
        sizes = {name: len(array) for name, array in batch.items()}
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{name} has {size}" for name, size in sizes.items())
            raise InvalidDataError(f"{doing}: a batch is divided by its rows, but {shown}")
        own = self.rows(next(iter(sizes.values()), 0))
        return {name: array[own] for name, array in batch.items()}

    def rows(self, count: int) -> slice:
        """This worker's of so many rows; where they cannot be equal, the first workers have one more."""
        start, stop = (-(-count * number // self.size) for number in (self.rank, self.rank + 1))
        return slice(start, stop)


def fingerprint(*parts: Any) -> int:
    """A number that tells arrays and words from others."""
    found = 0
    for part in parts:
        is_array = isinstance(part, np.ndarray) and part.dtype.hasobject is False
        found = zlib.crc32(np.ascontiguousarray(part).data if is_array else repr(part).encode(), found)
    return found
