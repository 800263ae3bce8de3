"""Normalisations that libraries of JAX write as arithmetic: one node each, whose weights keep their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.replace import constant, graphs, is_op, made_by, new_node, remove_unread, shape_of, take_over

LAYER_NORM_SINCE = 17
GROUP_NORM_SINCE = 21
"""With a scale for each channel."""


def fuse(model: ir.Model) -> int:
    """Rewrite in place `(x - mean) / √(variance + ε) · scale + bias`, in any order of factors; returns how many.

    With mean and variance of the last axes of `x` it is a LayerNormalization, of all axes between the first and the
    last an InstanceNormalization, of groups of channels a GroupNormalization, with given ones a BatchNormalization.
    """
    names, count = Names(model), 0
    opset = model.opset_imports[""]
    for graph in graphs(model):
        for node in reversed(list(graph)):
            found = _matched(node) if is_op(node, "Add", "Mul", "Div") and _is_read(node.outputs[0]) else None
            if found is not None and found.x.dtype == ir.DataType.FLOAT:
                count += _write(node, found, _Writer(model, names), opset)
                remove_unread([node])  # what it was made of is no norm of its own
    return count


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


@dataclass(frozen=True)
class _Writer:
    model: ir.Model
    names: Names

    def filled(self, sizes: list[int], number: float) -> ir.Value:
        """A constant of one number."""
        return self.held(np.full(sizes, number, np.float32))

    def held(self, array: npt.NDArray[Any]) -> ir.Value:
        """A constant."""
        name = self.names.value("constant")
        tensor = ir.tensor(array, name=name)
        value = ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
        self.model.graph.register_initializer(value)
        return value


@dataclass
class _Norm:
    x: ir.Value
    mean: ir.Value
    variance: ir.Value
    epsilon: float
    scales: list[ir.Value] = field(default_factory=list)
    bias: ir.Value | None = None


def _matched(node: ir.Node) -> _Norm | None:
    if node.op_type != "Add":
        return _normalised(node.outputs[0])
    for product, bias in (node.inputs, node.inputs[::-1]):
        if product is not None and constant(bias) is not None:
            found = _normalised(product)
            if found is not None:
                found.bias = bias
                return found
    return None


def _normalised(value: ir.Value) -> _Norm | None:
    """A product of something without its mean, of what divides it, and of at most one scale."""
    factors, roots = _factors(value)
    centred = [node for factor in factors if (node := made_by(factor, "Sub")) is not None]
    scales = [factor for factor in factors if constant(factor) is not None]
    if len(roots) != 1 or len(centred) != 1 or len(scales) > 1 or len(factors) != 1 + len(scales):
        return None
    added = made_by(roots[0], "Add")
    x, mean = centred[0].inputs
    if added is None or x is None or mean is None:
        return None
    for variance, small in (added.inputs, added.inputs[::-1]):
        number = constant(small)
        if number is not None and number.size == 1 and variance is not None and constant(variance) is not number:
            epsilon = float(number.numpy().reshape(()))
            if epsilon > 0:
                return _Norm(x, mean, variance, epsilon, scales)
    return None


def _factors(value: ir.Value | None, depth: int = 4) -> tuple[list[ir.Value], list[ir.Value | None]]:
    """What a value is a product of, and the numbers whose roots it is divided by."""
    if value is None:
        return [], []
    product, quotient, inverse = made_by(value, "Mul"), made_by(value, "Div"), made_by(value, "Reciprocal")
    if depth and product is not None:
        (a, of_a), (b, of_b) = (_factors(side, depth - 1) for side in product.inputs)
        return [*a, *b], [*of_a, *of_b]
    root = made_by(quotient.inputs[1], "Sqrt") if quotient is not None else None
    if depth and root is not None and quotient is not None:
        factors, roots = _factors(quotient.inputs[0], depth - 1)
        return factors, [*roots, root.inputs[0]]
    root = made_by(inverse.inputs[0], "Sqrt") if inverse is not None else None
    return ([], [root.inputs[0]]) if root is not None else ([value], [])


def _bare(value: ir.Value | None) -> ir.Value | None:
    """Without axes of size one that were added to it."""
    while (node := made_by(value, "Unsqueeze", "Reshape")) is not None:
        if [d for d in shape_of(value) or (0,) if d != 1] != [d for d in shape_of(node.inputs[0]) or () if d != 1]:
            break
        value = node.inputs[0]
    return value


def _mean(value: ir.Value | None) -> tuple[ir.Value, list[int]] | None:
    """What a value is the mean of, and along which axes, counted from the end."""
    node = made_by(_bare(value), "ReduceMean")
    x = None if node is None else node.inputs[0]
    axes = constant(node.inputs[1]) if node is not None and len(node.inputs) > 1 else None
    if x is None or axes is None or x.shape is None:
        return None
    return x, sorted(int(a) % len(x.shape) - len(x.shape) for a in axes.numpy())


def _squared(value: ir.Value | None) -> ir.Value | None:
    node = made_by(value, "Mul")
    return node.inputs[0] if node is not None and node.inputs[0] is node.inputs[1] else None


def _is_variance(norm: _Norm, axes: list[int]) -> bool:
    """Whether it is the mean of the squares without the mean, or the mean of all squares less that of the mean."""
    value = _bare(norm.variance)
    while (node := made_by(value, "Relu")) is not None:
        value = _bare(node.inputs[0])
    whole = _mean(value)
    if whole is not None and whole[1] == axes:
        centred = made_by(_squared(whole[0]), "Sub")
        return centred is not None and centred.inputs[0] is norm.x and _mean(centred.inputs[1]) == (norm.x, axes)
    difference = made_by(value, "Sub")
    if difference is None:
        return False
    squares = _mean(difference.inputs[0])
    return (
        squares is not None
        and squares[1] == axes
        and _squared(squares[0]) is norm.x
        and _mean(_squared(difference.inputs[1])) == (norm.x, axes)
    )


def _apart(norm: _Norm) -> _Norm | None:
    """Where mean and variance are those of groups, repeated for each channel: the same of the channels in groups."""
    mean, variance = _unrepeated(norm.mean), _unrepeated(norm.variance)
    found = None if mean is None else _mean(mean)
    split = made_by(found[0], "Reshape") if found is not None else None
    if found is None or mean is None or variance is None or split is None or split.inputs[0] is not norm.x:
        return None
    return _Norm(found[0], mean, variance, norm.epsilon)


def _unrepeated(value: ir.Value | None) -> ir.Value | None:
    """Numbers of groups, of which a value has one for each channel."""
    joined = made_by(_bare(value), "Reshape")
    repeated = made_by(joined.inputs[0], "Expand") if joined is not None else None
    if joined is None or repeated is None:
        return None
    before, after, last = (shape_of(v) for v in (repeated.inputs[0], repeated.outputs[0], joined.outputs[0]))
    if (
        not before
        or not after
        or not last
        or len(before) != len(after)
        or before[-1] != 1
        or before[-2:-1] != after[-2:-1]
    ):
        return None
    groups, each, channels = after[-2], after[-1], last[-1]
    is_one = groups is not None and each is not None and groups * each == channels
    return repeated.inputs[0] if is_one and len(last) == len(after) - 1 else None


def _write(node: ir.Node, norm: _Norm, writer: _Writer, opset: int) -> bool:
    average = _mean(norm.mean)
    groups = _apart(norm)
    if groups is not None:
        return opset >= GROUP_NORM_SINCE and _write_groups(node, norm, groups, writer)
    if average is not None and average[0] is norm.x:
        if average[1] == list(range(1 - len(norm.x.shape or ()), -1)):
            return _is_variance(norm, average[1]) and _write_channels(node, "InstanceNormalization", norm, writer)
        return opset >= LAYER_NORM_SINCE and _write_layer(node, norm, average[1], writer)
    return _write_batch(node, norm, writer)


def _write_groups(node: ir.Node, norm: _Norm, groups: _Norm, writer: _Writer) -> bool:
    """Groups are along the last but one axis of what stands in groups; the first is that of examples."""
    apart, whole = shape_of(groups.x), shape_of(norm.x)
    if apart is None or whole is None or len(apart) != len(whole) + 1 or apart[:-2] != whole[:-1]:
        return False
    axes = [*range(1 - len(apart), -2), -1]
    count, each = apart[-2:]
    if _mean(groups.mean) != (groups.x, axes) or count is None or each is None or count * each != whole[-1]:
        return False
    if not _is_variance(groups, axes):
        return False
    if len(whole) == 2:
        return _write_rows(node, norm, groups, writer, each)
    return _write_channels(node, "GroupNormalization", norm, writer, num_groups=count)


def _write_rows(node: ir.Node, norm: _Norm, groups: _Norm, writer: _Writer, each: int) -> bool:
    """Groups of nothing but channels: each is a row of its own, for which there is a kernel."""
    shape, affine = norm.x.shape, [("Mul", value) for value in norm.scales] + [("Add", norm.bias)]
    if shape is None or any(value is not None and shape_of(value) != (shape[-1],) for _, value in affine):
        return False
    said = {"axis": -1, "epsilon": norm.epsilon}
    sizes = writer.held(np.array([0, shape[-1]], np.int64))
    made = [new_node("LayerNormalization", [groups.x, writer.filled([each], 1)], said, node, node)]
    made.append(new_node("Reshape", [made[0].outputs[0], sizes], {}, node, node))
    for op_type, value in affine:
        if value is not None:
            made.append(new_node(op_type, [made[-1].outputs[0], value], {}, node, node))
    for one in made:
        like = groups.x if one is made[0] else norm.x
        one.outputs[0].type, one.outputs[0].shape = like.type, like.shape
        one.name = writer.names.node(f"{node.name}/{one.op_type}")
    take_over(node.outputs[0], made[-1].outputs[0])
    return True


def _write_layer(node: ir.Node, norm: _Norm, axes: list[int], writer: _Writer) -> bool:
    shape = shape_of(norm.x)
    if shape is None or axes != list(range(-len(axes), 0)) or not _is_variance(norm, axes):
        return False
    last = shape[-len(axes) :]
    scale = norm.scales[0] if norm.scales else None
    if any(size is None for size in last) or any(v is not None and shape_of(v) != last for v in (scale, norm.bias)):
        return False
    sizes = [size for size in last if size is not None]
    inputs = [norm.x, scale if scale is not None else writer.filled(sizes, 1), norm.bias]
    attributes = {"axis": -len(axes), "epsilon": norm.epsilon}
    new = new_node("LayerNormalization", inputs if norm.bias is not None else inputs[:2], attributes, node, node)
    take_over(node.outputs[0], new.outputs[0])
    return True


def _write_batch(node: ir.Node, norm: _Norm, writer: _Writer) -> bool:
    given = [norm.mean, norm.variance]
    channels = (shape_of(norm.x) or (None,))[-1]
    if any(constant(value) is None or shape_of(value) != (channels,) for value in given):
        return False
    return _write_channels(node, "BatchNormalization", norm, writer, *given)


def _write_channels(
    node: ir.Node, op_type: str, norm: _Norm, writer: _Writer, *statistics: ir.Value, **attributes: int
) -> bool:
    """A node that wants the channels second where they are last: transposes are for the layout pass to remove."""
    shape = shape_of(norm.x)
    scale, bias = norm.scales[0] if norm.scales else None, norm.bias
    if shape is None or len(shape) < 3 or shape[-1] is None:
        return False
    channels, rank = shape[-1], len(shape)
    if any(value is not None and shape_of(value) != (channels,) for value in (scale, bias)):
        return False
    scale = scale if scale is not None else writer.filled([channels], 1)
    bias = bias if bias is not None else writer.filled([channels], 0)
    turn = new_node("Transpose", [norm.x], {"perm": [0, rank - 1, *range(1, rank - 1)]}, node, node)
    first = turn.outputs[0]
    first.type = norm.x.type
    first.shape = ir.Shape([(norm.x.shape or [])[axis] for axis in (0, rank - 1, *range(1, rank - 1))])
    said = {"epsilon": norm.epsilon, **attributes}
    inner = new_node(op_type, [first, scale, bias, *statistics], said, node, node).outputs[0]
    inner.type, inner.shape = first.type, first.shape
    back = new_node("Transpose", [inner], {"perm": [0, *range(2, rank), 1]}, node, node)
    for transpose in (turn, back):
        transpose.name = writer.names.node(f"{node.name}/Transpose")
    take_over(node.outputs[0], back.outputs[0])
    return True
