"""Where jobs are done, as a user says it."""

from __future__ import annotations

import os

from onward.cluster import PLACES, check_place
from onward.engine.jobs import Engine
from onward.errors import OnwardError

LOCAL = "local"


def engine(place: str, jobs: int | None = None) -> Engine:
    """Of `local` or a place of a Ray cluster, which does so many jobs at a time: as many as there are processors."""
    if jobs is not None and jobs < 1:
        raise OnwardError(f"{jobs} jobs at a time: give at least 1")
    if place == LOCAL:
        from onward.engine.local import Local

        return Local(jobs or os.cpu_count() or 1)
    if not place.startswith("ray"):
        raise OnwardError(f"{place!r} says no place: give 'local', {PLACES}")
    check_place(place)
    from onward.engine.on_ray import OnRay

    return OnRay(place, jobs or os.cpu_count() or 1)
