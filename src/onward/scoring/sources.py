"""Rows in files, read a few at a time: Parquet (a file, or a folder of them), Feather, CSV, .npz and .npy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from onward.errors import InvalidDataError
from onward.gate import ordinary
from onward.gate.arrays import Rows, next_rows, opened_rows
from onward.gate.files import absent
from onward.hub.wording import quote
from onward.scoring.tensors import column_of

SUFFIXES = (".parquet", ".csv", ".feather", ".npz", ".npy")
BLOCK = 8 << 20
"""Bytes of a CSV file that are read at once; a row may not be longer."""
BUFFER = 1 << 20
"""Bytes of a column of Parquet that are read at once: a group of rows may be larger than the memory."""
BATCH = 128 << 20
"""Bytes that the rows of a batch may take, as far as the types of the columns tell."""
PART = 1 << 18
"""Rows that a part of a Parquet file has at least, in whole groups of rows."""


@dataclass(frozen=True)
class Part:
    """Rows that can be read without those before them."""

    path: Path
    start: int
    """The number of its first row among all rows of the data."""
    groups: tuple[int, ...] | None = None
    """Groups of rows of a Parquet file; None for the whole file."""


@dataclass(frozen=True)
class Source:
    """What is known of the rows before they are read."""

    path: Path
    schema: Any
    """The columns with their types; those of a CSV file are texts as they stand there."""
    rows: int | None
    """None where they have to be read to be counted."""
    parts: tuple[Part, ...]

    @property
    def is_text(self) -> bool:
        """Whether a column's type is up to whoever reads it."""
        return kind_of(self.path) == ".csv"


def kind_of(path: Path) -> str:
    """A suffix; a folder is one of Parquet files."""
    return ".parquet" if path.is_dir() else path.suffix.lower()


def source(path: Path) -> Source:
    if not path.exists():
        raise InvalidDataError(absent(path))
    kind = kind_of(path)
    if kind not in SUFFIXES:
        raise InvalidDataError(f"{path}: rows are read from {', '.join(SUFFIXES)} and folders of .parquet")
    with _readable(path):
        found = _of_parquet(path) if kind == ".parquet" else _of_file(path, kind)
    names = found.schema.names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidDataError(f"{path}: it has two columns {quote(twice)}: which is meant is open")
    return found


