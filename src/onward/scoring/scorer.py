"""A model that turns a table of rows into a table of results, as many rows, in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from onward.advice.options import option
from onward.errors import InvalidDataError, RunFailure, UnsupportedError
from onward.formats.dataframe.schema import PREFIX, schema_of
from onward.hub.wording import quote
from onward.model import Model
from onward.runners.onnxruntime import session
from onward.scoring.feeding import Tensor, check_columns, frame_feeds, tensor_feeds, tensors
from onward.scoring.results import check_rows, chosen_outputs, columns_of
from onward.scoring.tensors import is_labelled

Array = npt.NDArray[Any]
RELATIVE, OF_LARGEST, FLIPPED = 1e-3, 1e-4, 1e-3
"""How far results may be apart that are computed in batches of other sizes, which round differently: relative to the
number, to the largest of its output, and how many labels of all may be others."""

ALONE = 8
"""Rows of the first batch that are scored by themselves, too."""
FAILURES = (InvalidDataError, RunFailure)
"""What may be the fault of a single row."""


@dataclass(frozen=True)
class Plan:
    """What is asked for, but for the model and the data."""

    batch: int = 4096
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By input: the columns that stand side by side in it."""
    keep: Sequence[str] = ()
    outputs: Sequence[str] = ()
    is_text: bool = False
    """Whether the columns are texts, as in a CSV file."""
    lists: bool = False
    """Whether an output of several numbers a row is one column."""
    mixed: bool = False
    """Whether results may depend on the rows that share a batch."""
    labels: bool = False
    """Whether categories that are kept become their labels: each group of rows may have others, and a Feather file has
    one set for all."""


