"""How much memory a process has taken."""

from __future__ import annotations

from pathlib import Path


def taken(process: int) -> int | None:
    """Bytes that a process has for itself: what it maps from files does not count, as it can be read again.

    None where the system does not say.
    """
    return _sum(process, "status", ("RssAnon:", "RssShmem:"))


def shared_out(process: int) -> int | None:
    """The same, of which what several processes have counts for each in part; the system looks at each page for it."""
    found = _sum(process, "smaps_rollup", ("Pss_Anon:", "Pss_Shmem:"))
    return taken(process) if found is None else found


def _sum(process: int, file: str, kinds: tuple[str, ...]) -> int | None:
    try:
        lines = Path(f"/proc/{process}/{file}").read_text().splitlines()
    except OSError:
        return None
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith(kinds)]
    return 1024 * sum(kilobytes) if kilobytes else None
