"""Every runner on every test, in worker processes, and what came out as a board."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from onward.engine.jobs import Done, Engine, Limits
from onward.engine.local import Local
from onward.engine.store import in_words
from onward.errors import OnwardError
from onward.runners import RUNNERS, find, load_all
from onward.scoreboard import dtypes, work
from onward.scoreboard.catalog import Test, tests
from onward.scoreboard.dtypes import Cell
from onward.scoreboard.store import Result, Status, Store, What, versions

RESULTS = "results.jsonl"
MAKING = Limits(120.0)

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Options:
    out: Path
    on: tuple[str, ...] = ()
    """Runners; all that are installed where it is empty."""
    what: tuple[What, ...] = ("suite", "unknown", "dtypes")
    only: str = ""
    """A regular expression that names of cases, or keys of cells, match somewhere."""
    jobs: int = 2
    timeout: float = 300.0
    """Seconds for each test: the largest networks take a minute or two where a machine is busy."""
    fresh: bool = False


@dataclass(frozen=True)
class Run:
    """What was asked for, and the results."""

    options: Options
    runners: dict[str, dict[str, str]]
    """By name, the versions that its results depend on."""
    tests: dict[str, Test]
    cells: list[Cell]
    opset: int
    """The newest that the cells are written in."""
    results: list[Result]
    ran: int
    """How many of them are new."""
    seconds: float


def run_all(options: Options, progress: Progress = lambda *_: None) -> Run:
    """Run what has not been run yet."""
    start = time.monotonic()
    engine = Local(options.jobs)
    names = options.on or installed()
    found = {name: versions(name) for name in names}
    matches = _matcher(options.only)
    _make_folder(options.out)
    progress("reading the suite", 0, 0)
    wanted = {name: test for name, test in tests().items() if matches(name)} if options.what != ("dtypes",) else {}
    cells, opset = _cells(engine, matches, progress) if "dtypes" in options.what else ([], 0)
    all_jobs = list(_jobs(options, names, wanted, cells))
    keys = {name: in_words(found[name]) for name in names}
    with Store(options.out / RESULTS, options.fresh) as store:

        def stored(job: work.Job) -> Result | None:
            return store.result(job.what, job.test, job.runner, keys[job.runner])

        missing = [job for job in all_jobs if _stale(stored(job), options)]
        done = len(all_jobs) - len(missing)
        for job, answer in engine.map(work.RUN, missing, Limits(options.timeout)):
            store.add_result(_result(job, answer, keys[job.runner], options.timeout))
            done += 1
            progress(f"{job.runner}: {job.what}", done, len(all_jobs))
        results = [stored(job) for job in all_jobs]
    return Run(
        replace(options, on=tuple(names)),
        found,
        wanted,
        cells,
        opset,
        [result for result in results if result is not None],
        len(missing),
        time.monotonic() - start,
    )


def installed() -> tuple[str, ...]:
    """The runners that can be used here."""
    load_all()
    return tuple(name for name in RUNNERS if (runner := RUNNERS.get(name)) and runner.installed)


def _matcher(only: str) -> Callable[[str], bool]:
    try:
        pattern = re.compile(only)
    except re.error as error:
        raise OnwardError(f"--only {only!r} is not a regular expression: {error}") from error
    return lambda name: pattern.search(name) is not None


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OnwardError(f"{out}: cannot be made: {error.strerror or error}") from error


def _cells(engine: Engine, matches: Callable[[str], bool], progress: Progress) -> tuple[list[Cell], int]:
    """What is tried of each op and dtype, with the results that are expected."""
    [(_, limit)] = engine.map(work.LIMIT, [0], MAKING)
    opset = int(limit.value or 0)
    if not opset:
        raise OnwardError(f"the newest opset that ONNX Runtime takes could not be found: {limit.failure}")
    wanted = {op: [key for key in dtypes.keys(op, opset) if matches(key)] for op in dtypes.ops(opset)}
    making = [work.Making(op, opset) for op, keys in wanted.items() if keys]
    cells = list(_made(engine, making, lambda done: progress("writing models", done, len(making))))
    cells = [cell for cell in cells if matches(cell.key)]
    asked = [work.Making(cell.op, opset, cell) for cell in cells if cell.model and not cell.truth]
    answers = {cell.key: cell for cell in _made(engine, asked, lambda _: None)}
    cells = [answers.get(cell.key, cell) for cell in cells]
    return sorted(cells, key=lambda cell: cell.key), opset


def _made(engine: Engine, making: list[work.Making], tell: Callable[[int], None]) -> Iterator[Cell]:
    """A cell for which ONNX Runtime crashed stays as it is; nothing else may fail."""
    for done, (job, answer) in enumerate(engine.map(work.MAKE, making, MAKING)):
        if answer.failure and job.cell is None:
            raise OnwardError(f"models of {job.op} could not be made: {answer.failure}")
        made: list[Cell] = answer.value or [job.cell]
        yield from made
        tell(done + 1)


def _jobs(options: Options, names: Iterable[str], wanted: dict[str, Test], cells: list[Cell]) -> Iterator[work.Job]:
    for name in names:
        for what in options.what:
            if what == "dtypes":
                yield from (work.Job(name, what, cell.key, cell) for cell in cells if cell.truth)
            else:
                yield from (work.Job(name, what, test) for test in wanted)


def _stale(result: Result | None, options: Options) -> bool:
    """Whether there is no result, or none but that a shorter time was too short."""
    return result is None or (result.status == "timeout" and result.limit < options.timeout)


def _result(job: work.Job, answer: Done, versions: str, limit: float) -> Result:
    seconds = round(answer.seconds, 4)
    if answer.failure:
        status: Status = "timeout" if answer.kind == "timeout" else "crash"
        return Result(job.what, job.test, job.runner, versions, status, answer.failure, seconds, limit)
    status, message = answer.value
    return Result(job.what, job.test, job.runner, versions, status, message, seconds, limit)


def check(options: Options) -> None:
    """Raise for a runner that there is not, or a pattern that is none, before anything is done."""
    _matcher(options.only)
    for name in options.on:
        find(name)
