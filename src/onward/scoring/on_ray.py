"""Scoring on a Ray cluster: Ray Data reads parts of the data and hands them to processes that hold a session each.

A process of the cluster steers that, so that it is the same through a client's connection. Each row carries its number:
what comes back is checked to be every row, once, in order.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from onward.cluster import connected
from onward.errors import InvalidDataError, OnwardError, RunFailure
from onward.model import Model, load
from onward.scoring.scorer import Plan, Scorer
from onward.scoring.sources import Part, Source, batches

BLOCK_BATCHES, BLOCK_BYTES = 16, 32 << 20
"""What a process is handed at once: about so many batches, but no more bytes."""
NUMBER = 8
"""Bytes of the number of a row."""
START = "onward.start"
"""The column of blocks that holds the numbers of their rows."""
FAILURE = "onward.failure"
"""The column of a block that says what is wrong with its rows, instead of results."""
LARGEST = 2**31 - 1
"""Bytes of a model that can be sent."""
RESTARTS = 3
"""How often a process that was lost is started anew, and does again what it was doing."""
READERS = 2
"""Parts that are read at the same time."""


def on_ray(
    model: Model, plan: Plan, data: Source, scorer: Scorer, first: Any, place: str, workers: int | None
) -> Generator[Any]:
    """The results in order, table by table; `first` is the first batch, by which the size of others is guessed."""
    proto = model.to_proto()
    if proto.ByteSize() > LARGEST:
        raise OnwardError("the model is larger than the 2 GB that are sent to a cluster: score it here, without --on")
    data = replace(data, path=data.path.absolute(), parts=tuple(_absolute(part) for part in data.parts))
    with connected(place, workers or 1) as ray:
        _check_visible(ray, data.path, place)
        content = ray.put(proto.SerializeToString())
        block = min(BLOCK_BYTES, BLOCK_BATCHES * (first.nbytes + NUMBER * first.num_rows))
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        steering = ray.remote(num_cpus=0)(Steering).remote()
        try:
            ray.get(steering.start.remote(content, plan, data, scorer.columns, scorer.batch, count, block))
            yield from _collected(ray, steering)
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise RunFailure(_told(error)) from error
        finally:
            with suppress(Exception):  # the cluster may be gone
                ray.kill(steering)


def _absolute(part: Part) -> Part:
    return replace(part, path=part.path.absolute())


def _check_visible(ray: Any, path: Path, place: str) -> None:
    def there(name: str) -> bool:
        from pathlib import Path

        return Path(name).exists()

    if not ray.get(ray.remote(num_cpus=0)(there).remote(str(path))):
        raise InvalidDataError(
            f"{path}: the machines of {place} do not see it: put it where all of them have it under the same path"
        )


def _collected(ray: Any, steering: Any) -> Iterator[Any]:
    """Every block, while the next one is asked for already."""
    due = 0
    asked = steering.following.remote()
    while True:
        block = ray.get(asked)
        if block is None:
            return
        asked = steering.following.remote()
        _check_order(block, due)
        due += block.num_rows
        yield block.drop_columns([START])


def _told(error: Exception) -> str:
    said = " ".join(str(getattr(error, "cause", None) or error).split())
    return f"the cluster has stopped scoring: {said[-400:]}"


def _check_order(block: Any, due: int) -> None:
    """Every row has its number: none is left out, none comes twice."""
    if FAILURE in block.schema.names:
        kind, said = block.column(FAILURE)[0].as_py().split(":", 1)
        raise {"InvalidDataError": InvalidDataError, "RunFailure": RunFailure}.get(kind, OnwardError)(said)
    if not np.array_equal(block.column(START).to_numpy(), np.arange(due, due + block.num_rows)):
        raise RunFailure(f"row {due + 1:,} was due, and another one came: a defect of Onward or of Ray")


class Steering:
    """Runs on the cluster, and holds the stream of results."""

    def start(
        self, content: bytes, plan: Plan, data: Source, columns: Sequence[str], size: int, workers: int, block: int
    ) -> None:
        import ray
        import ray.data

        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.target_max_block_size = block
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        parts = list(data.parts)

        def read(batch: dict[str, np.ndarray[Any, Any]]) -> Iterator[Any]:
            for number in batch["item"].tolist():
                yield from numbered(parts[number], columns, size)

        numbers = ray.data.from_items(list(range(len(parts))), override_num_blocks=len(parts))
        rows = numbers.map_batches(
            read,
            batch_size=1,
            batch_format="numpy",
            compute=ray.data.TaskPoolStrategy(size=READERS),
            num_cpus=0,
        )
        scored = rows.map_batches(
            Worker,
            batch_size=None,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=workers),
            fn_constructor_args=(ray.put(content), plan, data.schema.names, size),
            num_cpus=1,
            max_restarts=RESTARTS,
            max_task_retries=RESTARTS,
        )
        self._results = iter(scored.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1))

    def following(self) -> Any:
        return next(self._results, None)


def numbered(part: Part, columns: Sequence[str], size: int) -> Iterator[Any]:
    """The batches of a part, each with the numbers of its rows. Ray joins and cuts them as it likes."""
    start = part.start
    for table in batches([part], columns, size):
        yield table.append_column(START, pa.array(np.arange(start, start + table.num_rows)))
        start += table.num_rows


class Worker:
    """A process of the cluster with its session. What is wrong with the data is told as a result, not raised."""

    def __init__(self, content: Any, plan: Plan, names: Sequence[str], size: int) -> None:
        import ray

        found = ray.get(content) if isinstance(content, ray.ObjectRef) else content
        self._scorer, self._size = Scorer(load(found), plan, names, threads=1), size

    def __call__(self, block: Any) -> Any:
        start = block.column(START)[0].as_py()
        rows = block.drop_columns([START])
        try:
            tables = [
                self._scorer(rows.slice(at, self._size), start + at) for at in range(0, rows.num_rows, self._size)
            ]
        except OnwardError as error:
            return pa.table({FAILURE: [f"{type(error).__name__}:{error}"]})
        made = pa.concat_tables(tables)
        return made.append_column(START, block.column(START))