def most_rows(schema: Any) -> int:
    """Of a batch that is no larger than `BATCH`."""
    return max(1, BATCH // max(1, sum(map(_width, schema.types))))


def _width(kind: Any) -> int:
    """Bytes of a value; 0 where they differ from row to row."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    return (int(kind.bit_width) + 7) // 8 if pa.types.is_primitive(kind) else 0


def _of_parquet(path: Path) -> Source:
    files = [path]
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
        if not files:
            raise InvalidDataError(f"{path}: there is no .parquet file in this folder")
    parts: list[Part] = []
    rows, schema = 0, None
    for file in files:
        opened = _parquet(file)
        if schema is not None and not opened.schema_arrow.equals(schema):
            raise InvalidDataError(f"{file}: its columns are not those of {files[0].name}: give files that are alike")
        schema = opened.schema_arrow
        groups: list[int] = []
        start = rows
        for number in range(opened.num_row_groups):
            groups.append(number)
            rows += opened.metadata.row_group(number).num_rows
            if rows - start >= PART or number == opened.num_row_groups - 1:
                parts.append(Part(file, start, tuple(groups)))
                groups, start = [], rows
    return Source(path, schema.remove_metadata() if schema else pa.schema([]), rows, tuple(parts))


def _parquet(path: Path) -> Any:
    return pa.parquet.ParquetFile(ordinary(path, InvalidDataError), buffer_size=BUFFER, pre_buffer=False)


def _of_file(path: Path, kind: str) -> Source:
    whole = (Part(path, 0),)
    ordinary(path, InvalidDataError)
    if kind == ".csv":
        with _csv(path) as reader:
            schema = pa.schema([(name, pa.string()) for name in reader.schema.names])
        return Source(path, schema, None, whole)
    if kind == ".feather":
        with _feather(path) as batches:
            rows = sum(batches.get_batch(i).num_rows for i in range(batches.num_record_batches))
            return Source(path, batches.schema.remove_metadata(), rows, whole)
    with opened_rows(path) as arrays:
        counts = {rows.shape[0] for rows in arrays.values() if not rows.problem}
        schema = pa.schema([(name, _type_of(path, name, rows)) for name, rows in arrays.items()])
    return Source(path, schema, counts.pop() if len(counts) == 1 else None, whole)


def _type_of(path: Path, name: str, rows: Rows) -> Any:
    """Of an array's column; null for one that cannot be a column, which is told when it is read."""
    try:
        return column_of(next_rows(path, {name: rows}, 0)[name]).type
    except (InvalidDataError, pa.ArrowException):
        return pa.null()


def _csv(path: Path, columns: Sequence[str] | None = None) -> Any:
    reading = pa.csv.ReadOptions(block_size=BLOCK)
    parsing = pa.csv.ParseOptions(newlines_in_values=True)
    if columns is None:
        return pa.csv.open_csv(path, read_options=reading, parse_options=parsing)
    wanted = pa.csv.ConvertOptions(
        include_columns=list(columns),
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=False,
    )
    return pa.csv.open_csv(path, read_options=reading, parse_options=parsing, convert_options=wanted)


def _feather(path: Path) -> Any:
    return pa.ipc.open_file(pa.memory_map(str(path)))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise InvalidDataError(f"{path}: its rows cannot be read: {said}") from error


def batches(parts: Iterable[Part], columns: Sequence[str], size: int) -> Iterator[Any]:
    """Tables of these columns, each of `size` rows but for the last."""
    waiting: list[Any] = []
    count = 0
    for part in parts:
        for batch in _pieces(part, columns, size):
            waiting.append(batch)
            count += batch.num_rows
            while count >= size:
                table = pa.concat_tables(waiting)
                yield table.slice(0, size)
                waiting, count = ([table.slice(size)], count - size) if count > size else ([], 0)
    if count:
        yield pa.concat_tables(waiting)


def _pieces(part: Part, columns: Sequence[str], size: int) -> Iterator[Any]:
    """Tables as the file has them; what cannot be read is told where it happens."""
    pieces = _read(part, list(columns), size)
    while True:
        with _readable(part.path):
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece


def _read(part: Part, columns: list[str], size: int) -> Iterator[Any]:
    path, kind = part.path, kind_of(part.path)
    if kind == ".parquet":
        yield from map(
            _table, _parquet(path).iter_batches(batch_size=size, row_groups=list(part.groups or ()), columns=columns)
        )
    elif kind == ".csv":
        with _csv(path, columns) as reader:
            yield from map(_table, reader)
    elif kind == ".feather":
        with _feather(path) as found:
            for number in range(found.num_record_batches):
                batch = _table(found.get_batch(number)).select(columns)
                batch.validate(full=True)  # lengths and places of texts are of the file, which may be made to crash us
                yield batch
    else:
        with opened_rows(path) as arrays:
            wanted = {name: arrays[name] for name in columns}
            counts = {name: rows.shape[0] for name, rows in wanted.items() if not rows.problem}
            if len(set(counts.values())) > 1:
                sizes = ", ".join(f"{name} {count:,}" for name, count in counts.items())
                raise InvalidDataError(f"{path}: its arrays have different numbers of rows: {sizes}")
            found = next_rows(path, wanted, size)
            while any(map(len, found.values())):
                yield pa.table({name: column_of(array) for name, array in found.items()})
                found = next_rows(path, wanted, size)


def _table(batch: Any) -> Any:
    return pa.Table.from_batches([batch]).replace_schema_metadata(None)
