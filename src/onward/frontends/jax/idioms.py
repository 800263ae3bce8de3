"""What JAX writes as arithmetic and ONNX has a name for: found while equations are written, by the nodes before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.frontends.jax.values import Value
from onward.frontends.jax.writer import Writer
from onward.graph.build import Tensor
from onward.graph.replace import made_by

FILE = "jax/_src/nn/functions.py"
"""Where the functions of `jax.nn` are."""


def _softplus(op: Writer, x: Tensor) -> Tensor:
    return op.Softplus(x)


def _elu(op: Writer, x: Tensor, alpha: Tensor | None = None) -> Tensor | None:
    number = 1.0 if alpha is None else scalar(op, alpha)
    return None if number is None else op.Elu(x, alpha=number)


def _celu(op: Writer, x: Tensor, alpha: Tensor | None = None) -> Tensor | None:
    number = 1.0 if alpha is None else scalar(op, alpha)
    return None if number is None else op.Celu(x, alpha=number)


def _leaky_relu(op: Writer, x: Tensor, slope: Tensor | None = None) -> Tensor | None:
    number = 0.01 if slope is None else scalar(op, slope)
    return None if number is None else op.LeakyRelu(x, alpha=number)


NAMED: dict[str, tuple[Callable[..., Tensor | None], set[str]]] = {
    "softplus": (_softplus, {"max", "sub", "ne", "add", "abs", "neg", "exp", "log1p", "select_n"}),
    "elu": (_elu, {"gt", "select_n", "expm1", "mul"}),
    "celu": (_celu, {"max", "min", "div", "expm1", "mul", "add"}),
    "leaky_relu": (_leaky_relu, {"ge", "mul", "select_n"}),
}
"""Functions of `jax.nn` that survive as calls with a name, on float32, and what they compute with.

