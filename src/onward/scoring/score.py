"""`onward.score`: every row of a file through a model, to another file."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from onward.advice.extras import require
from onward.advice.nearest import meant
from onward.advice.options import option
from onward.errors import InvalidDataError, OnwardError
from onward.gate import trusting

if TYPE_CHECKING:
    from onward.model import Model
    from onward.scoring.scorer import Plan, Scorer
    from onward.scoring.sources import Source

T = TypeVar("T")
Told = Callable[[int, int | None], None]
"""Called with the rows that are done and, where that is known, with how many there are."""
AHEAD = 2
"""Batches that are read while another one is scored."""


def score(
    model: Model | str | os.PathLike[str],
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    batch: int = 4096,
    column: Mapping[str, str | Sequence[str]] | None = None,
    keep: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (),
    mixed: bool = False,
    on: str | None = None,
    workers: int | None = None,
    threads: int = 0,
    force: bool = False,
    trust: bool = False,
    told: Told | None = None,
) -> int:
    """Run a model on every row of a file, and write the results to another; returns the number of rows.

    `data` is a .parquet, .csv, .feather, .npz or .npy file, or a folder of .parquet files; `out` is a .parquet, .csv,
    .feather or .npz file. No more than a few batches of `batch` rows are in memory, and of fewer rows where these are
    large, such as pictures: 128 MB make a batch, unless `mixed` says that its rows belong together. The results have
    as many rows as the data, in its order, and are written as a whole or not at all; a file that is there is replaced
    with `force`.

    The columns of a model with data processing are those of the function that it was made from. An input of another
    model is fed by the column, or array, of its name, or by several columns side by side:
    `column={"features": "a,b"}` or a list. `keep` are columns of the data that are copied to the results, `outputs`
    those of the model that are wanted. A model whose result for a row depends on the other rows of its batch is
    refused, unless `mixed` allows it.

    `on` is a Ray cluster: 'ray', 'ray://local' or 'ray://HOST:PORT', which sees the data under the same path;
    `workers` are its processes, each with a session of its own. `told` is called with the rows done so far and, where
    that is known, all.

    >>> import numpy, onward, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> numpy.savez(f"{folder}/rows.npz", image=numpy.zeros((100, 1, 8, 8), numpy.float32))
    >>> onward.score("examples/digits/digits.onnx", f"{folder}/rows.npz", f"{folder}/scored.npz", batch=32)
    100
    """
    require("pyarrow", what="scoring")
    from onward.scoring.scorer import Plan
    from onward.scoring.sources import most_rows, source
    from onward.scoring.targets import check_target

    path = Path(out)
    if batch < 1:
        raise OnwardError(f"{option('batch', batch)}: a batch has at least one row")
    if workers is not None and (on is None or workers < 1):
        raise OnwardError(f"{option('workers')}: at least one, on a cluster that {option('on')} names")
    check_target(path)
    if path.exists() and not force:
        advice = f"{option('force', True)} writes over it, another {option('out')} keeps it"
        raise OnwardError(f"{path} exists already: {advice}")
    found = source(Path(data))
    kept = listed(keep)
    for name in kept:
        if name not in found.schema.names:
            raise InvalidDataError(f"{data}: it has no column {name!r} to keep{meant(name, found.schema.names)}")
    plan = Plan(
        batch if mixed else min(batch, most_rows(found.schema)),
        {name: listed(names) for name, names in (column or {}).items()},
        kept,
        listed(outputs),
        found.is_text,
        path.suffix.lower() == ".npz",
        mixed,
        path.suffix.lower() == ".feather",
    )
    with trusting(True) if trust else nullcontext():
        return _scored(_model(model), found, path, plan, on, workers, threads, told or (lambda done, total: None))


def listed(names: str | Sequence[str]) -> tuple[str, ...]:
    """`a,b` as two names."""
    return tuple(name.strip() for name in names.split(",") if name.strip()) if isinstance(names, str) else tuple(names)


def _model(given: Model | str | os.PathLike[str]) -> Model:
    """ONNX as it is, and what is not ONNX as what it becomes."""
    from onward.conversion.request import Request
    from onward.conversion.sources import read
    from onward.formats import kind_of
    from onward.model import Model

    if isinstance(given, Model):
        return given
    path = Path(given)
    try:
        return read(Request(source=str(given), to="", out=Path(), verify=False)).model
    except OnwardError as error:
        if not path.exists() or kind_of(path) is None:
            raise
        advice = f"convert it first, `onward convert {path} --to onnx`, and score what that gives"
        raise type(error)(f"{error}; or {advice}") from error


def _scored(
    model: Model,
    data: Source,
    out: Path,
    plan: Plan,
    on: str | None,
    workers: int | None,
    threads: int,
    told: Told,
) -> int:
    from onward.scoring.scorer import Scorer
    from onward.scoring.sources import batches
    from onward.scoring.targets import target

    scorer = Scorer(model, plan, data.schema.names, threads)
    first = next(batches(data.parts, scorer.columns, scorer.batch), None)
    if first is not None:
        scorer.check(first)
    done = 0
    with target(out) as file:
        if first is None:
            file.write(_of_nothing(scorer, data))
        else:
            if on is None:
                made = _here(scorer, data)
            else:
                from onward.scoring.on_ray import on_ray

                made = on_ray(model, plan, data, scorer, first, on, workers)
            with closing(made) as tables:
                for table in tables:
                    file.write(table)
                    done += table.num_rows
                    told(done, data.rows)
        if data.rows is not None and done != data.rows:
            raise InvalidDataError(f"{data.path}: it says that it has {data.rows:,} rows, and has {done:,}")
    return done


def _of_nothing(scorer: Scorer, data: Source) -> Any:
    """The columns of the results, without a row."""
    try:
        return scorer(data.schema.empty_table().select(scorer.columns), 0)
    except OnwardError as error:
        raise InvalidDataError(f"{data.path}: it has no rows, and the model does not run without any") from error


def _here(scorer: Scorer, data: Source) -> Generator[Any]:
    from onward.scoring.sources import batches

    start = 0
    with closing(ahead(batches(data.parts, scorer.columns, scorer.batch))) as tables:
        for table in tables:
            yield scorer(table, start)
            start += table.num_rows


def ahead(items: Iterator[T]) -> Generator[T]:
    """The same items, of which the next ones are made on another thread meanwhile."""
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(AHEAD)
    stop = threading.Event()

    def offer(kind: str, item: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put((kind, item), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for item in items:
                if not offer("item", item):
                    return
            offer("end", None)
        except BaseException as error:
            offer("error", error)

    worker = threading.Thread(target=make, daemon=True)
    worker.start()
    try:
        while True:
            kind, item = ready.get()
            if kind == "error":
                raise item
            if kind == "end":
                return
            yield item
    finally:
        stop.set()
        worker.join()
