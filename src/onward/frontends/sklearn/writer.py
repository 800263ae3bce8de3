"""Writes ONNX nodes for estimators: in float64, in which scikit-learn computes as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.dataframe.schema import ColumnSchema
from onward.formats.tables import MISSING
from onward.frontends.sklearn.registry import Outputs, rule_of
from onward.frontends.sklearn.table import Data, Table
from onward.graph.build import Builder, Tensor

ML = "ai.onnx.ml"
Array = npt.NDArray[Any]


class Writer(Builder):
    """A builder that knows estimators, tables and constants in the dtype of the computation."""

    real = ir.DataType.DOUBLE

    def __init__(self, model: ir.Model, without_rule: Callable[[Writer, Any, Data], Outputs]) -> None:
        """`without_rule` writes the estimators that have none."""
        super().__init__(model)
        self._without_rule = without_rule
        self._done: dict[tuple[int, Any], Mapping[str, Data]] = {}
        self._kept: list[Any] = []
        self.gap = MISSING
        """What stands for a string that is missing."""
        self.processed: list[ColumnSchema] = []
        """The columns that functions on data frames give."""

    def outputs(self, estimator: Any, x: Data) -> Outputs:
        """What each method of a fitted estimator returns, as tensors."""
        return {name: self.plain(found) for name, found in self.results(estimator, x).items()}

    def results(self, estimator: Any, x: Data) -> Mapping[str, Data]:
        """What each method of a fitted estimator returns; `transform` may return a table."""
        place = x.key if isinstance(x, Table) else (id(x.value),)
        key = (id(estimator), place)
        if key not in self._done:
            self._kept.append(estimator)
            self._done[key] = self._written(estimator, x)
        return self._done[key]

    def passed(self, estimator: Any, x: Data) -> Data:
        """What the next step of a pipeline is given; a table where it would be given a data frame."""
        if "transform" not in (found := self.results(estimator, x)):
            raise UnsupportedError(f"{type(estimator).__name__}.transform has no rule")
        return self.labelled(estimator, x, [found["transform"]])

    def labelled(self, estimator: Any, x: Data, parts: Sequence[Data]) -> Data:
        """The parts of what `estimator` makes of `x`, as a table where functions on data frames may follow."""
        if len(parts) == 1 and (not isinstance(x, Table) or x.rows is None or isinstance(parts[0], Table)):
            return parts[0]
        assert isinstance(x, Table)
        rows = estimator.transform(x.rows)
        if not hasattr(rows, "iloc") or not hasattr(rows, "columns"):
            return self.joined(parts)
        tensors = [column for part in parts for column in self.columns(part)]
        names = [str(name) for name in rows.columns]
        if len(tensors) != len(names) or len(set(names)) < len(names):
            return self.joined(parts)
        whole = parts[0] if len(parts) == 1 and isinstance(parts[0], Tensor) else None
        return Table(dict(zip(names, tensors, strict=True)), rows=rows, whole=whole)

    def joined(self, parts: Sequence[Data]) -> Tensor:
        """Side by side, as one tensor."""
        if not parts:
            raise UnsupportedError(f"{self.scope.rstrip('/')}: no columns are left")
        found = [self.plain(part) for part in parts]
        texts = [part.dtype == ir.DataType.STRING for part in found]
        if any(texts) and not all(texts):
            raise UnsupportedError(
                f"{self.scope.rstrip('/')}: its result mixes strings and numbers, which no tensor can"
            )
        return self.hstack(found if all(texts) else [self.number(part) for part in found])

    def _written(self, estimator: Any, x: Data) -> Mapping[str, Data]:
        rule = rule_of(estimator)
        if rule is None:
            return self._without_rule(self, estimator, x)
        outer, self.scope = self.scope, f"{self.scope}{type(estimator).__name__}/"
        try:
            return rule.function(self, estimator, x if rule.as_given else self.matrix(x))
        finally:
            self.scope = outer

    def method(self, estimator: Any, name: str, x: Data) -> Tensor:
        """What one method returns."""
        found = self.outputs(estimator, x)
        if name not in found:
            raise UnsupportedError(f"{type(estimator).__name__}.{name} has no rule")
        return found[name]

    def predict(self, estimator: Any, x: Data) -> Tensor:
        return self.method(estimator, "predict", x)

    def transform(self, estimator: Any, x: Data) -> Tensor:
        return self.method(estimator, "transform", x)

    def matrix(self, x: Data) -> Tensor:
        """As one matrix of numbers in the dtype of the computation."""
        if isinstance(x, Tensor):
            return self.number(x)
        if x.whole is not None:
            return self.number(x.whole)
        columns = [self.number(column) for column in x.columns.values()]
        return self.hstack(columns)

    def plain(self, x: Data) -> Tensor:
        """As one tensor: of strings where all are strings, else of numbers."""
        if isinstance(x, Tensor):
            return x
        if x.is_series:
            return self.flat(next(iter(x.columns.values())))
        if x.whole is not None:
            return x.whole
        if all(column.dtype == ir.DataType.STRING for column in x.columns.values()):
            return self.hstack(list(x.columns.values()))
        return self.matrix(x)

    def number(self, x: Tensor) -> Tensor:
        if x.dtype == ir.DataType.STRING:
            raise UnsupportedError(f"{self.scope.rstrip('/')} is given strings, where it takes numbers")
        return x.cast(self.real)

    def columns(self, x: Data) -> list[Tensor]:
        """One by one, each as (batch, 1), in the types they have."""
        if isinstance(x, Table):
            return list(x.columns.values())
        if x.rank == 1:
            return [self.column(x)]
        return [self.take(x, [i]) for i in range(self.width(x))]

    def chosen(self, x: Data, indices: Sequence[int]) -> Data:
        """Some of the columns."""
        if isinstance(x, Table):
            return x.chosen([x.names[i] for i in indices])
        return self.take(x, indices)

    def take(self, x: Tensor, indices: Sequence[int] | Array) -> Tensor:
        """Columns of a matrix."""
        numbers = [int(i) for i in indices]
        if numbers == list(range(self.width(x))):
            return x
        return self.Gather(x, self.ints(numbers), axis=1)

    def width(self, x: Data) -> int:
        if isinstance(x, Table):
            return len(x.columns)
        size = x.dims[1] if x.dims is not None and len(x.dims) == 2 else None
        if not isinstance(size, int):
            raise UnsupportedError(f"{self.scope.rstrip('/')}: the number of columns of its input is not known")
        return size

    def hstack(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0] if len(parts) == 1 else self.Concat(*parts, axis=1)

    def column(self, x: Tensor) -> Tensor:
        """A vector as a matrix of one column."""
        return x if x.rank == 2 else self.Unsqueeze(x, self.ints([1]))

    def flat(self, x: Tensor) -> Tensor:
        """A matrix of one column as a vector."""
        return x if x.rank == 1 else self.Squeeze(x, self.ints([1]))

    def rows(self, x: Tensor) -> Tensor:
        """How many rows there are, as a vector of one number."""
        return self.Shape(x, start=0, end=1)

    def repeated(self, row: Tensor, x: Tensor) -> Tensor:
        """A row for each row of `x`."""
        rest = self.ints([d for d in row.dims or () if isinstance(d, int)])
        return self.Expand(row, self.Concat(self.rows(x), rest, axis=0))

    def reals(self, numbers: Any) -> Tensor:
        """A constant in the dtype of the computation."""
        return self.constant(np.asarray(numbers, dtype=self.real.numpy()))

    def labels(self, classes: Any, index: Tensor) -> Tensor:
        """The classes of these numbers."""
        return self.Gather(self.listed(classes), index, axis=0)

    def listed(self, values: Any) -> Tensor:
        """Classes or categories as a constant: of strings, or of the dtype they have."""
        array = np.asarray(values)
        if array.dtype.kind == "O":
            if all(isinstance(item, str) for item in array):
                return self.strings(array)
            array = np.asarray(array.tolist())
        if array.dtype.kind in "US":
            return self.strings(array)
        if array.dtype.kind not in "biuf":
            raise UnsupportedError(f"{self.scope.rstrip('/')}: ONNX has no labels of type {array.dtype}")
        return self.constant(array)

    def linear(self, x: Tensor, coefficients: Any, intercept: Any) -> Tensor:
        """x · coefficientsᵀ + intercept; a vector of coefficients gives a vector."""
        weights = np.asarray(coefficients, np.float64)
        found = self.MatMul(x, self.reals(np.atleast_2d(weights).T))
        if np.any(np.asarray(intercept) != 0):
            found = found + self.reals(intercept)
        return self.flat(found) if weights.ndim == 1 else found

    def MatMul(self, x: Tensor, y: Tensor) -> Tensor:
        """A product, into which goes a factor of `x`: ONNX Runtime would fuse the two, and round it to float32."""
        made = x.value.producer()
        if made is not None and made.op_type in ("Mul", "Div") and (weights := y.value.const_value) is not None:
            first, second = made.inputs
            factor = self._factor(second)
            if factor is not None and first is not None:
                return self.MatMul(self.tensor(first), self.reals(_scaled(weights.numpy(), factor, made.op_type)))
        return self.many("MatMul", 1, x, y)[0]

    def Mul(self, x: Tensor, y: Any) -> Tensor:
        return self._times("Mul", x, y)

    def Div(self, x: Tensor, y: Any) -> Tensor:
        return self._times("Div", x, y)

    def _times(self, op_type: str, x: Tensor, y: Any) -> Tensor:
        """A factor of a product goes into it, as before it."""
        made = x.value.producer()
        if made is not None and made.op_type == "MatMul" and made.inputs[1] is not None and made.inputs[0] is not None:
            factor = float(y) if isinstance(y, int | float) else self._factor(y.value)
            weights = made.inputs[1].const_value
            if factor is not None and weights is not None:
                return self.MatMul(self.tensor(made.inputs[0]), self.reals(_scaled(weights.numpy(), factor, op_type)))
        return self.many(op_type, 1, x, y)[0]

    @staticmethod
    def _factor(value: ir.Value | None) -> float | None:
        """The one number that a constant holds."""
        constant = None if value is None else value.const_value
        return float(constant.numpy().reshape(())) if constant is not None and constant.size == 1 else None

    def mean(self, x: Tensor, axis: int, keepdims: bool = False) -> Tensor:
        return self.ReduceMean(x, self.ints([axis]), keepdims=int(keepdims))

    def argmax(self, x: Tensor) -> Tensor:
        """The first of the largest of each row."""
        return self.ArgMax(x, axis=1, keepdims=0)

    def argmin(self, x: Tensor) -> Tensor:
        return self.ArgMin(x, axis=1, keepdims=0)

    def share(self, x: Tensor) -> Tensor:
        """Each row by its sum."""
        return x / self.sum(x, [1])

    def pair(self, p: Tensor) -> Tensor:
        """The probabilities of two classes from that of the second."""
        second = self.column(p)
        return self.hstack([1.0 - second, second])

    def sign(self, scores: Tensor) -> Tensor:
        """1 for what belongs to the data, -1 for what does not."""
        return self.Where(scores >= 0, self.index(1), self.index(-1))

    def isnan(self, x: Tensor) -> Tensor:
        return self.IsNaN(x)

    def sigmoid(self, x: Tensor) -> Tensor:
        """1 / (1 + exp(-x)), to the last digits also where it is small, which ONNX Runtime's Sigmoid is not."""
        power = self.Exp(-self.Abs(x))
        return self.Where(x >= 0, self.like(1.0, x), power) / (power + 1.0)


def _scaled(weights: Array, factor: float, op_type: str) -> Array:
    return weights * factor if op_type == "Mul" else weights / factor
