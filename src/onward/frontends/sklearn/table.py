"""What estimators of scikit-learn are given, while they are written as ONNX nodes: a tensor, or a table of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from onward.errors import UnsupportedError
from onward.graph.build import Tensor


class Cells(NamedTuple):
    """A column as functions on data frames take it: its values, and where they are null."""

    value: Tensor
    null: Tensor | None = None


@dataclass(frozen=True)
class Table:
    """Columns of a data frame, each of one type: tensors of (batch, 1) by name."""

    tensors: Mapping[str, Tensor]
    """As estimators take them: what is missing is NaN, or the writer's gap."""
    cells: Mapping[str, Cells] = field(default_factory=dict)
    """As functions on data frames take them, where that is something else."""
    rows: Any = None
    """What the columns are for the sample, a data frame; None where no function on data frames asks for it."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """By name: why a column cannot be given to an estimator."""
    whole: Tensor | None = None
    """All columns as one tensor, where they came as one."""
    is_series: bool = False
    """Whether it is a single column by itself, not a frame."""

    @property
    def columns(self) -> Mapping[str, Tensor]:
        for name, problem in self.problems.items():
            raise UnsupportedError(f"column {name!r}: {problem}")
        return self.tensors

    @property
    def names(self) -> list[str]:
        return list(self.tensors) if self.rows is None else [str(name) for name in self.rows.columns]

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from other tables of a graph."""
        cells = [id(part.value) for pair in self.cells.values() for part in pair if part is not None]
        return (*(id(tensor.value) for tensor in self.tensors.values()), *cells, *self.problems, self.is_series)

    def cells_of(self, name: str) -> Cells:
        return self.cells[name] if name in self.cells else Cells(self.tensors[name])

    def chosen(self, names: Sequence[str], *, as_series: bool = False) -> Table:
        """Some of the columns."""
        places = [self.names.index(name) for name in names]
        return Table(
            {name: self.tensors[name] for name in names if name in self.tensors},
            {name: self.cells[name] for name in names if name in self.cells},
            None if self.rows is None else self.rows.iloc[:, places],
            {name: self.problems[name] for name in names if name in self.problems},
            is_series=as_series,
        )


Data = Tensor | Table
