"""Jobs in processes of this machine."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import wait

from onward.engine.jobs import Done, Job, Limits, Work
from onward.engine.process import LOOK, Worker


@dataclass(frozen=True)
class Local:
    """So many processes at a time."""

    processes: int

    def map(self, work: Work[Job], jobs: Iterable[Job], limits: Limits) -> Iterator[tuple[Job, Done]]:
        waiting = iter(jobs)
        packed = pickle.dumps((work.begin, work.do))
        workers: list[Worker] = []
        try:
            for job in islice(waiting, self.processes):
                workers.append(Worker(packed, limits))
                workers[-1].send((job,), pickle.dumps(job))
            while busy := [worker for worker in workers if worker.job is not None]:
                wait([worker.connection for worker in busy], timeout=LOOK)
                for worker in busy:
                    done = worker.look()
                    if done is None:
                        continue
                    (job,), worker.job = worker.job, None
                    if done.failure or worker.jobs >= work.renewed:
                        worker.renew()
                    for following in islice(waiting, 1):
                        worker.send((following,), pickle.dumps(following))
                    yield job, done
        finally:
            for worker in workers:
                worker.stop()
