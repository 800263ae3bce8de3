"""What the emitter must know of a backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.expr import Binary, Conditional, Expr, Name, Unary, lift
from onward.registry import Registry

Rule = Callable[..., Any]

_D = ir.DataType
PLAIN_DTYPES: dict[ir.DataType, str] = {
    _D.FLOAT: "float32",
    _D.DOUBLE: "float64",
    _D.FLOAT16: "float16",
    _D.BFLOAT16: "bfloat16",
    _D.INT8: "int8",
    _D.INT16: "int16",
    _D.INT32: "int32",
    _D.INT64: "int64",
    _D.UINT8: "uint8",
    _D.UINT16: "uint16",
    _D.UINT32: "uint32",
    _D.UINT64: "uint64",
    _D.BOOL: "bool",
    _D.COMPLEX64: "complex64",
    _D.COMPLEX128: "complex128",
}
"""The names that frameworks share with NumPy."""


class Target(ABC):
    """How a framework says what all of them have; host numbers are what is computed from shapes and constants.

    What has a body here is for a framework whose tensors are like numpy's, and whose sizes are Python's own numbers.
    """

    name: str
    rules: Registry[Rule]

    @abstractmethod
    def tensor(self, items: np.ndarray[Any, Any], dtype: ir.DataType | None) -> Expr:
        """The expression that makes a tensor of host numbers."""

    @abstractmethod
    def dtype(self, of: ir.DataType | int) -> Expr:
        """The name of a dtype: `torch.float32`."""

    @abstractmethod
    def cast(self, x: Expr, of: ir.DataType | int) -> Expr:
        """A tensor in another dtype."""

    def each(self, numbers: Iterable[int]) -> Any:
        """One number for each axis, as the framework's calls take them: a tuple, or a list."""
        return tuple(numbers)

    @abstractmethod
    def concat(self, tensors: Sequence[Expr], axis: int) -> Expr: ...

    def pick(self, table: Expr, index: Expr) -> Expr:
        """Entries of the first axis of a table, by their numbers."""
        return table[index]

    def placed(self) -> dict[str, Expr]:
        """The keywords of calls that make tensors: `device=…`, where the framework has to be told."""
        return {}

    def pick_strings(self, strings: Expr, index: Expr, node: ir.Node) -> Expr:
        """The elements of a vector of strings at integer places, which a node asks for."""
        return strings[index]

    def is_literal(self, number: Any) -> bool:
        """Whether a number can stand beside a tensor as it is."""
        return True

    def dim(self, x: Expr, axis: int) -> Expr:
        """The size of an axis as a host number."""
        return x.shape[axis]

    def rank(self, x: Expr) -> Expr:
        """The number of axes as a host number."""
        return x.ndim

    def listed(self, x: Expr) -> Expr:
        """A one-dimensional tensor as a list of host numbers, or as what stands for one."""
        return x.tolist()

    def call(self, function: str, *arguments: Any) -> Expr:
        """A function of host numbers: Python's `min`, `int` …, `math.floor`, or `and`, `not`, `if` (test, yes, no)."""
        if function == "if":
            return Conditional(*arguments)
        if function == "not":
            return Unary("not", *arguments)
        if function in ("and", "or"):
            return Binary(function, *arguments)
        return Name(function)(*map(lift, arguments))
