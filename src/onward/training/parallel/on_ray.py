"""Workers on a Ray cluster. Ray Train starts them, keeps their checkpoints, and starts all anew where one was lost."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from onward.advice.extras import require
from onward.cluster import connected, is_remote, machines, shipped, unpack
from onward.errors import OnwardError
from onward.training.parallel.transports import NO_ANSWER, TIMEOUT, reduce_by_torch
from onward.training.parallel.workers import OF_OTHERS, LostWorkerError, Reduce
from onward.training.runtime.checkpoint import read

T = TypeVar("T")
START = "start"
"""What the checkpoint that a run begins with is called on the way."""


@dataclass(frozen=True)
class Desk:
    """What a worker has on its machine."""

    folder: Path
    """A folder of its own, with the files that were sent."""
    checkpoint: Path
    """If this file is there, worker 0 goes on from it."""
    saved: Callable[[Path], None]
    """Called by every worker, with that path, when worker 0 has written it anew."""
    tell: Callable[[str], None]
    """Says a line to who has started the run."""


Work = Callable[[Reduce, Desk], T]
"""What a worker does: a function of a module, or a `functools.partial` of one."""


class _Job(NamedTuple):
    """What a worker is given."""

    work: Any
    files: dict[str, Any]
    post: Any
    timeout: float


def on_ray(
    work: Work[T],
    count: int,
    place: str,
    storage: str | None,
    *,
    files: Mapping[str, Path],
    kept: Path,
    start: Path | None = None,
    resume: bool = False,
    restarts: int = 0,
    timeout: float = TIMEOUT,
    tell: Callable[[str], None] = lambda message: None,
) -> T:
    """Run `work` in so many workers of the cluster at `place` at once; gives what it returns in worker 0.

    `files`, by the names that they get, reach every worker. Ray keeps checkpoints in the folder `kept`, or in one of
    that name in `storage`, a path or a URI that every machine of the cluster reaches, and which may be None for a
    cluster of this machine alone. A run begins with the checkpoint `start`, if given; with `resume`, one that was
    broken off goes on from what is in that folder, if it is further. The folder is of this run alone: it is removed
    before one that does not go on, and once it has succeeded. `tell` is told what workers say, and of restarts.
    """
    require("ray", "torch", what=place)
    if count < 1 or restarts < 0:
        raise OnwardError(f"{count} workers, {restarts} restarts: give at least 1 worker, and no negative number")
    with connected(place, count) as ray:
        if storage is None and (is_remote(place) or machines(ray) > 1):
            raise OnwardError(
                f"{place}: say with --storage where checkpoints are kept: a folder or an address such as s3://…"
                " that every machine of the cluster reaches"
            )
        own = str(kept.absolute())
        if storage is not None:
            own = f"{(storage if '://' in storage else str(Path(storage).absolute())).rstrip('/')}/{kept.name}"
        if ray.cluster_resources().get("CPU", 0) < count:
            tell(f"{place} has fewer free processors than {count} workers need: they wait until there are more")
        forget = ray.remote(num_cpus=0)(_forget)
        if not resume:
            ray.get(forget.remote(own))
        sent = shipped(ray, files if start is None else {**files, START: start})
        found: T = _run(ray, work, count, own, sent, restarts, timeout, tell)
        ray.get(forget.remote(own))
        return found


def _run(
    ray: Any,
    work: Any,
    count: int,
    kept: str,
    files: dict[str, Any],
    restarts: int,
    timeout: float,
    tell: Callable[[str], None],
) -> Any:
    from ray import train
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.queue import Queue

    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.2")  # workers wait for it at each checkpoint
    post = Queue(actor_options={"num_cpus": 0})

    class Restarts(train.UserCallback):  # type: ignore[misc]
        """Tells of workers that were lost, from where Ray decides what to do."""

        def after_exception(self, run_context: Any, worker_exceptions: Mapping[int, BaseException]) -> None:
            post.put((None, _lost(worker_exceptions)))

    storage, _, name = kept.rpartition("/")
    trainer = TorchTrainer(
        _worker,
        train_loop_config={"job": _Job(work, files, post, timeout)},
        torch_config=TorchConfig("gloo", timeout_s=max(1, int(timeout))),
        scaling_config=train.ScalingConfig(num_workers=count),
        run_config=train.RunConfig(
            name=name,
            storage_path=storage,
            failure_config=train.FailureConfig(max_failures=restarts),
            checkpoint_config=train.CheckpointConfig(num_to_keep=2),
            callbacks=[Restarts()],
            logging_config=train.LoggingConfig("ERROR"),
        ),
    )
    with _heard(post, restarts, tell) as errors:
        try:
            done = trainer.fit().return_value
        except SystemExit:  # how Ray ends a run at Ctrl-C
            raise KeyboardInterrupt from None
        except train.TrainingFailedError as error:
            failures = getattr(error, "worker_failures", {})
            message = _lost(failures) if failures else f"Ray Train: {str(error).strip().splitlines()[-1]}"
            raise (_first(errors) or LostWorkerError(f"{message} after {restarts} restarts")) from error
    if done is None:
        raise _first(errors) or OnwardError("the workers on Ray ended without a result")
    return done[0]


def _forget(kept: str) -> None:
    """Remove what an earlier run has left."""
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(kept)
    if system.get_file_info(path).type == fs.FileType.Directory:
        system.delete_dir(path)


def _lost(failures: Mapping[int, BaseException]) -> str:
    """Which worker failed first: others only noticed that it did."""
    from ray.exceptions import RayActorError

    own = [number for number, error in failures.items() if NO_ANSWER not in str(error)]
    if not own:
        return "a worker was killed, or its machine is gone"
    number = min(own)
    error = failures[number]
    if isinstance(getattr(error, "health_check_failure", error), RayActorError):
        return f"worker {number} was killed, or its machine is gone"
    said = str(error).strip().splitlines() or [type(error).__name__]
    return f"worker {number} failed: {said[-1]}"


def _first(errors: list[tuple[int, OnwardError]]) -> OnwardError | None:
    """The error that is the cause of the others."""
    own = [error for error in errors if not isinstance(error[1], OF_OTHERS)] or errors
    if not own:
        return None
    number, error = own[0]
    return type(error)(f"worker {number}: {error}") if number else error


@contextmanager
def _heard(post: Any, restarts: int, tell: Callable[[str], None]) -> Iterator[list[tuple[int, OnwardError]]]:
    """Passes on what the cluster says while the block runs; gives the errors that workers have posted."""
    from ray.util.queue import Empty

    errors: list[tuple[int, OnwardError]] = []
    over = threading.Event()
    made = 0

    def listen() -> None:
        nonlocal made
        while True:
            last = over.is_set()
            try:
                while True:
                    number, said = post.get(timeout=0.01 if last else 0.5)
                    if isinstance(said, OnwardError):
                        errors.append((number, said))
                    elif number is None:
                        made += 1
                        again = f"; all workers start anew ({made} of at most {restarts} times)"
                        tell(f"{said}{again if made <= restarts else ''}")
                    else:
                        tell(said)
            except Empty:
                if last:
                    return
            except Exception as error:  # the cluster is gone: who waits for its workers is told
                tell(f"the cluster says no more: {error}")
                return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield errors
    finally:
        over.set()
        listener.join(timeout=10)


def _worker(config: Mapping[str, Any]) -> tuple[Any] | None:
    """What runs in each worker; None if it failed in a way that another start does not mend."""
    import ray
    from ray import train

    job: _Job = config["job"]
    rank = train.get_context().get_world_rank()

    def tell(message: str) -> None:
        job.post.put((rank, message))

    def saved(path: Path) -> None:
        at_hand = train.Checkpoint.from_directory(str(path.parent)) if rank == 0 else None
        train.report({}, checkpoint=at_hand)

    with tempfile.TemporaryDirectory(prefix="onward-ray-") as scratch:
        folder, checkpoint = Path(scratch), Path(scratch, "checkpoint", "state")
        checkpoint.parent.mkdir()
        try:
            unpack(ray, job.files, folder)
            if rank == 0:
                _begin(folder / START, train.get_checkpoint(), checkpoint)
            return (job.work(reduce_by_torch(job.timeout), Desk(folder, checkpoint, saved, tell)),)
        except LostWorkerError:
            raise
        except OnwardError as error:
            job.post.put((rank, error))
            _leave()
            return None


def _begin(start: Path, kept: Any, checkpoint: Path) -> None:
    """Put the checkpoint to go on from in its place: the one given, or the one that Ray has kept if it is further."""
    if start.exists():
        start.rename(checkpoint)
    if kept is None:
        return
    with kept.as_directory() as folder:
        found = Path(folder) / checkpoint.name
        if not checkpoint.exists() or read(found)[0].step >= read(checkpoint)[0].step:
            shutil.copyfile(found, checkpoint)


def _leave() -> None:
    """Tell those who wait for this worker that it does not come."""
    import torch.distributed as dist

    with suppress(RuntimeError, ValueError):
        dist.destroy_process_group()
