"""Where results go: Parquet, Feather, CSV or .npz, written as they come, all of them or nothing."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from onward.errors import InvalidDataError, OnwardError
from onward.hub.wording import quote
from onward.scoring.tensors import array_of, is_labelled, is_list, joined
from onward.writing import new_file

SUFFIXES = (".parquet", ".csv", ".feather", ".npz")
GROUP_ROWS, GROUP_BYTES = 1 << 17, 64 << 20
"""What is gathered before it is written, as a group of rows: files of many small ones are slow to read."""


class Sink(Protocol):
    def write(self, table: Any) -> None: ...

    def close(self) -> None: ...


@contextmanager
def target(path: Path) -> Iterator[Gathered]:
    """A file that is there once it is complete, or not at all."""
    with new_file(path) as file:
        gathered = Gathered(file, path)
        try:
            yield gathered
            gathered.close()
        except BaseException as error:
            gathered.give_up()
            if isinstance(error, pa.ArrowException):
                said = " ".join(str(error).split())
                raise InvalidDataError(f"{path}: such a file does not hold the results: {said}") from error
            raise


def check_target(path: Path) -> None:
    """Refuse before the work is done what could not be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise OnwardError(f"{path}: results are written to {', '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise OnwardError(f"{path}: there is no folder {path.parent} to write to")


class Gathered:
    """Takes tables of any length that have the same columns."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path
        self._sink: Sink | None = None
        self._schema: Any = None
        self._waiting: list[Any] = []
        self._rows = self._bytes = 0

    def write(self, table: Any) -> None:
        if self._sink is None:
            self._schema, self._sink = table.schema, _sink(self._file, self._path, table.schema)
        if table.schema != self._schema:
            raise InvalidDataError(_change(self._schema, table.schema))
        self._waiting.append(table)
        self._rows, self._bytes = self._rows + table.num_rows, self._bytes + table.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._sink is not None and self._waiting:
            self._sink.write(pa.concat_tables(self._waiting))
        self._waiting, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        self._flush()
        if self._sink is not None:
            self._sink.close()

    def give_up(self) -> None:
        """End without a result; what was written is thrown away."""
        if isinstance(self._sink, Arrays):
            self._sink.remove()
        elif self._sink is not None:
            with suppress(Exception):
                self._sink.close()


def _change(first: Any, now: Any) -> str:
    changed = sorted(set(map(str, now)) ^ set(map(str, first)))
    return f"the results of this batch have other columns than those before: {', '.join(changed[:4])}"


def _sink(file: IO[bytes], path: Path, schema: Any) -> Sink:
    kind = path.suffix.lower()
    if kind == ".npz":
        return Arrays(file, path)
    if kind == ".parquet":
        return Rows(pa.parquet.ParquetWriter(file, schema))
    if kind == ".feather":
        return Rows(pa.ipc.new_file(file, schema))
    for column in schema:
        if is_list(column.type):
            raise InvalidDataError(
                f"{path}: {quote(column.name)} has several numbers a row, more than a CSV file has columns for:"
                " write .parquet or .npz"
            )
        if pa.types.is_duration(column.type):
            raise InvalidDataError(
                f"{path}: {quote(column.name)} has durations, for which CSV has no form: write .parquet"
            )
    plain = [(c.name, c.type.value_type if is_labelled(c.type) else c.type) for c in schema]
    return Lines(file, pa.schema(plain))


class Rows:
    """Writers of Arrow."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, table: Any) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


class Lines(Rows):
    """A CSV file. In one of a single column, a null is an empty text: a blank line would be skipped by who reads it."""

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        super().__init__(pa.csv.CSVWriter(file, schema))
        self._file, self._schema = file, schema

    def write(self, table: Any) -> None:
        table = table.cast(self._schema)
        if table.num_columns > 1 or not table.column(0).null_count:
            super().write(table)
            return
        texts = pc.fill_null(table.column(0).cast(pa.string()), "")
        pa.csv.write_csv(pa.table([texts], table.schema.names), self._file, pa.csv.WriteOptions(include_header=False))


def _unnamed(folder: Path) -> Any:
    """A file without a name, which is gone with the process however that ends."""
    return tempfile.TemporaryFile(dir=folder)


class Arrays:
    """An archive of arrays. How many rows there are stands before them, so they wait in files until all are there."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._folder = file, path.absolute().parent
        self._parts: dict[str, Any] = {}
        self._rows = 0
        self._kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}

    def write(self, table: Any) -> None:
        for name in table.schema.names:
            column = joined(table.column(name))
            if column.null_count and not (pa.types.is_floating(column.type) or pa.types.is_temporal(column.type)):
                raise InvalidDataError(f"{quote(name)} has nulls, which a .npz does not hold: write .parquet")
            array = None if is_labelled(column.type) else array_of(column)
            if array is None or array.dtype.kind not in "biufmM":
                raise InvalidDataError(f"{quote(name)} holds no plain numbers, as a .npz does: write .parquet")
            if name not in self._parts:
                self._parts[name] = _unnamed(self._folder)
                self._kinds[name] = array.dtype, array.shape[1:]
            if self._kinds[name] != (array.dtype, array.shape[1:]):
                raise InvalidDataError(f"{quote(name)} has rows of different shapes or with nulls: write .parquet")
            self._parts[name].write(array.tobytes())
        self._rows += table.num_rows

    def close(self) -> None:
        with zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED) as made:
            for name, part in self._parts.items():
                dtype, inner = self._kinds[name]
                header = {"descr": dtype.str, "fortran_order": False, "shape": (self._rows, *inner)}
                part.seek(0)
                with made.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array_header_2_0(member, header)
                    shutil.copyfileobj(part, member, 1 << 20)
        self.remove()

    def remove(self) -> None:
        for part in self._parts.values():
            part.close()
