"""Jobs on the machines of a Ray cluster, each in a process of its own beside the worker of Ray.

Ray has no limit of time, and its limit of memory only schedules: limits are kept as on one machine. Ray does a task
again where its worker or machine was lost; a job that fails, crashes or takes too long has its result.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from onward.cluster import connected
from onward.engine.jobs import Done, Job, Limits, Work
from onward.engine.process import LOOK, Worker
from onward.errors import OnwardError

LOSSES = 5
"""How often a job is begun anew because the worker or machine that it was on is lost."""


@dataclass(frozen=True)
class OnRay:
    """A cluster, as `onward.cluster.PLACES` says; so many jobs at a time, each on one processor."""

    place: str
    tasks: int

    def map(self, work: Work[Job], jobs: Iterable[Job], limits: Limits) -> Iterator[tuple[Job, Done]]:
        with connected(self.place, self.tasks) as ray:
            run = ray.remote(num_cpus=1, max_retries=LOSSES, retry_exceptions=False)(_task)
            packed = pickle.dumps((work.begin, work.do))
            waiting = iter(jobs)
            going: dict[Any, Job] = {}
            try:
                while True:
                    for job in islice(waiting, self.tasks - len(going)):
                        going[run.remote(packed, work.renewed, pickle.dumps(job), limits)] = job
                    if not going:
                        return
                    for task in _finished(ray, going):
                        done = _result(ray, task, self.place)
                        yield going.pop(task), done
            finally:
                for task in going:
                    with suppress(Exception):
                        ray.cancel(task, force=True)


def _finished(ray: Any, going: dict[Any, Any]) -> list[Any]:
    while True:
        ready, _ = ray.wait(list(going), num_returns=1, timeout=1.0, fetch_local=False)
        if ready:
            return list(ready)


def _result(ray: Any, task: Any, place: str) -> Done:
    errors = ray.exceptions
    try:
        done: Done = pickle.loads(ray.get(task))
        return done
    except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError) as error:
        return Done(failure=f"crash ({_line(error)}, {LOSSES + 1} times)", kind="crash")
    except errors.RayTaskError as error:
        return Done(failure=f"crash ({_line(error.cause or error)})", kind="crash")
    except (errors.RayError, ConnectionError) as error:
        raise OnwardError(
            f"{place}: the Ray cluster is lost ({_line(error)}); what is done is kept: start it, and run this again"
        ) from error


def _line(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return said[0][:200] if said else type(error).__name__


@cache
def _workers() -> dict[bytes, Worker]:
    """The process of this worker of Ray, which does one job after the other."""
    return {}


def _task(packed: bytes, renewed: int, payload: bytes, limits: Limits) -> bytes:
    """On a machine of the cluster: a job, in the process beside this one."""
    workers = _workers()
    if packed not in workers:
        for other in workers.values():
            other.stop()
        workers.clear()
        workers[packed] = Worker(packed, fresh=True)
    worker = workers[packed]
    worker.send(True, payload)
    done = None
    while done is None:
        done = worker.look(worker.connection.poll(LOOK), limits)
    worker.job = None
    if done.failure or worker.jobs >= renewed:
        worker.renew()
    return pickle.dumps(done)
