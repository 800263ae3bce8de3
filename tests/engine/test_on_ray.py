"""Jobs on Ray: what Ray loses is begun again, so often and no more; what fails by itself is not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onward import cluster
from onward.engine import on_ray
from onward.engine.jobs import Limits, Work
from onward.engine.on_ray import OnRay
from onward.errors import OnwardError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes in /proc")


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    """Its workers find this module."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
        with cluster.connected("ray://local", 2):
            yield


@dataclass(frozen=True)
class Job:
    what: str
    begun: Path
    """A letter for each time that it was begun."""


def begin(job: Job) -> None:
    with job.begun.open("a") as file:
        file.write("x")


def do(job: Job) -> str:
    match job.what:
        case "lost once" | "always lost" if job.what == "always lost" or job.begun.read_text() == "x":
            os.kill(os.getppid(), signal.SIGKILL)  # the worker of Ray
            signal.pause()
        case "crashes":
            os.abort()
        case "hangs":
            signal.pause()
    return job.what


def test_what_ray_loses_is_begun_again(ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "LOSSES", 1)
    wanted = {"good": 1, "lost once": 2, "crashes": 1, "hangs": 1, "always lost": 2}
    jobs = [Job(what, tmp_path / what) for what in wanted]
    found = list(OnRay("ray", 2).map(Work(do, begin), jobs, Limits(3)))
    done = {job.what: answer for job, answer in found}
    assert len(found) == len(done) == len(jobs)
    assert {job.what: len(job.begun.read_text()) for job in jobs} == wanted
    assert {what: answer.value for what, answer in done.items() if not answer.failure} == {
        "good": "good",
        "lost once": "lost once",
    }
    assert (done["crashes"].failure, done["hangs"].failure) == ("crash (SIGABRT)", "timed out after 3 s")
    assert done["always lost"].failure.endswith(", 2 times)")


def test_a_cluster_that_is_lost_is_a_sentence(ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the connection breaks: here, as it is asked what is done."""

    def broken(*_: Any) -> None:
        raise ConnectionError("Client is shutting down.")

    monkeypatch.setattr(on_ray._Tasks, "done", broken)
    with pytest.raises(
        OnwardError, match=r"the Ray cluster is lost \(Client is shutting down\.\); what is done is kept"
    ):
        list(OnRay("ray", 1).map(Work(do, begin), [Job("good", tmp_path / "good")], Limits(3)))


def test_a_head_that_cannot_serve_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PAUSE", 0.0)
    early = [RuntimeError("Starting Ray client server failed."), ConnectionAbortedError("Initialization failure")]
    answers: list[Exception | None] = [*early, None, ConnectionError("nobody is there")]

    def connect() -> None:
        if answer := answers.pop(0):
            raise answer

    cluster._reach(connect)
    with pytest.raises(ConnectionError):
        cluster._reach(connect)  # where nobody answers, Ray itself has waited long enough
    answers += [RuntimeError("it fails")] * cluster.TRIES
    with pytest.raises(RuntimeError, match="it fails"):
        cluster._reach(connect)
    assert not answers
