"""The connection to a Ray cluster: where it is, what it has, and how files reach its machines."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onward.advice.extras import require
from onward.errors import OnwardError
from onward.version import __version__

PLACES = "'ray' (a cluster that runs on this machine, else a new one), 'ray://local' (a new one), 'ray://HOST:PORT'"
"""What a user can say."""
LOCAL = "ray://local"
TRIES, PAUSE = 4, 1.0
"""How often a head that answers is asked to serve, and the seconds between."""


def check_place(place: str) -> None:
    """Refuse what is no place of a cluster."""
    host, _, port = place.removeprefix("ray://").rpartition(":")
    remote = place.startswith("ray://") and host and "/" not in host and port.isascii() and port.isdigit()
    if place not in ("ray", LOCAL) and not remote:
        raise OnwardError(f"{place!r} says no place of a Ray cluster: give {PLACES}")


def is_remote(place: str) -> bool:
    """Whether the cluster may not see the files of this machine."""
    return place not in ("ray", LOCAL)


@contextmanager
def connected(place: str, processors: int = 1) -> Iterator[Any]:
    """The module `ray`, connected to a cluster; a new one has so many processors, or as many as the machine.

    A connection that the program has already is used, and stays. A new cluster ends with the block.
    """
    check_place(place)
    require("ray", what=place)
    import ray

    if ray.is_initialized():
        yield ray
        return
    try:
        _connect(ray, place, processors)
    except (ConnectionError, RuntimeError, ValueError, ImportError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise OnwardError(
            f"{place}: no Ray cluster is reached ({said[0]}); `ray start --head` starts one, which others reach by the"
            " port 10001; one that wants a token is given it by RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        ) from error
    try:
        if place != LOCAL:
            _check_versions(ray, place)
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, place: str, processors: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if is_remote(place):
        _reach(lambda: ray.init(place, **quiet))
        return
    if place == "ray":
        try:
            ray.init("auto", **quiet)
            return
        except ConnectionError:
            if os.environ.get("RAY_ADDRESS"):
                raise
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a new cluster tells nobody that it is there
    ray.init("local", num_cpus=max(processors, os.cpu_count() or 1), include_dashboard=False, **quiet)


def _reach(connect: Callable[[], object]) -> None:
    """A head that has just begun, or lost another user, answers before it can serve: a second later it does."""
    for _ in range(TRIES - 1):
        try:
            connect()
            return
        except (RuntimeError, ConnectionAbortedError):
            time.sleep(PAUSE)
    connect()


def _check_versions(ray: Any, place: str) -> None:
    """The machines of a cluster run the same Onward, which has to be there."""

    def version() -> str:  # sent as it is: there may be no Onward to import it from
        from importlib.metadata import version

        return version("onward")

    try:
        found = ray.get(ray.remote(num_cpus=0)(version).remote())
    except ray.exceptions.RayTaskError as error:
        raise OnwardError(f"{place}: the cluster has no Onward: pip install 'onward[ray]' there") from error
    if found != __version__:
        raise OnwardError(f"{place}: it has Onward {found}, this machine {__version__}: install the same on both")


def machines(ray: Any) -> int:
    return sum(bool(node["Alive"]) for node in ray.nodes())


def shipped(ray: Any, files: Mapping[str, Path]) -> dict[str, Any]:
    """Files by the names that they are to have, in the memory of the cluster: each machine fetches them once."""
    return {name: ray.put(np.fromfile(path, np.uint8)) for name, path in files.items()}


def unpack(ray: Any, files: Mapping[str, Any], folder: Path) -> None:
    """Write what was shipped to a folder of this machine."""
    for name, place in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        ray.get(place).tofile(path)
