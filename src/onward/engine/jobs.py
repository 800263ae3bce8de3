"""What a job is, what may become of it, and what an engine is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

Job = TypeVar("Job")
Kind = Literal["", "crash", "timeout", "memory"]

LONGEST = 300
"""Characters of a message."""
RENEWED = 200
"""Jobs after which a worker is begun anew: JAX keeps what it compiled, and a suite of that takes gigabytes."""


@dataclass(frozen=True)
class Done:
    """What became of a job."""

    value: Any = None
    """What the work returned, where it did."""
    failure: str = ""
    """Otherwise: 'crash (SIGSEGV)', 'crash (ImportError: …)', 'timed out after 60 s' or 'took more than 8.0 GB'."""
    kind: Kind = ""
    """In what way it failed."""
    seconds: float = 0.0
    peak: int = 0
    """Bytes: the most that its process, with those that it started, was seen to take; 0 where it is not known."""


@dataclass(frozen=True)
class Limits:
    """Of each job."""

    seconds: float
    memory: int | None = None
    """Bytes, of its process and of those that it starts."""


@dataclass(frozen=True)
class Work(Generic[Job]):
    """What workers do, as functions of a module (they may have to be found again in a new process)."""

    do: Callable[[Job], Any]
    begin: Callable[[Job], None]
    """Called before, outside the time limit."""
    renewed: int = RENEWED
    """Jobs after which a process is begun anew."""


class Engine(Protocol):
    """Something that does jobs."""

    def map(self, work: Work[Job], jobs: Iterable[Job], limits: Limits) -> Iterator[tuple[Job, Done]]:
        """Do each job once, and yield it as it is done. An exception that the work does not catch is a crash."""
        ...