A derivative of a function has its name too, and computes with something else.
"""
AROUND = {"jit", "pjit", "custom_jvp_call", "convert_element_type", "broadcast_in_dim"}
"""What is in functions and does not compute."""


def named(op: Writer, name: str, jaxpr: Any, inputs: Sequence[Value]) -> list[Value] | None:
    """A call of a function of JAX's own as one node; None where there is none, or the user's function has the name."""
    if name not in NAMED or not 1 <= len(inputs) <= 2 or not all(isinstance(value, Tensor) for value in inputs):
        return None
    function, expected = NAMED[name]
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    if FILE not in str(getattr(info, "func_src_info", "")).replace("\\", "/"):
        return None
    first, results = jaxpr.in_avals[0], jaxpr.out_avals
    if first.dtype != np.float32 or len(results) != 1 or results[0].shape != first.shape or not first.shape:
        return None
    if set(primitives(jaxpr.jaxpr)) - AROUND != expected:
        return None
    found = function(op, *inputs)
    return None if found is None else [found]


def primitives(jaxpr: Any) -> Iterator[str]:
    """Of a jaxpr, and of the functions that it calls."""
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if inner is not None:
            yield from primitives(getattr(inner, "jaxpr", inner))


def scalar(op: Writer, tensor: Tensor | ir.Value | None) -> float | None:
    """The one number of a constant."""
    if tensor is None:
        return None
    array = op.known(tensor if isinstance(tensor, Tensor) else op.tensor(tensor))
    return None if array is None or array.size != 1 else float(array.reshape(()).astype(np.float64))


def _through(value: ir.Value | None, *op_types: str) -> ir.Value | None:
    """What a value is made of by nodes that only move its elements."""
    while (node := made_by(value, *op_types)) is not None:
        value = node.inputs[0]
    return value


def _is_extreme(op: Writer, value: ir.Value | None) -> bool:
    """Whether the numbers are largest ones of something: what is subtracted so that no power is too large."""
    while value is not None:
        value = _through(value, "Unsqueeze", "Reshape", "Transpose", "Squeeze", "Expand")
        if value in op.extremes:
            return True
        choice = made_by(value, "Where")  # a largest number that is not finite gives way to zero
        if choice is None:
            return made_by(value, "ReduceMax") is not None
        value = choice.inputs[1]
    return False


def _shifted_sum(op: Writer, total: Tensor, power: ir.Value) -> tuple[ir.Value, int] | None:
    """Where `total` are sums of `power`, exp(x - m) with m the same along the axis: x, and the axis."""
    exp = made_by(power, "Exp")
    shift = made_by(exp.inputs[0], "Sub") if exp is not None else None
    node = made_by(_through(total.value, "Unsqueeze", "Reshape"), "ReduceSum")
    if shift is None or node is None or node.inputs[0] is not power or shift.inputs[0] is None:
        return None
    axes = op.known(op.tensor(node.inputs[1])) if len(node.inputs) > 1 and node.inputs[1] is not None else None
    x, m = shift.inputs[0], shift.inputs[1]
    rank = None if x.shape is None else len(x.shape)
    if axes is None or axes.size != 1 or rank is None or m is None or not _is_extreme(op, m):
        return None
    axis = int(axes.reshape(())) % rank
    return (x, axis) if _is_one(op, m, axis - rank) and _is_one(op, total.value, axis - rank) else None


def _is_one(op: Writer, value: ir.Value, axis: int) -> bool:
    """Whether a value is the same along an axis, counted from the end."""
    dims = op.tensor(value).dims or []
    return -axis > len(dims) or dims[axis] == 1


def softmax(op: Writer, a: Tensor, b: Tensor) -> Tensor | None:
    """`exp(x - m) / sum(exp(x - m))`"""
    found = _shifted_sum(op, b, a.value)
    return None if found is None else op.Softmax(op.tensor(found[0]), axis=found[1])


def log_softmax(op: Writer, a: Tensor, b: Tensor) -> Tensor | None:
    """`(x - m) - log(sum(exp(x - m)))`"""
    inner = _through(b.value, "Unsqueeze", "Reshape")
    log = made_by(inner, "Log")
    if log is None or log.inputs[0] is None or made_by(a.value, "Sub") is None:
        return None
    total = made_by(_through(log.inputs[0], "Unsqueeze", "Reshape"), "ReduceSum")
    power = None if total is None else total.inputs[0]
    exp = made_by(power, "Exp")
    if exp is None or power is None or exp.inputs[0] is not a.value:
        return None
    is_wide = inner is b.value
    found = _shifted_sum(op, op.tensor(log.inputs[0]) if is_wide else b, power)
    if found is None and not is_wide:
        assert total is not None
        found = _shifted_sum(op, op.tensor(total.outputs[0]), power)
    return None if found is None else op.LogSoftmax(op.tensor(found[0]), axis=found[1])


def mean(op: Writer, total: Tensor, count: Tensor) -> Tensor | None:
    """Where a sum is divided by how many numbers were added."""
    node, number = made_by(total.value, "ReduceSum"), scalar(op, count)
    axes = op.axes_of(node)
    if node is None or axes is None or number is None or node.inputs[0] is None or count.rank:
        return None
    x = op.tensor(node.inputs[0])
    sizes = [dim for axis in axes if isinstance(dim := (x.dims or [])[axis], int)]
    if not axes or len(sizes) != len(axes) or number != math.prod(sizes) or not x.dtype.is_floating_point():
        return None
    return op.reduced("ReduceMean", x, axes, keepdims=node.attributes.get_int("keepdims", 1) != 0)


def average(op: Writer, total: Tensor, count: Tensor) -> Tensor | None:
    """Where the sum of a window, which is a multiple of its mean, is divided by how many numbers were added."""
    node, number = made_by(total.value, "Mul"), scalar(op, count)
    if node is None or number is None or count.rank:
        return None
    mean = _factor(op, node, number)
    if mean is None or made_by(_through(mean, "Transpose", "Reshape", "Squeeze"), "AveragePool") is None:
        return None
    return op.tensor(mean)


def kept(op: Writer, x: Tensor, axes: Sequence[int]) -> Tensor | None:
    """Where a reduction takes axes away that come back at once: the reduction that keeps them."""
    node = x.value.producer()
    if node is None or not node.op_type.startswith("Reduce") or node.attributes.get_int("keepdims", 1) != 0:
        return None
    if node.inputs[0] is None or op.axes_of(node) != list(axes):
        return None
    return op.reduced(node.op_type, op.tensor(node.inputs[0]), list(axes), keepdims=True)


def clip(op: Writer, a: Tensor, b: Tensor) -> Tensor | None:
    """The lower of a number and the higher of another number and something."""
    for x, bound in ((a, b), (b, a)):
        high = scalar(op, bound)
        if high is None or bound.rank != 0 or x.dtype != ir.DataType.FLOAT:
            continue
        relu, raised = made_by(x.value, "Relu"), made_by(x.value, "Max")
        if relu is not None and relu.inputs[0] is not None and high >= 0:
            return op.Clip(op.tensor(relu.inputs[0]), op.like(0, x), bound)
        for i in (0, 1) if raised is not None and len(raised.inputs) == 2 else ():
            assert raised is not None
            limit, inner = raised.inputs[i], raised.inputs[1 - i]
            low = scalar(op, limit)
            if low is not None and low <= high and limit is not None and inner is not None and not limit.shape:
                return op.Clip(op.tensor(inner), op.tensor(limit), bound)
    return None


def gelu(op: Writer, a: Tensor, b: Tensor) -> Tensor | None:
    """`0.5 x · erfc(-x / √2)`"""
    for half, tail in ((a, b), (b, a)):
        made, halved = tail.value.producer(), made_by(half.value, "Mul")
        if made is None or made.op_type != "Erfc" or halved is None or half.dtype != ir.DataType.FLOAT:
            continue
        scaled = made_by(made.inputs[0], "Mul")
        if scaled is None:
            continue
        root, negative = _factor(op, scaled, math.sqrt(0.5)), None
        if root is not None:
            negative = made_by(root, "Neg")
        x = _factor(op, halved, 0.5)
        if negative is None or x is None or negative.inputs[0] is not x:
            continue
        return op.Gelu(op.tensor(x))
    return None


def _factor(op: Writer, product: ir.Node, number: float) -> ir.Value | None:
    """What a product with a number is of."""
    for i in (0, 1):
        found = scalar(op, product.inputs[i])
        if found is not None and math.isclose(found, number, rel_tol=1e-6):
            return product.inputs[1 - i]
    return None


def biased(op: Writer, a: Tensor, b: Tensor) -> Tensor | None:
    """A convolution to which a number for each feature is added."""
    for sums, bias in ((a, b), (b, a)):
        turned = made_by(sums.value, "Transpose")
        node = made_by(sums.value if turned is None else turned.inputs[0], "Conv", "ConvTranspose")
        array = op.known(bias)
        if node is None or len(node.inputs) != 2 or array is None or array.size == 1:
            continue
        x, weight = (op.tensor(value) for value in node.inputs if value is not None)
        rank = x.rank or 0
        order = list(range(rank)) if turned is None else list(turned.attributes["perm"].as_ints())
        sizes = [*[1] * (rank - array.ndim), *array.shape]
        features = order.index(1)
        if len(sizes) != rank or array.size != sizes[features] or (sums.dims or [])[features] != array.size:
            continue
        vector = bias if array.ndim == 1 else op.stored(bias, array.reshape(-1))
        options = {key: attribute.value for key, attribute in node.attributes.items()}
        return op.transpose(op.many(node.op_type, 1, x, weight, vector, **options)[0], order)
    return None


def turned_product(op: Writer, x: Tensor, order: Sequence[int]) -> Tensor | None:
    """A product whose last two axes change places is that of its sides, each turned, in the other order."""
    node = made_by(x.value, "MatMul")
    rank = len(order)
    if node is None or rank < 2 or list(order).index(rank - 1) > list(order).index(rank - 2):
        return None
    sides = [op.tensor(value) for value in node.inputs if value is not None]
    if any(side.rank is None or side.rank < 2 for side in sides):
        return None
    if all(_turns_well(op, side) == 0 for side in sides):
        return None
    left, right = (op.swapped(side) for side in reversed(sides))
    swap = [*range(rank - 2), rank - 1, rank - 2]
    product = op.MatMul(left, right)
    dims = x.dims or []
    product.value.shape = ir.Shape([dims[axis] for axis in swap])
    return op.transpose(product, [swap[axis] for axis in order])


def _turns_well(op: Writer, side: Tensor) -> int:
    """Whether to swap the last two axes of a side costs nothing: it is constant, or a Transpose already."""
    return int(op.known(side) is not None or made_by(side.value, "Transpose") is not None)
