"""Host values: what is computed from shapes and constants alone is plain Python numbers in the generated code.

A host value is a numpy object array whose elements are Python numbers or expressions, so reshaping, slicing and
concatenating shapes costs nothing and `Shape → Gather → Concat → Reshape` prints as `x.reshape(x.shape[0], -1)`.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.expr import Binary, Expr, Helpers, Ref
from onward.registry import Registry

if TYPE_CHECKING:
    from onward.backends.emit.emitter import Emitter

LIMIT = 64
"""Larger arrays are tensors: nobody wants to read 1,000 numbers in source code."""

HostRule = Callable[..., "np.ndarray[Any, Any] | list[np.ndarray[Any, Any]] | None"]
host_rules: Registry[HostRule] = Registry("host rule")
host = host_rules.register

INTEGERS = {ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL}
ops = Helpers()


def array(items: Any, shape: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
    """An object array holding `items`, of the given shape or one-dimensional."""
    items = list(items)
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out if shape is None else out.reshape(shape)


def from_constant(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array(value.reshape(-1).tolist(), value.shape)


def in_range(items: np.ndarray[Any, Any], of: ir.DataType | None) -> bool:
    """Whether all known numbers fit an integer type: Python's do not wrap around as a tensor's do."""
    if of not in (ir.DataType.INT64, ir.DataType.INT32):
        return True
    limit = 2**63 if of == ir.DataType.INT64 else 2**31
    return all(isinstance(n, Expr) or -limit <= n < limit for n in items.reshape(-1))


def is_nonnegative(e: Emitter, item: Any) -> bool:
    return item >= 0 if not isinstance(item, Expr) else isinstance(item, Ref) and item._var in e.nonnegative


def _float32(e: Emitter, value: Any) -> Any:
    """Round to single precision, as a float32 tensor would."""
    return float(np.float32(value)) if not isinstance(value, Expr) else e.let_host(ops.float32(value), "scale")


def _each(e: Emitter, fn: Callable[..., Any], *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    try:
        broadcast = np.broadcast_arrays(*operands)
    except ValueError:
        return None
    if broadcast[0].size > LIMIT:
        return None
    items = [fn(*row) for row in zip(*(b.reshape(-1).tolist() for b in broadcast), strict=True)]
    return array(items, broadcast[0].shape)


def _arithmetic(symbol: str, fold: Callable[[Any, Any], Any], keeps_sign: bool) -> Callable[[Emitter, Any, Any], Any]:
    def apply(e: Emitter, a: Any, b: Any) -> Any:
        if not isinstance(a, Expr) and not isinstance(b, Expr):
            return fold(a, b)
        if symbol == "*" and (_is(a, 1) or _is(b, 1)):
            return b if _is(a, 1) else a
        if symbol in "+-" and _is(b, 0):
            return a
        if symbol == "+" and _is(a, 0):
            return b
        return e.let_host(
            Binary(symbol, a, b), "n", nonnegative=keeps_sign and is_nonnegative(e, a) and is_nonnegative(e, b)
        )

    return apply


def _is(item: Any, number: int) -> bool:
    return not isinstance(item, Expr) and item == number


def _truncating(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        with np.errstate(all="ignore"):
            return float(np.divide(a, b))
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _divide(e: Emitter, a: Any, b: Any, is_float: bool) -> Any:
    if not isinstance(b, Expr) and b == 0 and not is_float:
        return None
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return _truncating(a, b)
    if is_float:
        certain = not isinstance(b, Expr) and b != 0
        return e.let_host(Binary("/", a, b) if certain else ops.float_divide(a, b), "n")
    if _is(b, 1):
        return a
    if is_nonnegative(e, a) and is_nonnegative(e, b):
        return e.let_host(Binary("//", a, b), "n", nonnegative=True)
    return e.let_host(ops.trunc_divide(a, b), "n")


def _binary(name: str, symbol: str, fold: Callable[[Any, Any], Any], keeps_sign: bool) -> None:
    apply = _arithmetic(symbol, fold, keeps_sign)

    @host(name)
    def rule(e: Emitter, a: Any, b: Any, **_: Any) -> Any:
        if any(isinstance(n, int) and abs(n) >= 2**62 for n in (*a.flat, *b.flat)):
            return None  # may wrap around when the model runs
        out = _each(e, lambda x, y: apply(e, x, y), a, b)
        return _rounded(e, out)


def _rounded(e: Emitter, out: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any] | None:
    if out is None or any(item is None for item in out.reshape(-1)):
        return None
    return _each(e, lambda v: _float32(e, v), out) if e.host_dtype == ir.DataType.FLOAT else out


_binary("Add", "+", operator.add, True)
_binary("Sub", "-", operator.sub, False)
_binary("Mul", "*", operator.mul, True)


@host("Div")
def divide(e: Emitter, a: Any, b: Any, **_: Any) -> Any:
    is_float = e.host_dtype not in INTEGERS
    return _rounded(e, _each(e, lambda x, y: _divide(e, x, y, is_float), a, b))


@host("Mod")
def modulo(e: Emitter, a: Any, b: Any, *, fmod: int = 0, **_: Any) -> Any:
    if fmod or any(_is(y, 0) for y in b.reshape(-1)):
        return None
    return _each(
        e,
        lambda x, y: (
            x % y
            if not isinstance(x, Expr) and not isinstance(y, Expr)
            else e.let_host(Binary("%", x, y), "n", nonnegative=is_nonnegative(e, y))
        ),
        a,
        b,
    )


def _comparison(name: str, symbol: str, fold: Callable[[Any, Any], Any]) -> None:
    def compare(e: Emitter, x: Any, y: Any) -> Any:
        if not isinstance(x, Expr) and not isinstance(y, Expr):
            return fold(x, y)
        if symbol == "==" and any(
            is_nonnegative(e, n) and not isinstance(m, Expr) and m < 0 for n, m in ((x, y), (y, x))
        ):
            return False
        return e.let_host(e.target.call(symbol, x, y) if symbol in ("and", "or") else Binary(symbol, x, y), "flag")

    @host(name)
    def rule(e: Emitter, a: Any, b: Any, **_: Any) -> Any:
        return _each(e, lambda x, y: compare(e, x, y), a, b)


_comparison("Equal", "==", operator.eq)
_comparison("Less", "<", operator.lt)
_comparison("Greater", ">", operator.gt)
_comparison("LessOrEqual", "<=", operator.le)
_comparison("GreaterOrEqual", ">=", operator.ge)
_comparison("And", "and", lambda a, b: a and b)
_comparison("Or", "or", lambda a, b: a or b)


@host("Not")
def logical_not(e: Emitter, x: Any, **_: Any) -> Any:
    return _each(e, lambda v: e.let_host(e.target.call("not", v), "flag") if isinstance(v, Expr) else not v, x)


@host("Abs")
def absolute(e: Emitter, x: Any, **_: Any) -> Any:
    def size(v: Any) -> Any:
        return e.let_host(e.target.call("abs", v), "n", nonnegative=True) if isinstance(v, Expr) else abs(v)

    return _each(e, size, x)


@host("Neg")
def negative(e: Emitter, x: Any, **_: Any) -> Any:
    return _each(e, lambda v: e.let_host(-v, "n") if isinstance(v, Expr) else -v, x)


def _extreme(name: str, function: str, fold: Callable[..., Any]) -> None:
    def pick(e: Emitter, *row: Any) -> Any:
        if any(isinstance(v, float) and math.isnan(v) for v in row):
            return math.nan
        if len(row) == 1 or not any(isinstance(v, Expr) for v in row):
            return fold(row) if len(row) > 1 else row[0]
        return e.let_host(e.target.call(function, *row), "n", nonnegative=all(is_nonnegative(e, v) for v in row))

    @host(name)
    def rule(e: Emitter, *operands: Any, **_: Any) -> Any:
        return _each(e, lambda *row: pick(e, *row), *operands)

    @host(f"Reduce{name}")
    def reduction(e: Emitter, x: Any, axes: Any = None, *, keepdims: int = 1, **attributes: Any) -> Any:
        if not _reduces_all(e, x, axes, **attributes) or not x.size:
            return None
        return array([pick(e, *x.tolist())], (1,) if keepdims else ())


_extreme("Min", "min", min)
_extreme("Max", "max", max)


@host("Where")
def where(e: Emitter, test: Any, yes: Any, no: Any, **_: Any) -> Any:
    def pick(t: Any, a: Any, b: Any) -> Any:
        if not isinstance(t, Expr):
            return a if t else b
        both = is_nonnegative(e, a) and is_nonnegative(e, b)
        return e.let_host(e.target.call("if", t, a, b), "n", nonnegative=both)

    return _each(e, pick, test, yes, no)


@host("Sqrt")
def sqrt(e: Emitter, x: Any, **_: Any) -> Any:
    if any(not isinstance(v, Expr) and v < 0 for v in x.reshape(-1)):
        return None
    return _rounded(e, _each(e, lambda v: e.target.call("math.sqrt", v) if isinstance(v, Expr) else math.sqrt(v), x))


def _rounding(name: str, function: str, fold: Callable[[float], int]) -> None:
    @host(name)
    def rule(e: Emitter, x: Any, **_: Any) -> Any:
        if any(not isinstance(v, Expr) and not math.isfinite(v) for v in x.reshape(-1)):
            return None
        return _each(
            e,
            lambda v: (
                e.let_host(e.target.call(f"math.{function}", v), "n")
                if isinstance(v, Expr)
                else math.copysign(fold(v), v)
            ),
            x,
        )


_rounding("Floor", "floor", math.floor)
_rounding("Ceil", "ceil", math.ceil)


@host("Cast")
def cast(e: Emitter, x: Any, *, to: int, **_: Any) -> Any:
    source, target = e.host_dtype, ir.DataType(to)
    if source is None or target not in INTEGERS | {ir.DataType.FLOAT, ir.DataType.DOUBLE}:
        return None
    if source == target:
        return x
    if target in INTEGERS and target != ir.DataType.BOOL:
        if source in INTEGERS:
            if source == ir.DataType.INT64 and target == ir.DataType.INT32:
                fits = all(isinstance(v, Expr) or -(2**31) <= v < 2**31 for v in x.reshape(-1))
                return x if fits else None
            return x if source != ir.DataType.BOOL else _each(e, lambda v: _convert(e, "int", int, v), x)
        if any(not isinstance(v, Expr) and not math.isfinite(v) for v in x.reshape(-1)):
            return None
        return _each(e, lambda v: _convert(e, "int", int, v), x)
    if target == ir.DataType.BOOL:
        return _each(e, lambda v: _convert(e, "bool", bool, v), x)
    if source in INTEGERS:
        nearest = float if target == ir.DataType.DOUBLE else lambda n: float(np.float32(n))
        return _each(e, lambda v: _convert(e, "float", nearest, v), x)
    return x if target == ir.DataType.DOUBLE else _each(e, lambda v: _float32(e, v), x)


def _convert(e: Emitter, name: str, fold: Callable[[Any], Any], item: Any) -> Any:
    if not isinstance(item, Expr):
        return fold(item)
    return e.let_host(e.target.call(name, item), "n", nonnegative=is_nonnegative(e, item))


@host("Identity")
def identity(e: Emitter, x: Any, **_: Any) -> Any:
    return x


@host("Gather")
def gather(e: Emitter, x: Any, indices: Any, *, axis: int = 0, **_: Any) -> Any:
    if _varies(indices):
        return None
    try:
        taken = np.take(x, indices.astype(np.int64), axis=axis)
    except (IndexError, np.exceptions.AxisError):
        return None
    return taken if isinstance(taken, np.ndarray) else array([taken], ())


@host("Slice")
def slice_(e: Emitter, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None, **_: Any) -> Any:
    bounds = [starts, ends, *(a for a in (axes, steps) if a is not None)]
    if any(map(_varies, bounds)):
        return None
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[axis] = slice(max(start, -x.shape[axis]) if step < 0 else start, end, step)
    return x[tuple(index)]


@host("Concat")
def concat(e: Emitter, *parts: Any, axis: int, **_: Any) -> Any:
    if sum(p.size for p in parts) > LIMIT:
        return None
    return np.concatenate(parts, axis=axis)


@host("Unsqueeze")
def unsqueeze(e: Emitter, x: Any, axes: Any, **_: Any) -> Any:
    return None if _varies(axes) else np.expand_dims(x, tuple(axes.reshape(-1).tolist()))


@host("Squeeze")
def squeeze(e: Emitter, x: Any, axes: Any = None, **_: Any) -> Any:
    dims = [i for i, n in enumerate(x.shape) if n == 1] if axes is None else axes.reshape(-1).tolist()
    if any(isinstance(i, Expr) or x.shape[i] != 1 for i in dims):
        return None
    return np.squeeze(x, tuple(dims))


@host("Reshape")
def reshape(e: Emitter, x: Any, shape: Any, *, allowzero: int = 0, **_: Any) -> Any:
    if _varies(shape):
        return None
    wanted = [
        x.shape[i] if n == 0 and not allowzero and i < x.ndim else n for i, n in enumerate(shape.reshape(-1).tolist())
    ]
    try:
        return x.reshape(wanted)
    except ValueError:
        return None


@host("Expand")
def expand(e: Emitter, x: Any, shape: Any, **_: Any) -> Any:
    if _varies(shape):
        return None
    wanted = np.broadcast_shapes(x.shape, tuple(shape.tolist()))
    return np.broadcast_to(x, wanted).copy() if math.prod(wanted) <= LIMIT else None


@host("Tile")
def tile(e: Emitter, x: Any, repeats: Any, **_: Any) -> Any:
    if _varies(repeats) or x.size * math.prod(repeats.tolist()) > LIMIT:
        return None
    return np.tile(x, repeats.tolist())


@host("Transpose")
def transpose(e: Emitter, x: Any, *, perm: Any = None, **_: Any) -> Any:
    return np.transpose(x, perm)


@host("Split")
def split(e: Emitter, x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int | None = None, **_: Any) -> Any:
    if sizes is None and num_outputs:
        size = -(-x.shape[axis] // num_outputs)
        sizes = array([size] * (num_outputs - 1) + [x.shape[axis] - size * (num_outputs - 1)])
    if sizes is None or _varies(sizes) or sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0:
        return None
    return np.split(x, list(itertools.accumulate(sizes.tolist()))[:-1], axis=axis)


@host("ConstantOfShape")
def constant_of_shape(e: Emitter, shape: Any, *, value: Any = None, **_: Any) -> Any:
    dims = shape.reshape(-1).tolist()
    if any(isinstance(i, Expr) or i < 0 for i in dims) or math.prod(dims) > LIMIT:
        return None
    fill = 0.0 if value is None else value.numpy().reshape(-1)[0].item()
    return array([fill] * math.prod(dims), tuple(dims))


@host("Range")
def range_(e: Emitter, start: Any, limit: Any, delta: Any, **_: Any) -> Any:
    bounds = [v.reshape(-1)[0] for v in (start, limit, delta)]
    if any(isinstance(v, Expr | float) for v in bounds) or bounds[2] == 0 or len(range(*bounds)) > LIMIT:
        return None
    return array(range(*bounds))


def _varies(items: np.ndarray[Any, Any]) -> bool:
    """Whether any of the numbers is known only at run time."""
    return any(isinstance(i, Expr) for i in items.flat)


def _reduces_all(e: Emitter, x: Any, axes: Any, noop_with_empty_axes: int = 0, **_: Any) -> bool:
    """Whether all elements of a vector of integers become one."""
    is_all = axes is None or not axes.size
    return x.ndim == 1 and e.host_dtype in INTEGERS and not (is_all and noop_with_empty_axes)


def _reduction(name: str, combine: Callable[[Emitter, Any, Any], Any], start: int) -> None:
    @host(name)
    def rule(e: Emitter, x: Any, axes: Any = None, *, keepdims: int = 1, **attributes: Any) -> Any:
        if not _reduces_all(e, x, axes, **attributes):
            return None
        total: Any = start
        for item in x.tolist():
            total = combine(e, total, item)
        return array([total], (1,) if keepdims else ())


_reduction("ReduceProd", _arithmetic("*", operator.mul, True), 1)
_reduction("ReduceSum", _arithmetic("+", operator.add, True), 0)


def of_unknown_rank(e: Emitter, node: ir.Node) -> np.ndarray[Any, Any] | None:
    """Single dimensions, and how many there are, of a tensor whose rank is not known now: `x.shape[1]`, `x.ndim`."""
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
    if indices is None or _varies(indices):
        return None
    return array([e.dim(x, int(i)) for i in indices.flat], indices.shape)
