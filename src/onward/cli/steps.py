"""The steps of a command that may take long: a terminal shows the one that runs, and each leaves a line with its time.

Where messages go to a file, these lines are all that is written: plain text, one a step.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from onward.report.wording import duration, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text


class Steps:
    """Called with the title of a step when it begins, which ends the one before. A step that fails leaves no line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._running: tuple[_Step, Status] | None = None

    def __call__(self, title: str) -> None:
        self._end(has_failed=False)
        step = _Step(title)
        self._running = step, self._console.status(step)
        self._running[1].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(has_failed=kind is not None)

    def _end(self, has_failed: bool) -> None:
        if self._running is not None:
            step, shown = self._running
            self._running = None
            shown.stop()
            if not has_failed:
                self._console.print(step, style="dim", soft_wrap=True)


class _Step:
    """Its title and the time that it has taken so far, which is asked for whenever it is drawn."""

    def __init__(self, title: str) -> None:
        self._title, self._began = printable(title, 1000), time.perf_counter()

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(f"{self._title}: {duration(time.perf_counter() - self._began)}")
