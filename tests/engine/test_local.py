"""Jobs in worker processes: each gets its answer, whatever becomes of the others."""

import os
import signal
import time

import pytest

from onward.engine.jobs import Limits, Work
from onward.engine.local import Local


def begin(job: str) -> None:
    if job == "cannot start":
        raise ImportError("no such framework")
    if job == "dies early":
        os.kill(os.getpid(), signal.SIGKILL)


def do(job: str) -> str:
    match job:
        case "aborts":
            os.abort()
        case "hangs":
            time.sleep(3600)
        case "raises":
            raise ValueError(job)
        case "leaves":
            os._exit(7)
    print("this is not seen")
    return job.upper()


FAILURES = {
    "aborts": "crash (SIGABRT)",
    "hangs": "timed out after 0.5 s",
    "raises": "crash (ValueError: raises)",
    "leaves": "crash (exit code 7)",
    "cannot start": "crash (ImportError: no such framework)",
    "dies early": "crash (SIGKILL twice, most likely because the machine ran out of memory)",
}


@pytest.mark.parametrize("processes", [1, 3])
def test_each_job_has_its_own_end(processes: int, capfd: pytest.CaptureFixture[str]) -> None:
    jobs = ["a", *FAILURES, "b", "c"]
    done = dict(Local(processes).map(Work(do, begin), jobs, Limits(0.5)))
    assert {job: answer.failure for job, answer in done.items() if answer.failure} == FAILURES
    assert {job: answer.value for job, answer in done.items() if not answer.failure} == {"a": "A", "b": "B", "c": "C"}
    assert 0.5 <= done["hangs"].seconds < 5
    assert capfd.readouterr().out == ""


def test_workers_end_with_whoever_asked() -> None:
    answers = Local(2).map(Work(do, begin), ["a", "hangs", "hangs"], Limits(60))
    assert next(answers)[0] == "a"
    start = time.monotonic()
    answers.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 5


def test_nothing_to_do() -> None:
    assert list(Local(2).map(Work(do, begin), [], Limits(1))) == []


def process(job: object) -> int:
    return os.getpid()


def test_a_worker_is_begun_anew_after_so_many_jobs() -> None:
    """What its runtime keeps of each job would fill the memory."""
    done = Local(1).map(Work(process, begin, renewed=2), ["a", "b", "c", "d", "e"], Limits(60))
    pids = [answer.value for _, answer in done]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [2, 2, 1]


HELD: list[bytearray] = []


def hold(megabytes: int) -> int:
    """What is taken stays in the process, as runtimes keep what they have got."""
    HELD.append(bytearray(b"1") * (megabytes << 20))
    time.sleep(1.0)
    return os.getpid()


def test_memory_that_another_job_has_left_behind_is_not_counted() -> None:
    done = dict(Local(1).map(Work(hold, print), [100, 310, 101, 700], Limits(60, 400 << 20)))
    assert [job for job, answer in done.items() if answer.kind == "memory"] == [700]
    assert done[100].value != done[310].value, "it was begun anew in a process of its own"
    assert done[101].value != done[310].value
