"""Sums over processes of one machine, in memory that they share; they wait for each other on pipes."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from onward.training.parallel.workers import LostWorkerError

Array = np.ndarray[Any, np.dtype[Any]]
SLOT = 1 << 22
"""Bytes of an array that are added up at a time."""
TURNS = 2
"""Areas that are used in turn: one is written while others still read the one before."""


def bytes_shared(size: int) -> int:
    """How much memory so many workers share."""
    return TURNS * size * SLOT


class SameMachine:
    """Every worker writes its piece, adds up its share of all pieces, and reads the whole: all have the same bits."""

    def __init__(self, rank: int, size: int, memory: Any, peers: Sequence[Connection], timeout: float) -> None:
        """`memory` is a buffer of `bytes_shared`. `peers` of worker 0 are all others, those of others worker 0 only."""
        self.rank, self.size = rank, size
        self._memory, self._peers, self._timeout = memory, peers, timeout
        self._turn = 0

    def __call__(self, flat: Array) -> None:
        slots = np.frombuffer(self._memory, flat.dtype).reshape(TURNS, self.size, -1)
        for start in range(0, len(flat), slots.shape[2]):
            piece = flat[start:][: slots.shape[2]]
            area = slots[self._turn, :, : len(piece)]
            self._turn = (self._turn + 1) % TURNS
            area[self.rank] = piece
            self._wait()
            own = slice(len(piece) * self.rank // self.size, len(piece) * (self.rank + 1) // self.size)
            for other in area[1:, own]:
                area[0, own] += other
            self._wait()
            piece[...] = area[0]

    def _wait(self) -> None:
        """Until all have come here."""
        if self.rank:
            self._send(self._peers[0], 0)
            self._receive(self._peers[0], 0)
            return
        for number, peer in enumerate(self._peers, 1):
            self._receive(peer, number)
        for number, peer in enumerate(self._peers, 1):
            self._send(peer, number)

    def _send(self, peer: Connection, number: int) -> None:
        try:
            peer.send_bytes(b"x")
        except OSError as error:
            raise LostWorkerError(f"worker {number} has ended") from error

    def _receive(self, peer: Connection, number: int) -> None:
        try:
            if not peer.poll(self._timeout):
                raise LostWorkerError(f"worker {number} did not answer for {self._timeout:g} s")
            peer.recv_bytes()
        except (EOFError, OSError) as error:
            raise LostWorkerError(f"worker {number} has ended") from error
