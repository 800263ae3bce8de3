"""Numbers that follow from shapes and constants: so that a Reshape to (batch, -1, 64) has a known last dimension.

An element is an int, the name of a dimension, or None where nothing is known of it.
"""

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Items = npt.NDArray[np.object_]
Dim = int | str | None

LIMIT = 64
"""The most elements that are followed."""

_INTEGERS = {ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL}
_Rule = Callable[..., "Items | list[Items] | None"]
_RULES: dict[str, _Rule] = {}


def dims_of(value: ir.Value) -> list[Dim] | None:
    """Each dimension as a number, a name, or None; None where not even the rank is known."""
    if value.shape is None:
        return None
    return [d if isinstance(d, int) else d.value for d in value.shape]


class Known:
    """The elements of small integer values, as far as they are known."""

    def __init__(self) -> None:
        self._items: dict[ir.Value, Items] = {}

    def of(self, value: ir.Value | None) -> Items | None:
        if value is None or value.dtype not in _INTEGERS:
            return None
        found = self._items.get(value)
        if found is None:
            tensor = ir.convenience.get_const_tensor(value)
            if tensor is None or tensor.size > LIMIT:
                return None
            found = self._items[value] = tensor.numpy().astype(object)
        return found

    def numbers(self, value: ir.Value) -> Items | None:
        """The elements where all of them are numbers."""
        items = self.of(value)
        return items if items is not None and all(isinstance(i, int) for i in items.flat) else None

    def node(self, node: ir.Node) -> None:
        """Take note of what `node`, whose outputs are typed, computes."""
        results: Sequence[Items] = ()
        if node.domain == "" and node.outputs and node.outputs[0].dtype in _INTEGERS:
            found = self._evaluate(node)
            results = found if isinstance(found, list) else [] if found is None else [found]
        for value, items in itertools.zip_longest(node.outputs, results):
            if items is not None and items.size <= LIMIT and _fits(items, value.dtype):
                self._items[value] = items
            else:
                self.forget(value)

    def forget(self, value: ir.Value) -> None:
        self._items.pop(value, None)

    def _evaluate(self, node: ir.Node) -> Items | list[Items] | None:
        if node.op_type in ("Shape", "Size"):
            return _shape(node)
        rule = _RULES.get(node.op_type)
        operands = [self.of(value) for value in node.inputs]
        if (
            rule is None
            or not operands
            or any(o is None and v is not None for o, v in zip(operands, node.inputs, strict=True))
        ):
            return None
        try:
            return rule(*operands, **{name: _as_input(a) for name, a in node.attributes.items()})
        except (ValueError, IndexError, TypeError, OverflowError):
            return None

    def shape(self, node: ir.Node) -> list[Dim] | None:
        """The shape of the first output of ops whose input says it, where only some of its numbers are known."""
        if node.op_type not in ("Reshape", "Expand", "ConstantOfShape"):
            return None
        wanted = self.of(node.inputs[-1])
        if wanted is None or wanted.ndim != 1:
            return None
        if node.op_type == "ConstantOfShape":
            return list(wanted)
        given = None if node.inputs[0] is None else dims_of(node.inputs[0])
        if given is None:
            return None
        return _expanded(given, wanted) if node.op_type == "Expand" else _reshaped(given, wanted, node)


def _fits(items: Items, of: ir.DataType | None) -> bool:
    """Whether the numbers are those of a tensor, which wrap around where they are too large."""
    limit = 2**31 if of == ir.DataType.INT32 else 2**63
    return all(not isinstance(n, int) or -limit <= n < limit for n in items.flat)


def _expanded(given: list[Dim], wanted: Items) -> list[Dim]:
    pairs = itertools.zip_longest(reversed(given), reversed(list(wanted)), fillvalue=1)
    return [_broadcast(a, b) for a, b in pairs][::-1]


def _broadcast(a: Dim, b: Dim) -> Dim:
    if a == 1 or a == b:
        return b
    if b == 1:
        return a
    return next((d for d in (a, b) if isinstance(d, int) and d > 1), None)


def _reshaped(given: list[Dim], wanted: Items, node: ir.Node) -> list[Dim]:
    if node.attributes.get_int("allowzero", 0):
        kept: list[Dim] = list(wanted)
    else:
        kept = [given[i] if n == 0 and i < len(given) else n for i, n in enumerate(wanted)]
    return [_remaining(given, kept) if n == -1 else n for n in kept]


def _remaining(given: list[Dim], kept: list[Dim]) -> Dim:
    """What -1 stands for: names on both sides cancel, as long as none of them can be zero times something else."""
    left = list(given)
    divisor = 1
    for dim in kept:
        if isinstance(dim, str):
            if dim not in left:
                return None
            left.remove(dim)
        elif dim is None:
            return None
        elif dim != -1:
            divisor *= dim
    numbers = [d for d in left if isinstance(d, int)]
    if len(numbers) < len(left):
        return left[0] if len(left) == 1 and divisor == 1 else None
    product = math.prod(numbers)
    return product // divisor if divisor and product % divisor == 0 else None


def _as_input(attribute: ir.Attr) -> Any:
    """What old opsets have as an attribute and newer ones as an input is the same to the rules."""
    if attribute.name in ("axes", "starts", "ends", "split") and attribute.type == ir.AttributeType.INTS:
        items = np.empty(len(attribute.value), dtype=object)
        items[:] = list(attribute.value)
        return items
    return attribute.value


