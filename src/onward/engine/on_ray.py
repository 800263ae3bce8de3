"""Jobs on the machines of a Ray cluster, each in a process of its own beside the worker of Ray.

Ray has no limit of time, and its limit of memory only schedules: limits are kept as on one machine. A job is begun
again where its worker or machine was lost; one that fails, crashes or takes too long has its result.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

from onward.cluster import connected, is_remote
from onward.engine.jobs import Done, Job, Limits, Work
from onward.engine.process import LOOK, Worker, unpacked
from onward.errors import OnwardError

Answer = TypeVar("Answer")

PATIENCE = 15.0
"""Seconds that a cluster has to answer, beside those in which its client tries to reach it again."""
GRACE = 30
"""Seconds in which a client of Ray tries so, unless its environment says otherwise."""
LOSSES = 5
"""How often a job is begun anew because the worker or machine that it was on is lost."""
LOOKS = 1.0
"""Seconds between two looks at the cluster."""


@dataclass(frozen=True)
class OnRay:
    """A cluster, as `onward.cluster.PLACES` says; so many jobs at a time, each on one processor."""

    place: str
    tasks: int

    def map(self, work: Work[Job], jobs: Iterable[Job], limits: Limits) -> Iterator[tuple[Job, Done]]:
        with connected(self.place, self.tasks) as ray:
            lost = (ray.exceptions.RayError, ConnectionError)
            packed = pickle.dumps((work.begin, work.do))
            tasks = _Tasks(ray, packed, work.renewed, limits, is_remote(self.place))
            waiting = iter(jobs)
            try:
                while True:
                    while len(tasks.going) < self.tasks and (following := next(waiting, tasks)) is not tasks:
                        tasks.begin(following)
                    if not tasks.going:
                        return
                    yield from tasks.done()
            except lost as error:
                tasks.going.clear()
                raise OnwardError(
                    f"{self.place}: the Ray cluster is lost ({_line(error)}); what is done is kept: start it, and run"
                    " this again"
                ) from error
            finally:
                tasks.end()


class _Tasks:
    """The tasks that are going on, with their jobs. Ray itself begins none again: where the machine runs out of memory,
    it would do so without end."""

    def __init__(self, ray: Any, packed: bytes, renewed: int, limits: Limits, remote: bool) -> None:
        self._asked = _in_time if remote else _at_once
        self._ray, self._packed, self._renewed, self._limits = ray, packed, renewed, limits
        self._run = ray.remote(num_cpus=1, max_retries=0)(_task)
        self.going: dict[Any, tuple[Any, int]] = {}
        """With the number of times that the job was lost."""

    def begin(self, job: Any, losses: int = 0) -> None:
        task = self._run.remote(self._packed, self._renewed, pickle.dumps(job), self._limits)
        self.going[task] = job, losses

    def done(self) -> Iterator[tuple[Any, Done]]:
        """The next one that is done, after a while none; what is lost is begun again."""
        wait = partial(self._ray.wait, list(self.going), num_returns=1, timeout=LOOKS, fetch_local=False)
        for task in self._asked(wait)[0]:
            job, losses = self.going[task]
            done = self._asked(partial(self._result, task, losses))
            del self.going[task]
            if done is None:
                self.begin(job, losses + 1)
            else:
                yield job, done

    def _result(self, task: Any, losses: int) -> Done | None:
        errors = self._ray.exceptions
        lost = (errors.WorkerCrashedError, errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError)
        try:
            return unpacked(self._ray.get(task))
        except (*lost, errors.OutOfMemoryError) as error:
            if losses < LOSSES:
                return None
            failure = f"crash ({_line(error)}, {LOSSES + 1} times)"
            return Done(failure=failure, kind="memory" if isinstance(error, errors.OutOfMemoryError) else "crash")
        except errors.RayTaskError as error:
            return Done(failure=f"crash ({_line(error.cause or error)})", kind="crash")

    def end(self) -> None:
        for task in self.going:
            with suppress(Exception):
                self._ray.cancel(task, force=True)


def _at_once(ask: Callable[[], Answer]) -> Answer:
    return ask()


def _in_time(ask: Callable[[], Answer]) -> Answer:
    """What a cluster answers. A client whose cluster is gone for good asks for ever, so somebody else has to look."""
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


def _line(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return said[0][:200] if said else type(error).__name__


@cache
def _workers() -> dict[tuple[bytes, Limits], Worker]:
    """The process of this worker of Ray, which does one job after the other."""
    return {}


def _task(packed: bytes, renewed: int, payload: bytes, limits: Limits) -> bytes:
    """On a machine of the cluster: a job, in the process beside this one."""
    workers = _workers()
    if (packed, limits) not in workers:
        _end(workers)
        workers[packed, limits] = Worker(packed, limits, fresh=True)
    worker = workers[packed, limits]
    try:
        worker.send(True, payload)
        done = None
        while done is None:
            worker.connection.poll(LOOK)
            done = worker.look()
        if done.failure or worker.jobs >= renewed:
            worker.renew()
    except BaseException:
        _end(workers)  # it may be at a job whose answer is not that of the next one
        raise
    return pickle.dumps(done)


def _end(workers: dict[tuple[bytes, Limits], Worker]) -> None:
    for worker in workers.values():
        worker.stop()
    workers.clear()
