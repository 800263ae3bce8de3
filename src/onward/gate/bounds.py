"""How much a file may take of the machine, however small it is itself: the bounds, and what raises each."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from onward.errors import OnwardError, UnsupportedError

GROWTH = 20
"""How many times its size a file may grow by being unpacked: weights hardly shrink when they are packed."""


@dataclass(frozen=True)
class Bound:
    """A number that no model in use comes near, and the environment variable that replaces it."""

    variable: str
    default: int

    @property
    def value(self) -> int:
        given = os.environ.get(self.variable)
        if given is None:
            return self.default
        if not (given.isascii() and given.isdecimal()):
            raise OnwardError(f"{self.variable} has to be a whole number, not {given!r}")
        return int(given)

    @property
    def hint(self) -> str:
        return f"if the file is what it should be, a larger {self.variable} (now {self.value:,}) lets it in"


UNPACKED = Bound("ONWARD_MAX_UNPACKED", 2**30)
"""Bytes that a file may unpack to; a large one may unpack to `GROWTH` times its own size."""
MEMBERS = Bound("ONWARD_MAX_MEMBERS", 100_000)
"""Members of an archive."""
TEXT = Bound("ONWARD_MAX_TEXT", 2**28)
"""Bytes of a member that is read whole: a configuration, a description."""
NODES = Bound("ONWARD_MAX_NODES", 100_000)
"""Nodes that a model may have once its functions are inlined; one of many nodes may have four times its own."""
FOLDED = Bound("ONWARD_MAX_FOLDED", 2**28)
"""Bytes of a constant that is computed, or made dense, while a model is converted."""

MEMORY = Bound("ONWARD_MAX_MEMORY", 0)
"""Bytes that a command may take; 0 stands for what the machine has free when the command starts."""


def unpacked(size: int) -> int:
    """Bytes that a file of `size` bytes may unpack to."""
    return max(UNPACKED.value, GROWTH * size)


def check_room(what: str, sizes: Sequence[int], itemsize: int, held: int = 0) -> None:
    """Refuse to make an array, before any memory is taken for it, that `held` bytes of a file do not account for."""
    needed, most = math.prod(map(int, sizes)) * itemsize, max(FOLDED.value, GROWTH * held)
    if needed > most:
        raise UnsupportedError(f"{what} would take {needed:,} bytes, more than {most:,}; {FOLDED.hint}")
