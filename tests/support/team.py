"""Workers as threads of one process: they meet as processes do, and cost no start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any

from onward.training.parallel.same_machine import SameMachine, bytes_shared


def together(count: int, work: Callable[[SameMachine], Any], timeout: float = 30.0) -> list[Any]:
    """What each worker returned, or the error that it raised."""
    memory = bytearray(bytes_shared(count))
    pairs = [Pipe() for _ in range(count - 1)]
    found: list[Any] = [None] * count

    def run(rank: int) -> None:
        peers = [pairs[rank - 1][1]] if rank else [ours for ours, _ in pairs]
        try:
            found[rank] = work(SameMachine(rank, count, memory, peers, timeout))
        except Exception as error:
            found[rank] = error
        for peer in peers:
            peer.close()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def done(found: list[Any]) -> list[Any]:
    """What each returned; the first error is raised."""
    for each in found:
        if isinstance(each, Exception):
            raise each
    return found
