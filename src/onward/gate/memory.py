"""How much memory a process has taken."""

from __future__ import annotations

from pathlib import Path


def taken(process: int) -> int | None:
    """Bytes that a process has for itself: what it maps from files does not count, as it can be read again.

    None where the system does not say.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:"))]
    return 1024 * sum(kilobytes) if kilobytes else None
