"""What generated MATLAB code is made of: the symbols rules write with, classes, and the registry of rules.

A tensor of ONNX with the dimensions [N, C, H, W] is an array W x H x C x N: its elements have the same order in memory.
So the axis k of a tensor of rank r is the dimension r - k, `axis_dim` says, a vector is a column, and broadcasting is
MATLAB's implicit expansion. Ranks are static: `rank_of` refuses a node where inference does not know one.

To add a family of ops: write `rules/<family>.py`, with a function for each op under `@rule("Op")`, and for what MATLAB
has no function for, helpers `runtime/<family>/<name>.m`, one function in each file, which rules call as
`ops.name(x, ...)`. A helper may call others as `ops.other(x)`; it gets sizes as MATLAB has them, and only uses syntax
and functions that MATLAB and Octave share, none of them from a toolbox. A rule that computes is registered by `rule`,
which rounds what it gives where the file's dtype has fewer bits than the class that carries it; one that only moves
elements by `moves`. Keywords of a call are printed as pairs of a name and a value. Then run
`python -m onward.scoreboard.suite matlab -k <ops>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, NoReturn

import numpy as np
import onnx_ir as ir

from onward.backends.emit.custom_ops.rules import custom_rules
from onward.backends.emit.emitter import Arg, Emitter, Hosted, Unpack
from onward.backends.emit.expr import Binary, Expr, Helper, Literal, Name, Unary, lift
from onward.backends.emit.expr import Sequence as Display
from onward.backends.emit.expr import ops as ops
from onward.backends.emit.target import Rule, Target
from onward.errors import UnsupportedError
from onward.registry import Registry

_D = ir.DataType
CLASSES: dict[ir.DataType, str] = {
    _D.FLOAT: "single",
    _D.DOUBLE: "double",
    _D.INT8: "int8",
    _D.INT16: "int16",
    _D.INT32: "int32",
    _D.INT64: "int64",
    _D.UINT8: "uint8",
    _D.UINT16: "uint16",
    _D.UINT32: "uint32",
    _D.UINT64: "uint64",
    _D.BOOL: "logical",
    _D.COMPLEX64: "single",
    _D.COMPLEX128: "double",
    # MATLAB lacks these: each value is kept in the smallest class that holds it exactly.
    _D.FLOAT16: "single",
    _D.BFLOAT16: "single",
    _D.FLOAT8E4M3FN: "single",
    _D.FLOAT8E4M3FNUZ: "single",
    _D.FLOAT8E5M2: "single",
    _D.FLOAT8E5M2FNUZ: "single",
    _D.FLOAT8E8M0: "single",
    _D.FLOAT4E2M1: "single",
    _D.FLOAT6E2M3: "single",
    _D.FLOAT6E3M2: "single",
    _D.INT4: "int8",
    _D.INT2: "int8",
    _D.UINT4: "uint8",
    _D.UINT2: "uint8",
}
"""The class of the arrays that carry each dtype. Strings are cell arrays of texts."""
HALVES = {_D.FLOAT16: "half", _D.BFLOAT16: "bfloat16"}
"""Floats that are computed in single precision and rounded, by the name of what rounds them."""
COMPLEX = (_D.COMPLEX64, _D.COMPLEX128)

END = Name("end")
ALL = Name(":")


def class_of(of: ir.DataType | int) -> str:
    return CLASSES[_D(of)]


def rank_of(e: Emitter, x: Expr | ir.Value) -> int:
    """The number of dimensions, which has to be known now."""
    rank = e.rank(x)
    if rank is None:
        refuse_rank(x if isinstance(x, ir.Value) else x._value if isinstance(x, Arg) else None)
    return rank


def refuse_rank(value: ir.Value | None) -> NoReturn:
    name = "" if value is None else f" of {value.name!r}"
    raise UnsupportedError(f"the number of dimensions{name} is not known, which MATLAB code has to know")


def axis_dim(e: Emitter, x: Expr | ir.Value, axis: int) -> int:
    """The dimension that an axis of a tensor is in MATLAB, from 1."""
    rank = rank_of(e, x)
    return rank - axis if axis >= 0 else -axis


def sizes(numbers: Sequence[Any]) -> Display:
    """A shape as MATLAB's functions take it: reversed, with two sizes at least."""
    reverse = [lift(n) for n in numbers][::-1]
    return Display((*reverse, *[lift(1)] * (2 - len(reverse))), "[]")


def row(numbers: Iterable[Any]) -> Expr:
    """Numbers in this order; a single one is a row as it stands."""
    items = tuple(map(lift, numbers))
    return items[0] if len(items) == 1 else Display(items)


