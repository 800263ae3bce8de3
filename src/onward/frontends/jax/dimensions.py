"""Symbolic dimensions as tensors: `2*b`, `floordiv(b, 2)` and their like, computed from the shapes of inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.build import Tensor

if TYPE_CHECKING:
    from onward.frontends.jax.writer import Writer

Dim = Any
"""An int, or a symbolic dimension of `jax.export`."""


def name_of(dim: Dim) -> int | str:
    """A dimension as ONNX has it: a size, or what JAX prints for it."""
    return int(dim) if is_known(dim) else _printed(dim)


@lru_cache(maxsize=1024)
def _printed(dim: Dim) -> str:
    return str(dim)


def is_known(dim: Dim) -> bool:
    return isinstance(dim, int) or not hasattr(dim, "scope")


def parsed(dim: Dim) -> ast.expr:
    """The formula of a symbolic dimension: names, numbers, `+ - *`, powers, and calls of floordiv, mod, max and min."""
    return ast.parse(str(dim).replace("^", "**"), mode="eval").body


class Dimensions:
    """The sizes of a model's inputs, and what is computed of them: once each, in the main graph."""

    def __init__(self, op: Writer) -> None:
        self._op = op
        self._sources: dict[str, tuple[ir.Value, int]] = {}
        """Where a formula, as it is printed, is the size of an input: of which, and along which axis."""
        self._known: dict[str, Tensor] = {}
        self._vectors: dict[str, Tensor] = {}
        self._parts: dict[str, Tensor] = {}

    def declare(self, value: ir.Value, dims: Iterable[Dim]) -> None:
        """Take note of an input."""
        for axis, dim in enumerate(dims):
            if not is_known(dim):
                self._sources.setdefault(str(dim), (value, axis))

    def vector(self, dim: Dim) -> Tensor:
        """A dimension as a vector of one number."""
        if is_known(dim):
            return self._op.ints([int(dim)])
        key = str(dim)
        if key not in self._vectors:
            with self._op.outside():
                if key in self._sources:
                    value, axis = self._sources[key]
                    self._vectors[key] = self._op.Shape(self._op.tensor(value), start=axis, end=axis + 1)
                else:
                    self._vectors[key] = self._op.Reshape(self.scalar(dim), self._op.ints([1]))
        return self._vectors[key]

    def scalar(self, dim: Dim) -> Tensor:
        """A dimension as a scalar of int64."""
        if is_known(dim):
            return self._op.index(int(dim))
        key = str(dim)
        if key not in self._known:
            with self._op.outside():
                direct = key in self._sources
                self._known[key] = (
                    self._op.squeeze(self.vector(dim), [0]) if direct else self._computed(parsed(dim), str(dim))
                )
        return self._known[key]

    def shape(self, dims: Sequence[Dim]) -> Tensor:
        """A shape as a vector."""
        if all(map(is_known, dims)):
            return self._op.ints([int(dim) for dim in dims])
        if len(dims) == 1:
            return self.vector(dims[0])
        return self._op.Concat(*(self.vector(dim) for dim in dims), axis=0)

    def _computed(self, formula: ast.expr, whole: str) -> Tensor:
        """The value of a formula; parts that are alike are computed once."""
        key = ast.unparse(formula)
        if key not in self._parts:
            self._parts[key] = self._evaluated(formula, whole)
        return self._parts[key]

    def _evaluated(self, formula: ast.expr, whole: str) -> Tensor:
        op = self._op

        def of(part: ast.expr) -> Tensor:
            return self._computed(part, whole)

        match formula:
            case ast.Constant(value=int(number)):
                return op.index(number)
            case ast.Name(id=name):
                return self._symbol(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -of(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return of(left) + of(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return of(left) - of(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return of(left) * of(right)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(times))):
                result = base = of(left)
                for _ in range(times - 1):
                    result = result * base
                return result
            case ast.Call(func=ast.Name(id="floordiv"), args=[a, b]):
                above, below = of(a), of(b)
                return (above - op.Mod(above, below)) / below
            case ast.Call(func=ast.Name(id="mod"), args=[a, b]):
                return op.Mod(of(a), of(b))
            case ast.Call(func=ast.Name(id="max"), args=[a, b]):
                return op.Max(of(a), of(b))
            case ast.Call(func=ast.Name(id="min"), args=[a, b]):
                return op.Min(of(a), of(b))
            case ast.Call(func=ast.Name(id="non_negative"), args=[a]):
                return op.Max(of(a), op.index(0))
        raise UnsupportedError(f"the symbolic dimension {whole} has a form that is not known: {ast.unparse(formula)}")

    def _symbol(self, name: str) -> Tensor:
        if name in self._sources:
            return self._op.squeeze(self.vector_of(name), [0])
        for formula, (value, axis) in self._sources.items():
            solved = _linear(ast.parse(formula.replace("^", "**"), mode="eval").body, name)
            if solved is not None:
                factor, rest = solved
                size = self._op.squeeze(self._op.Shape(self._op.tensor(value), start=axis, end=axis + 1), [0])
                left = size if rest is None else size - self._computed(rest, formula)
                return left if factor == 1 else left / factor
        raise UnsupportedError(
            f"the symbolic dimension {name} is the size of no input: give one that has it as a dimension of its own"
        )

    def vector_of(self, name: str) -> Tensor:
        if name not in self._vectors:
            value, axis = self._sources[name]
            self._vectors[name] = self._op.Shape(self._op.tensor(value), start=axis, end=axis + 1)
        return self._vectors[name]


def _linear(formula: ast.expr, name: str) -> tuple[int, ast.expr | None] | None:
    """Where a formula is a multiple of a name and a number more: the factor, and the number."""
    match formula:
        case ast.Name(id=found) if found == name:
            return 1, None
        case ast.BinOp(left=ast.Constant(value=int(factor)), op=ast.Mult(), right=ast.Name(id=found)) if found == name:
            return factor, None
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant() as rest):
            inner = _linear(left, name)
            return None if inner is None or inner[1] is not None else (inner[0], rest)
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant() as rest):
            inner = _linear(left, name)
            return None if inner is None or inner[1] is not None else (inner[0], ast.UnaryOp(ast.USub(), rest))
    return None
