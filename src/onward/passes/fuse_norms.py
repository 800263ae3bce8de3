"""Normalisations that TensorFlow writes as arithmetic: one node each, whose weights keep their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onward.graph.replace import constant, graphs, made_by, new_node, only_user, shape_of, take_over

LAYER_NORM_SINCE = 17


def fuse_norms(model: ir.Model) -> int:
    """Rewrite in place `x * s + (offset - mean * s)`, `s = scale / sqrt(variance + epsilon)`; returns how many.

    With the mean and variance of `x` along its last axis it is a LayerNormalization, with given ones a
    BatchNormalization. The channels are the last axis where that node wants them second: the transposes around it are
    for the layout pass to remove.
    """
    count = 0
    layers = model.opset_imports.get("", 0) >= LAYER_NORM_SINCE
    for graph in graphs(model):
        for node in list(graph):
            norm = _matched(node)
            if norm is not None and norm.is_batch:
                _write_batch(node, norm)
            elif norm is not None and layers and norm.is_layer:
                _write_layer(node, norm)
            else:
                continue
            count += 1
    return count


@dataclass(frozen=True)
class _Norm:
    x: ir.Value
    scale: ir.Value
    offset: ir.Value
    mean: ir.Value
    variance: ir.Value
    epsilon: float

    @property
    def is_batch(self) -> bool:
        """Whether all four are vectors of as many as there are channels."""
        channels = shape_of(self.x)
        vectors = (self.scale, self.offset, self.mean, self.variance)
        return channels is not None and len(channels) > 1 and {shape_of(v) for v in vectors} == {channels[-1:]}

    @property
    def is_layer(self) -> bool:
        """Whether mean and variance are those of `x` along the last axis."""
        channels = shape_of(self.x)
        if channels is None or any(shape_of(v) != channels[-1:] for v in (self.scale, self.offset)):
            return False
        mean, variance = made_by(self.mean, "ReduceMean"), made_by(self.variance, "ReduceMean")
        if mean is None or variance is None or mean.inputs[0] is not self.x:
            return False
        if not (_along_last(mean, len(channels)) and _along_last(variance, len(channels))):
            return False
        square = made_by(variance.inputs[0], "Mul")
        if square is None or square.inputs[0] is not square.inputs[1]:
            return False
        centred = made_by(square.inputs[0], "Sub")
        return centred is not None and tuple(centred.inputs) == (self.x, self.mean)


def _along_last(node: ir.Node, rank: int) -> bool:
    axes = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    numbers = axes.numpy().tolist() if axes is not None else list(node.attributes.get_ints("axes", []))
    return node.attributes.get_int("keepdims", 1) == 1 and numbers in ([rank - 1], [-1])


def _orders(node: ir.Node | None) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The two inputs of a node, either way round."""
    if node is not None and len(node.inputs) == 2:
        a, b = node.inputs
        if a is not None and b is not None:
            yield a, b
            yield b, a


def _matched(node: ir.Node) -> _Norm | None:
    if node.op_type != "Add" or node.domain:
        return None
    for scaled, shift in _orders(node):
        if only_user(scaled) is None or only_user(shift) is None:
            continue
        for x, factor in _orders(made_by(scaled, "Mul")):
            found = _of_factor(factor)
            moved = _of_shift(shift, factor) if found is not None else None
            if found is not None and moved is not None:
                scale, variance, epsilon = found
                offset, mean = moved
                return _Norm(x, _vector(scale), _vector(offset), _vector(mean), _vector(variance), epsilon)
    return None


def _of_shift(shift: ir.Value, factor: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """The offset and the mean of `offset - mean * factor`, or of `-mean * factor + offset`."""
    difference = made_by(shift, "Sub")
    if difference is not None:
        offset, product = difference.inputs
        for mean, by in _orders(made_by(product, "Mul")):
            if by is factor and offset is not None:
                return offset, mean
    for product, offset in _orders(made_by(shift, "Add")):
        for negative, by in _orders(made_by(product, "Mul")):
            minus = made_by(negative, "Neg")
            if by is factor and minus is not None and minus.inputs[0] is not None:
                return offset, minus.inputs[0]
    return None


def _of_factor(factor: ir.Value) -> tuple[ir.Value, ir.Value, float] | None:
    """The scale, the variance and epsilon of `scale / sqrt(variance + epsilon)`."""
    for inverse, scale in _orders(made_by(factor, "Mul")):
        reciprocal = made_by(inverse, "Reciprocal")
        root = made_by(reciprocal.inputs[0], "Sqrt") if reciprocal is not None else None
        for variance, small in _orders(made_by(root.inputs[0], "Add") if root is not None else None):
            number = constant(small)
            if number is not None and number.size == 1:
                return scale, variance, float(number.numpy().reshape(()))
    return None


def _vector(value: ir.Value) -> ir.Value:
    """A vector that was given axes of size one in front."""
    node = made_by(value, "Reshape")
    source = node.inputs[0] if node is not None else None
    size, whole = shape_of(source), shape_of(value)
    if source is None or size is None or whole is None or len(size) != 1:
        return value
    return source if whole[-1:] == size and all(d == 1 for d in whole[:-1]) else value


def _write_batch(node: ir.Node, norm: _Norm) -> None:
    rank = len(norm.x.shape or ())
    inner = norm.x
    if rank > 2:
        inner = new_node("Transpose", [inner], {"perm": [0, rank - 1, *range(1, rank - 1)]}, node, node).outputs[0]
    weights = [norm.scale, norm.offset, norm.mean, norm.variance]
    result = new_node("BatchNormalization", [inner, *weights], {"epsilon": norm.epsilon}, node, node).outputs[0]
    if rank > 2:
        result = new_node("Transpose", [result], {"perm": [0, *range(2, rank), 1]}, node, node).outputs[0]
    take_over(node.outputs[0], result)


def _write_layer(node: ir.Node, norm: _Norm) -> None:
    attributes = {"axis": -1, "epsilon": norm.epsilon}
    fused = new_node("LayerNormalization", [norm.x, norm.scale, norm.offset], attributes, node, node)
    take_over(node.outputs[0], fused.outputs[0])