class MatlabTarget(Target):
    name = "matlab"
    rules: Registry[Rule] = Registry("MATLAB rule", custom_rules("matlab", f"{__package__}.runtime"))

    def tensor(self, items: np.ndarray[Any, Any], of: ir.DataType | None) -> Expr:
        of = of or _D.INT64
        kind = class_of(of)
        flat = items.reshape(-1).tolist()
        if items.size == 0:
            return Name("zeros")(sizes(items.shape), kind)
        if any(isinstance(n, int) and abs(n) > 2**53 for n in flat) and items.size > 1:
            made: Expr = _column([Name(kind)(n) for n in flat])
            return made if items.ndim <= 1 else Name("reshape")(made, sizes(items.shape))
        if items.ndim == 0:
            made = lift(flat[0])
        elif len(set(map(repr, flat))) == 1 and items.size > 4 and not isinstance(flat[0], Expr):
            return Name("repmat")(self._typed(lift(flat[0]), kind), sizes(items.shape))
        else:
            made = _column(flat)
            if items.ndim > 1:
                made = Name("reshape")(made, sizes(items.shape))
        return self._typed(made, kind)

    def _typed(self, x: Expr, kind: str) -> Expr:
        is_truth = isinstance(x, Literal) and isinstance(x._value, bool)
        return x if kind == "double" or (kind == "logical" and is_truth) else Name(kind)(x)

    def dtype(self, of: ir.DataType | int) -> Expr:
        return lift(class_of(of))

    def cast(self, x: Expr, of: ir.DataType | int) -> Expr:
        kind = class_of(of)
        if kind in ("single", "double"):
            return Name(kind)(x)
        return Binary("!=", x, 0) if kind == "logical" else ops.to_integer(x, kind)

    def is_literal(self, number: Any) -> bool:
        """A double holds no larger whole numbers, which are no numbers of any class then."""
        return not isinstance(number, int) or abs(number) <= 2**53

    def each(self, numbers: Iterable[int]) -> Any:
        return row(numbers)

    def concat(self, tensors: Sequence[Expr], axis: int) -> Expr:
        return Name("cat")(axis_dim(_emitter(tensors[0]), tensors[0], axis), *tensors)

    def dim(self, x: Expr, axis: int) -> Expr:
        return Name("size")(x, axis_dim(_emitter(x), x, axis))

    def rank(self, x: Expr) -> Expr:
        return lift(rank_of(_emitter(x), x))

    def listed(self, x: Expr) -> Expr:
        return Name("double")(x)

    def pick(self, table: Expr, index: Expr) -> Expr:
        if isinstance(table, Arg) and isinstance(index, Arg):
            e = table._emitter
            return ops.gather(table, index, axis_dim(e, table, 0), rank_of(e, table), rank_of(e, index))
        return table[index + 1]  # a vector that a rule made

    def pick_strings(self, strings: Expr, index: Expr, node: ir.Node) -> Expr:
        return strings[index + 1]

    def call(self, function: str, *arguments: Any) -> Expr:
        if function == "if":
            return Helper("choose")(*arguments)
        if function == "bool":
            return Binary("!=", lift(arguments[0]), 0)
        if function == "not":
            return Unary("not", *arguments)
        if function in ("and", "or"):
            return Binary(function, *arguments)
        if function in ("min", "max") and len(arguments) > 2:
            return self.call(function, self.call(function, *arguments[:-1]), arguments[-1])
        return Name(function)(*map(lift, arguments))


def _emitter(x: Expr) -> Emitter:
    assert isinstance(x, Arg)
    return x._emitter


def _column(items: Sequence[Any]) -> Expr:
    """A column of numbers."""
    display = Display(tuple(map(lift, items)), "[]")
    return display if len(items) == 1 else display.T


TARGET = MatlabTarget()
moves = TARGET.rules.register
"""Registers a rule that moves elements, and leaves them as they are."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule that computes: what it gives is rounded where the dtype of the file has fewer bits."""

    def registered(function: Rule) -> Rule:
        @wraps(function)
        def rounded(e: Emitter, *inputs: Any, **parameters: Any) -> Any:
            node = e.node
            found = function(e, *inputs, **parameters)
            kinds = [HALVES.get(value.dtype or _D.FLOAT) for value in node.outputs]
            if not any(kinds):
                return found
            if isinstance(found, Unpack):
                found = e.unpack(found.value, len(node.outputs))
            results = list(found) if isinstance(found, tuple | list) else [found]
            return [_rounded(x, kind) for x, kind in zip(results, kinds, strict=False)]

        TARGET.rules.register(*names)(rounded)
        return function

    return registered


def _rounded(x: Any, kind: str | None) -> Any:
    if kind is None or x is None or isinstance(x, Arg | Hosted):
        return x
    return ops.round_half(x) if kind == "half" else ops.round_bfloat16(x)


def take(rules: dict[str, Rule]) -> None:
    """Register rules that compute."""
    for name, function in rules.items():
        rule(name)(function)
