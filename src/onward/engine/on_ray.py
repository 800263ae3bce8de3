"""Jobs on the machines of a Ray cluster, each in a process of its own beside the worker of Ray.

Ray has no limit of time, and its limit of memory only schedules: limits are kept as on one machine. Ray does a task
again where its worker or machine was lost; a job that fails, crashes or takes too long has its result.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

from onward.cluster import connected, is_remote
from onward.engine.jobs import Done, Job, Limits, Work
from onward.engine.process import LOOK, Worker
from onward.errors import OnwardError

Answer = TypeVar("Answer")

PATIENCE = 15.0
"""Seconds that a cluster has to answer, beside those that its client tries to reach it again."""
GRACE = 30
"""Seconds that a client of Ray tries so, unless its environment says otherwise."""
LOSSES = 5
"""How often a job is begun anew because the worker or machine that it was on is lost."""


@dataclass(frozen=True)
class OnRay:
    """A cluster, as `onward.cluster.PLACES` says; so many jobs at a time, each on one processor."""

    place: str
    tasks: int

    def map(self, work: Work[Job], jobs: Iterable[Job], limits: Limits) -> Iterator[tuple[Job, Done]]:
        with connected(self.place, self.tasks) as ray, _told_if_lost(ray, self.place):
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
                    for task in _in_time(self.place, partial(_finished, ray, list(going))):
                        done = _in_time(self.place, partial(_result, ray, task))
                        yield going.pop(task), done
            except GeneratorExit:
                for task in going:
                    with suppress(Exception):
                        ray.cancel(task, force=True)
                raise


def _finished(ray: Any, going: list[Any]) -> list[Any]:
    ready, _ = ray.wait(going, num_returns=1, timeout=1.0, fetch_local=False)
    return list(ready)


def _in_time(place: str, ask: Callable[[], Answer]) -> Answer:
    """What a cluster answers. A client whose cluster is gone for good asks for ever, so somebody else has to look."""
    if not is_remote(place):
        return ask()
    answers: list[Answer] = []
    problems: list[BaseException] = []

    def asking() -> None:
        try:
            answers.append(ask())
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=asking, daemon=True)
    thread.start()
    thread.join(PATIENCE + int(os.environ.get("RAY_CLIENT_RECONNECT_GRACE_PERIOD", GRACE)))
    if problems:
        raise problems[0]
    if not answers:
        raise ConnectionError("it does not answer any more")
    return answers[0]


@contextmanager
def _told_if_lost(ray: Any, place: str) -> Iterator[None]:
    """Whatever Ray raises when its head is gone."""
    try:
        yield
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise OnwardError(
            f"{place}: the Ray cluster is lost ({_line(error)}); what is done is kept: start it, and run this again"
        ) from error


def _result(ray: Any, task: Any) -> Done:
    errors = ray.exceptions
    try:
        done: Done = pickle.loads(ray.get(task))
        return done
    except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError) as error:
        return Done(failure=f"crash ({_line(error)}, {LOSSES + 1} times)", kind="crash")
    except errors.RayTaskError as error:
        return Done(failure=f"crash ({_line(error.cause or error)})", kind="crash")


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
