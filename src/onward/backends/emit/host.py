"""Host values: what is computed from shapes and constants alone is plain Python numbers in the generated code.

A host value is an object array whose elements are Python numbers or expressions, so reshaping, slicing and
concatenating shapes costs nothing and `Shape → Gather → Concat → Reshape` prints as `x.reshape(x.shape[0], -1)`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.expr import Binary, Expr, Helpers, Ref
from onward.graph.values import INTEGERS, Algebra, Items, array, evaluate

if TYPE_CHECKING:
    from onward.backends.emit.emitter import Emitter

FLOATS = {ir.DataType.FLOAT, ir.DataType.DOUBLE}
ops = Helpers()

_SIGNS = {"Add": "+", "Sub": "-", "Mul": "*", "Mod": "%"}
_TESTS = {"Equal": "==", "Less": "<", "Greater": ">", "LessOrEqual": "<=", "GreaterOrEqual": ">="}
_LOGIC = {"And": "and", "Or": "or", "Not": "not"}
_CALLS = {"Abs": "abs", "Min": "min", "Max": "max", "Where": "if", "int": "int", "float": "float", "bool": "bool"}
_CALLS |= {"Floor": "math.floor", "Ceil": "math.ceil", **_LOGIC}
_KEEP_SIGN = {"Add", "Mul", "Min", "Max", "int", "float", "bool"}
_ROUNDED = {"Add", "Sub", "Mul", "Div", "Sqrt"}


def is_nonnegative(e: Emitter, item: Any) -> bool:
    return item >= 0 if not isinstance(item, Expr) else isinstance(item, Ref) and item._var in e.nonnegative


class HostNumbers(Algebra):
    """Prints what can be calculated only when the model runs."""

    def __init__(self, e: Emitter) -> None:
        self._e = e

    def of(self, value: ir.Value | None) -> Items | None:
        return None if value is None else self._e.host_of(value)

    def rank(self, value: ir.Value) -> int | None:
        return self._e.rank(value)

    def dim(self, value: ir.Value, axis: int) -> Any:
        x = self._e.arg(value)
        assert x is not None
        return self._e.dim(x, axis)

    def outputs(self, node: ir.Node) -> list[Items] | None:
        """The outputs of a node where all of them are host values."""
        single = self._of_unknown_rank(node)
        if single is not None:
            return [single]
        dtype = node.outputs[0].dtype
        if dtype not in INTEGERS | FLOATS or (node.op_type.startswith("Reduce") and dtype in FLOATS):
            return None
        found = evaluate(node, self)
        if found is None or any(item is None for items in found for item in items.flat):
            return None
        return [self._single(node, items) for items in found] if dtype == ir.DataType.FLOAT else found

    def _single(self, node: ir.Node, items: Items) -> Items:
        """Numbers rounded to single precision, as those of a float32 tensor are."""
        is_rounded = node.op_type in _ROUNDED

        def rounded(item: Any) -> Any:
            if not isinstance(item, Expr):
                return float(np.float32(item))
            return self._e.let_host(ops.float32(item), "scale") if is_rounded else item

        return array(map(rounded, items.flat), items.shape)

    def symbolic(self, op: str, *row: Any) -> Any:
        e, a, b = self._e, row[0], row[-1]
        signs = [is_nonnegative(e, item) for item in row]
        match op:
            case "Add" | "Sub" | "Mul" if any(isinstance(n, int) and abs(n) >= 2**62 for n in row):
                return None  # may wrap around when the model runs
            case "Mul" if _is(a, 1) or _is(b, 1):
                return b if _is(a, 1) else a
            case "Add" | "Sub" if _is(b, 0):
                return a
            case "Add" if _is(a, 0):
                return b
            case "Div":
                return self._quotient(a, b, all(signs))
            case "Equal" if (signs[0] and _is_negative(b)) or (signs[1] and _is_negative(a)):
                return False
            case "Min" | "Max" if any(isinstance(item, float) and math.isnan(item) for item in row):
                return math.nan
            case "Min" | "Max" if len(row) == 1:
                return a
            case "int" | "float" | "bool" if (cast := self._cast(a)) is not None:
                return cast
            case "Neg":
                return e.let_host(-a, "n")
            case "Sqrt":
                return e.target.call("math.sqrt", a)
        if op in _SIGNS or op in _TESTS:
            expr: Expr = Binary((_SIGNS | _TESTS)[op], a, b)
        elif op in _CALLS:
            expr = e.target.call(_CALLS[op], *row)
        else:
            return None
        sure = op == "Abs" or (all(signs) if op in _KEEP_SIGN else op in ("Mod", "Where") and all(signs[1:]))
        return e.let_host(expr, "flag" if op in _TESTS or op in _LOGIC else "n", nonnegative=sure)

    def _quotient(self, a: Any, b: Any, is_nonnegative: bool) -> Expr | None:
        e = self._e
        if e.dtype(e.node.outputs[0]) in FLOATS:
            is_certain = not isinstance(b, Expr) and b != 0
            return e.let_host(Binary("/", a, b) if is_certain else ops.float_divide(a, b), "n")
        if _is(b, 0) or _is(b, 1):
            return None if _is(b, 0) else a
        if is_nonnegative:
            return e.let_host(Binary("//", a, b), "n", nonnegative=True)
        return e.let_host(ops.trunc_divide(a, b), "n")

    def _cast(self, item: Expr) -> Expr | None:
        """A number whose cast is written otherwise than as a call, most often not at all."""
        x, y = self._e.node.inputs[0], self._e.node.outputs[0]
        assert x is not None
        if x.dtype == ir.DataType.DOUBLE and y.dtype == ir.DataType.FLOAT:
            return self._e.let_host(ops.float32(item), "scale")
        is_whole = {x.dtype, y.dtype} <= INTEGERS - {ir.DataType.BOOL}
        return item if x.dtype == y.dtype or is_whole or {x.dtype, y.dtype} <= FLOATS else None

    def _of_unknown_rank(self, node: ir.Node) -> Items | None:
        """Single dimensions, and how many there are, of a tensor of unknown rank: `x.shape[1]`, `x.ndim`."""
        e = self._e
        if node.op_type not in ("Gather", "Shape", "Size") or node.inputs[0] is None:
            return None
        shape = node.inputs[0].producer()
        if shape is None or shape.op_type != "Shape" or shape.domain or e.host_of(node.inputs[0]) is not None:
            return None
        x = e.arg(shape.inputs[0])
        if x is None or shape.attributes.get_int("start", 0) != 0 or "end" in shape.attributes:
            return None
        if node.op_type != "Gather":
            rank = e.let_host(e.target.rank(x), "rank", nonnegative=True)
            return array([rank], () if node.op_type == "Size" else (1,))
        indices = e.host(e.arg(node.inputs[1]))
        if indices is None or any(isinstance(i, Expr) for i in indices.flat):
            return None
        return array([e.dim(x, int(i)) for i in indices.flat], indices.shape)


def _is(item: Any, number: int) -> bool:
    return not isinstance(item, Expr) and item == number


def _is_negative(item: Any) -> bool:
    return not isinstance(item, Expr) and item < 0