def _shape(node: ir.Node) -> Items | None:
    dims = None if node.inputs[0] is None else dims_of(node.inputs[0])
    if dims is None:
        return None
    if node.op_type == "Size":
        sizes = [d for d in dims if isinstance(d, int)]
        return _array([math.prod(sizes)], ()) if len(sizes) == len(dims) else None
    return _array(dims[node.attributes.get_int("start", 0) : node.attributes.get_int("end", len(dims))])


def _array(items: Sequence[Any], shape: tuple[int, ...] | None = None) -> Items:
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out if shape is None else out.reshape(shape)


def _rule(*ops: str) -> Callable[[_Rule], _Rule]:
    def file(rule: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return file


def _broadcast_arrays(*operands: Items) -> list[Items]:
    """As numpy does it; of many operands the result could be of any size."""
    if math.prod(np.broadcast_shapes(*(operand.shape for operand in operands))) > LIMIT:
        raise ValueError("too many elements")
    return list(np.broadcast_arrays(*operands))


def _each(fn: Callable[..., Any], *operands: Items) -> Items:
    """`fn` of the elements where all are numbers, None elsewhere."""
    arrays = _broadcast_arrays(*operands)
    rows = zip(*(a.reshape(-1).tolist() for a in arrays), strict=True)
    items = [fn(*row) if all(isinstance(v, int) for v in row) else None for row in rows]
    return _array(items, arrays[0].shape)


def _divide(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _divide,
    "Neg": operator.neg,
    "Abs": abs,
    "Equal": operator.eq,
    "Less": operator.lt,
    "Greater": operator.gt,
    "LessOrEqual": operator.le,
    "GreaterOrEqual": operator.ge,
    "And": lambda a, b: bool(a and b),
    "Or": lambda a, b: bool(a or b),
    "Not": operator.not_,
    "Max": lambda *row: max(row),
    "Min": lambda *row: min(row),
}
for _name, _fn in _ELEMENTWISE.items():
    _RULES[_name] = lambda *operands, _fn=_fn, **_: _each(_fn, *operands)


@_rule("Identity")
def _identity(x: Items) -> Items:
    return x


@_rule("Cast")
def _cast(x: Items, *, to: int, **_: Any) -> Items | None:
    if ir.DataType(to) not in _INTEGERS:
        return None
    return (
        _each(bool, x)
        if to == ir.DataType.BOOL
        else _array([int(i) if isinstance(i, int) else i for i in x.flat], x.shape)
    )


@_rule("Where")
def _where(test: Items, yes: Items, no: Items) -> Items:
    arrays = _broadcast_arrays(test, yes, no)
    rows = zip(*(a.reshape(-1).tolist() for a in arrays), strict=True)
    items = [(a if t else b) if isinstance(t, int) else (a if a == b else None) for t, a, b in rows]
    return _array(items, arrays[0].shape)


@_rule("Gather")
def _gather(x: Items, indices: Items, *, axis: int = 0) -> Items:
    return np.asarray(np.take(x, indices.astype(np.int64), axis=axis), dtype=object)


@_rule("Slice")
def _slice(x: Items, starts: Items, ends: Items, axes: Items | None = None, steps: Items | None = None) -> Items:
    index = [slice(None)] * x.ndim
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        axis, step = i if axes is None else axes[i], 1 if steps is None else steps[i]
        index[axis] = slice(max(start, -x.shape[axis]) if step < 0 else start, end, step)
    return x[tuple(index)]


@_rule("Concat")
def _concat(*parts: Items, axis: int) -> Items:
    return np.concatenate(parts, axis=axis)


@_rule("Unsqueeze")
def _unsqueeze(x: Items, axes: Items) -> Items:
    return np.expand_dims(x, tuple(axes.reshape(-1).tolist()))


@_rule("Squeeze")
def _squeeze(x: Items, axes: Items | None = None) -> Items:
    return np.squeeze(x, None if axes is None else tuple(axes.reshape(-1).tolist()))


@_rule("Reshape")
def _reshape(x: Items, shape: Items, *, allowzero: int = 0) -> Items | None:
    if 0 in shape:
        return None
    return x.reshape(shape.tolist())


@_rule("Split")
def _split(x: Items, sizes: Items | None = None, *, axis: int = 0, **_: Any) -> list[Items] | None:
    if sizes is None:
        return None
    return np.split(x, list(itertools.accumulate(sizes.tolist()))[:-1], axis=axis)


@_rule("ConstantOfShape")
def _fill(shape: Items, *, value: ir.TensorProtocol | None = None) -> Items | None:
    if value is None or math.prod(shape.tolist()) > LIMIT:
        return None
    return _array([value.numpy().reshape(-1)[0].item()] * math.prod(shape.tolist()), tuple(shape.tolist()))


@_rule("Range")
def _range(start: Items, limit: Items, delta: Items, **_: Any) -> Items | None:
    numbers = range(start.item(), limit.item(), delta.item())
    return _array(list(numbers)) if len(numbers) <= LIMIT else None


@_rule("ReduceProd")
def _product(x: Items, axes: Items | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Items | None:
    nothing = noop_with_empty_axes and (axes is None or axes.size == 0)
    if x.ndim != 1 or nothing or not all(isinstance(i, int) for i in x):
        return None
    return _array([math.prod(x.tolist())], (1,) if keepdims else ())
