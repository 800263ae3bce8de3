"""How much memory a process has taken."""

from __future__ import annotations

from pathlib import Path


def taken(process: int) -> int | None:
    """Bytes that a process has for itself: what it maps from files does not count, as it can be read again.

    None where the system does not say.
    """
    return _sum(process, "status", ("RssAnon:", "RssShmem:"))


def private(process: int) -> int | None:
    """Bytes that it has written to and shares with no other process; the system looks at each page for it."""
    return _sum(process, "smaps_rollup", ("Private_Dirty:",))


def _sum(process: int, file: str, kinds: tuple[str, ...]) -> int | None:
    try:
        lines = Path(f"/proc/{process}/{file}").read_text().splitlines()
    except OSError:
        return None
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith(kinds)]
    return 1024 * sum(kilobytes) if kilobytes else None
