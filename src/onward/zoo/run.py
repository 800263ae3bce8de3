"""All models on all targets, by an engine; what is done is kept, so that a run that was stopped goes on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from onward.advice.nearest import meant
from onward.engine.jobs import Done, Engine, Limits
from onward.engine.places import LOCAL, engine
from onward.engine.store import Record, Store
from onward.errors import OnwardError
from onward.writing import make_folder, refusals
from onward.zoo.listing import Entry, listed, listed_facts
from onward.zoo.peers import PREFIX, Peer
from onward.zoo.results import TARGETS, TRAIN, Cell, ModelFacts, Results, Verdict, gathered, kept_of, record
from onward.zoo.work import WORK, Answer, Job, machine, versions_of

FILE = "results.jsonl"
ALIKE = {("tflite", "tflite")}
"""Formats and targets of which one is the other: there is nothing to convert."""
FAILURES: Mapping[str, Verdict] = {"timeout": "timeout", "memory": "out of memory", "crash": "crash"}
"""By the kind of a failure."""
WRONG: frozenset[Verdict] = frozenset({"different", "failed", "crash", "timeout", "out of memory"})
"""Verdicts that a run is not content with."""
LIMITED: frozenset[Verdict] = frozenset({"timeout", "out of memory"})

Told = Callable[[int, int, Counter[Verdict]], None]
"""Told how many cells are done, how many there are, and how often which verdict was found."""


@dataclass(frozen=True)
class Options:
    sources: Sequence[str | Path]
    out: Path
    to: tuple[str, ...] = TARGETS
    also: tuple[str, ...] = ()
    on: str = LOCAL
    jobs: int | None = None
    timeout: float = 300.0
    """Seconds for each cell."""
    memory: int | None = None
    """Bytes for each cell."""
    only: str = ""
    """A regular expression that the names of models match somewhere."""
    fresh: bool = False
    keep_versions: bool = False
    """Whether a cell of other versions of Onward and its packages counts as done."""
    peers: Mapping[str, Peer] = field(default_factory=dict)
    """Other converters by name, each on the formats that it takes."""


@dataclass(frozen=True)
class Ran:
    """What a run comes to."""

    entries: list[Entry]
    cells: dict[tuple[str, str], Cell]
    """Those that were asked for, by model and target."""
    new: int

    @property
    def is_good(self) -> bool:
        return not any(cell.verdict in WRONG for cell in self.cells.values())

    def counts(self) -> dict[str, Counter[Verdict]]:
        """By target, how often which verdict."""
        found: dict[str, Counter[Verdict]] = {}
        for cell in self.cells.values():
            found.setdefault(cell.target, Counter())[cell.verdict] += 1
        return found


def run_all(options: Options, told: Told = lambda *_: None, on: Engine | None = None) -> Ran:
    """Do what has not been done yet, on an engine if one is given."""
    targets = _targets(options)
    entries = _chosen(listed(options.sources), options.only)
    chosen = on or engine(options.on, options.jobs)
    wanted = list(_jobs(options, targets, entries))
    with refusals(options.out):
        make_folder(options.out)
    with Store(options.out / FILE, key) as store:
        kept = gathered(store.all())
        cells = {_place(job): cell for job in wanted if (cell := _usable(job, kept, options)) is not None}
        _keep_facts(store, kept, entries)
        verdicts = Counter(cell.verdict for cell in cells.values())
        told(len(cells), len(wanted), verdicts)
        missing = [job for job in wanted if _place(job) not in cells]
        for job, done in chosen.map(WORK, missing, Limits(options.timeout, options.memory)):
            cell, facts = _answered(job, done, options)
            if facts is not None and _differs(facts, store):
                store.add(record(facts))
            store.add(record(cell))
            cells[_place(job)] = cell
            verdicts[cell.verdict] += 1
            told(len(cells), len(wanted), verdicts)
    return Ran(entries, cells, len(missing))


def _jobs(options: Options, targets: Iterable[str], entries: Iterable[Entry]) -> Iterator[Job]:
    """Model by model, the small ones first."""
    for entry in entries:
        for target in targets:
            if (entry.format, target) not in ALIKE:
                yield Job(entry, target, versions_of(target, entry.format), options.timeout)
        for name, peer in options.peers.items():
            if entry.format in peer.formats:
                versions = versions_of(PREFIX + name, entry.format, peer)
                yield Job(entry, PREFIX + name, versions, options.timeout, peer)


def _targets(options: Options) -> tuple[str, ...]:
    from onward.backends.backend import formats, require

    known = formats()
    for name in options.to:
        if name != "onnx" and name not in known:
            names = [*known, "onnx"]
            raise OnwardError(f"there is no target {name!r}; there are {', '.join(names)}{meant(name, names)}")
        if name != "onnx" and options.on == LOCAL:
            require(known[name][0])
    if unknown := set(options.also) - {TRAIN}:
        raise OnwardError(f"{min(unknown)!r} is nothing that can be done as well; there is {TRAIN}")
    if not options.to and not options.also and not options.peers:
        raise OnwardError("there is nothing to do: name targets")
    if options.timeout <= 0:
        raise OnwardError(f"{options.timeout:g} seconds are no time: give a number above 0")
    return tuple(dict.fromkeys((*options.to, *options.also)))


def _chosen(entries: list[Entry], only: str) -> list[Entry]:
    try:
        pattern = re.compile(only)
    except re.error as error:
        raise OnwardError(f"{only!r} is not a regular expression: {error}") from error
    found = [entry for entry in entries if pattern.search(entry.name)]
    if not found:
        raise OnwardError(f"no model of {len(entries)} has a name that matches {only!r}")
    return found


def key(stored: Record) -> tuple[str, ...] | None:
    """What a record is known by: the latest of each counts."""
    kept = kept_of(stored)
    if kept is None:
        return None
    return (kept.model,) if isinstance(kept, ModelFacts) else kept.key


def _place(job: Job) -> tuple[str, str]:
    return job.entry.name, job.target


def _usable(job: Job, kept: Results, options: Options) -> Cell | None:
    """The cell of a job that was done before, unless it has to be done again."""
    cell = kept.cells.get(_place(job))
    if cell is None or options.fresh or cell.retry or cell.sha256 != job.entry.sha256:
        return None
    if cell.versions != job.versions and not options.keep_versions:
        return None
    if cell.verdict == "timeout" and (cell.limit_seconds or 0) < options.timeout:
        return None
    least = options.memory or float("inf")
    if cell.verdict == "out of memory" and (cell.limit_mb or float("inf")) * 1e6 < least:
        return None
    return cell


def _keep_facts(store: Store, kept: Results, entries: Iterable[Entry]) -> None:
    """What the list says of each model, which may say something else than before."""
    for entry in entries:
        facts, listed = kept.models.get(entry.name), listed_facts(entry)
        if facts is not None and facts.sha256 == entry.sha256:
            listed = replace(facts, task=listed.task, licence=listed.licence, package=listed.package)
        if listed != facts:
            store.add(record(listed))


def _differs(facts: ModelFacts, store: Store) -> bool:
    stored = store.get((facts.model,))
    return stored is None or kept_of(stored) != facts


def _answered(job: Job, done: Done, options: Options) -> tuple[Cell, ModelFacts | None]:
    limit = None if options.memory is None else round(options.memory / 1e6, 1)
    measured: dict[str, Any] = {"peak_mb": round(done.peak / 1e6, 1) if done.peak else None, "limit_mb": limit}
    if isinstance(done.value, Answer):
        return replace(done.value.cell, **measured), done.value.facts
    verdict: Verdict = FAILURES.get(done.kind, "crash")
    cell = Cell(
        job.entry.name,
        job.entry.sha256,
        job.target,
        job.versions,
        verdict,
        done.failure,
        limit_seconds=job.seconds,
        when=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=machine() if options.on == LOCAL else options.on,
        **measured,
    )
    return cell, None
