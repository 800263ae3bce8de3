"""Standard output and error where they are closed, full, or no longer read."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

from onward.errors import NothingSavedWarning, OddModelWarning

REFUSALS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO}
"""What writing to a stream may fail with."""
WIDE = 200
"""Characters of a line in a file, which nobody's window cuts."""


@contextmanager
def checked_streams() -> Iterator[None]:
    """Inside, both streams exist. Messages that nobody can read are dropped: the exit code tells what was done."""
    _fill_gaps()
    output: Any = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    messages: Any = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    with redirect_stdout(output), redirect_stderr(cast(TextIO, Messages(messages))):
        yield


@contextmanager
def unheard() -> Iterator[None]:
    """Inside, what libraries print to standard error past Python is dropped: TensorFlow has much to remark in C++."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        sys.stderr.flush()
        os.dup2(nowhere, 2)
        own = open(kept, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        with redirect_stderr(own):
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _fill_gaps() -> None:
    """What is opened next must not get the number of a stream that is closed, which libraries print to.

    The output is replaced by what refuses to be written to: what is printed is not lost without a word.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


class Messages:
    """A stream of messages that may be lost."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def until_unread() -> Iterator[None]:
    """Print all that is left; whoever reads it may leave before its end, as `head` does."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # which is how rich says it
            raise


def output() -> Console:
    """Where results are shown: as wide as a terminal is; in a file, wide enough that what belongs together stays so."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


def escape(text: str) -> str:
    """Text that a console prints as it is, whatever brackets are in it."""
    from rich.markup import escape as escaped

    return escaped(text)


def silence(stream: Any) -> None:
    """Nothing more reaches it, not even what Python still holds for it when it ends."""
    with suppress(OSError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


FOR_USERS = (OddModelWarning, NothingSavedWarning)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings of Onward itself are lines for the user, who did not write the code that they come from."""
    show = warnings.showwarning

    def printed(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if issubclass(category, FOR_USERS):
            print(f"onward: {message}", file=sys.stderr)
        else:
            show(message, category, *place, **options)

    with warnings.catch_warnings():
        for category in FOR_USERS:
            warnings.simplefilter("default", category)
        warnings.showwarning = printed
        yield