class Scorer:
    """Made once in each process that scores: it holds a session of ONNX Runtime."""

    def __init__(self, model: Model, plan: Plan, names: Sequence[str], threads: int = 0) -> None:
        self.plan, self.schema = plan, schema_of(model.ir)
        graph = model.ir.graph
        self._tensors: list[Tensor] = []
        if self.schema is not None:
            if plan.columns:
                raise InvalidDataError(f"the model says itself what its columns are: leave out {option('column')}")
            check_columns(self.schema, names)
            self._inputs = {value.name for value in graph.inputs}
            read = [column.name for column in self.schema.inputs]
        else:
            self._tensors = tensors(graph, plan.columns, names)
            read = [column for tensor in self._tensors for column in tensor.columns]
        self.columns = list(dict.fromkeys([*plan.keep, *read]))
        """The columns that are read."""
        self.fixed = self._fixed()
        self._outputs, self._chosen = chosen_outputs(graph, self.schema, plan.outputs)
        self._session = session(model, threads=threads)

    def _fixed(self) -> int | None:
        """The rows that every run has, where the model says so."""
        sizes = {tensor.fixed for tensor in self._tensors}
        if len(sizes) > 1:
            words = ", ".join(f"{quote(t.name)} {t.fixed or 'any number of'}" for t in self._tensors)
            raise UnsupportedError(
                f"the inputs take different numbers of rows ({words}): the first axis of each has to be the rows of a"
                " table"
            )
        return sizes.pop() if sizes else None

    @property
    def batch(self) -> int:
        """Rows that are read at once: whole runs."""
        return self.plan.batch if self.fixed is None else max(1, self.plan.batch // self.fixed) * self.fixed

    def __call__(self, table: Any, start: int) -> Any:
        """The results of a batch whose first row has the number `start`; a failure names the rows."""
        try:
            return self._scored(table)
        except FAILURES as error:
            first, last, error = self._narrowed(table, 0, table.num_rows, error)
            number = start + first + 1
            where = f"row {number:,}" if last - first == 1 else f"rows {number:,} to {start + last:,}"
            raise type(error)(f"{where}: {error}") from error

    def _narrowed(
        self, table: Any, first: int, last: int, error: InvalidDataError | RunFailure
    ) -> tuple[int, int, InvalidDataError | RunFailure]:
        """The first row that fails by itself, or the rows that fail together."""
        while last - first > 1:
            middle = (first + last) // 2
            for a, b in ((first, middle), (middle, last)):
                try:
                    self._scored(table.slice(a, b - a))
                except FAILURES as found:
                    first, last, error = a, b, found
                    break
            else:
                return first, last, error
        return first, last, error

    def _scored(self, table: Any) -> Any:
        outputs = self._run(self._feeds(table), table.num_rows)
        made = columns_of(outputs, self.schema, self._chosen, self.plan.lists)
        if both := [name for name in self.plan.keep if name in made.schema.names]:
            raise InvalidDataError(
                f"{quote(both[0])} is a column to keep and one that the model gives: leave it out of {option('keep')},"
                f" or of {option('outputs', plural=True)}"
            )
        kept = {name: self._kept(table.column(name)) for name in self.plan.keep}
        return pa.table(kept | {name: made.column(name) for name in made.schema.names})

    def _kept(self, column: Any) -> Any:
        return column.cast(column.type.value_type) if self.plan.labels and is_labelled(column.type) else column

    def _feeds(self, table: Any) -> dict[str, Array]:
        if self.schema is None:
            return tensor_feeds(table, self._tensors, self.plan.is_text)
        feeds = frame_feeds(table, self.schema, self.plan.is_text)
        return {name: array for name, array in feeds.items() if name in self._inputs}

    def _run(self, feeds: Mapping[str, Array], rows: int) -> dict[str, Array]:
        if self.fixed is None or rows == self.fixed:
            outputs = self._once(feeds)
            check_rows(outputs, rows)
            return outputs
        parts = []
        for at in range(0, rows, self.fixed):
            count = min(self.fixed, rows - at)
            filled = {name: _filled(array[at : at + count], self.fixed) for name, array in feeds.items()}
            outputs = self._once(filled)
            check_rows(outputs, self.fixed)
            parts.append({name: array[:count] for name, array in outputs.items()})
        if not parts:
            raise InvalidDataError(f"there are no rows, and the model takes {self.fixed} at once")
        for name in self._outputs:
            if len(shapes := {part[name].shape[1:] for part in parts}) > 1:
                raise InvalidDataError(f"the output {quote(name)} has rows of different shapes: {sorted(shapes)}")
        return {name: np.concatenate([part[name] for part in parts]) for name in self._outputs}

    def _once(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        try:
            results = self._session.run(self._outputs, dict(feeds))
        except Exception as error:
            raise RunFailure(_reason(str(error))) from error
        return dict(zip(self._outputs, results, strict=True))

    def check(self, table: Any) -> None:
        """Refuse a model that does not run on the first rows, or whose result for a row depends on the other rows of
        the batch, as that of a median does.

        Both halves are scored by themselves, as a running sum depends only on the rows before; and single rows, as the
        row before changes only the first row of a half.
        """
        self(table, 0)
        table = table if self.fixed is None else table.slice(0, self.fixed)
        rows = table.num_rows
        if self.plan.mixed or rows < 2:
            return
        together = self._run(self._feeds(table), rows)
        half = (rows + 1) // 2
        self._compare(together, table, 0, half)
        self._compare(together, table, half, rows)
        for row in sorted({round(at) for at in np.linspace(0, rows - 1, ALONE)}):
            try:
                self._compare(together, table, row, row + 1)
            except (RunFailure, InvalidDataError):
                return  # some models run on several rows only

    def _compare(self, together: Mapping[str, Array], table: Any, first: int, last: int) -> None:
        alone = self._run(self._feeds(table.slice(first, last - first)), last - first)
        for name in self._outputs:
            row = _first_difference(together[name][first:last], alone[name])
            if row is not None:
                raise UnsupportedError(
                    f"the result of a row depends on the rows that are scored with it: {quote(name)} of row"
                    f" {first + row + 1:,} is another in a batch of {table.num_rows:,} than in one of"
                    f" {last - first:,}. A statistic, such as a median, has to be fitted or frozen when the model is"
                    f" made; {option('mixed', True)} scores it as it is"
                )


def _filled(array: Array, rows: int) -> Array:
    return array if len(array) == rows else np.concatenate([array, np.repeat(array[-1:], rows - len(array), axis=0)])


def _first_difference(a: Array, b: Array) -> int | None:
    """A row in which two results differ by more than rounding, if there is one."""
    if a.shape[1:] != b.shape[1:]:
        return 0
    if a.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            largest = np.max(np.abs(a[np.isfinite(a)]), initial=0)
            apart = ~np.isclose(a, b, rtol=RELATIVE, atol=OF_LARGEST * largest, equal_nan=True)
    else:
        apart = np.asarray(a != b)
    rows = np.asarray(apart).reshape(len(a), -1).any(axis=1)
    allowed = 0 if a.dtype.kind == "f" else FLIPPED * len(a)
    return int(np.argmax(rows)) if rows.sum() > allowed else None


def _reason(message: str) -> str:
    """What the name of the failing node says, where it is one that fails on purpose; else the whole message."""
    start, colon = message.find(f"Name:'{PREFIX}"), ": Gather"
    if start >= 0 and colon in message[start:]:
        return message[start + len(f"Name:'{PREFIX}") :].split(colon)[0]
    return f"ONNX Runtime could not run the model: {message}"
