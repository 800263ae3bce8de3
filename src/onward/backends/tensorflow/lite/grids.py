"""What TensorFlow Lite has to be told in another way: padded pools, and models that are quantised already.

Both change a graph in canonical form, in place, before its layout is chosen. `onward::FakeQuantize(x; low, high)` is x
rounded to the nearest of 256 numbers, which TensorFlow's converter makes into quantised ops. For the weight of a layer
`meta[GRID]` says the same, since it is rounded after it was rearranged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.tensorflow.convert import has_rule
from onward.backends.tensorflow.layer_weights import GRID, LARGEST
from onward.graph.names import Names
from onward.graph.replace import DOMAIN, constant, graphs, is_op, made_by, new_node, remove_unread, shape_of, take_over
from onward.passes.fold_constants import fold_constants
from onward.passes.pipelines import idioms
from onward.spec.cast import INTEGER_RANGES

Array = np.ndarray[Any, np.dtype[Any]]
_D = ir.DataType
BYTES = (_D.INT8, _D.UINT8)
LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Ops whose second input is a weight."""


def pad_pools(model: ir.Model, calibrated: bool = False) -> None:
    """Let the maximum be taken over images that were padded before, as TensorFlow Lite needs it.

    Not by infinity where ranges are to be `calibrated`: these would have no end.
    """
    names = Names(model)
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "MaxPool"):
                _pad_before(node, names, calibrated)


def _pad_before(pool: ir.Node, names: Names, calibrated: bool) -> None:
    x, attributes, graph = pool.inputs[0], pool.attributes, pool.graph
    pads, kernel = list(attributes.get_ints("pads", ())), list(attributes.get_ints("kernel_shape", ()))
    ones = [1] * len(kernel)
    dilations, strides = (list(attributes.get_ints(key, ones)) for key in ("dilations", "strides"))
    plain = dilations == ones and not attributes.get_int("ceil_mode", 0) and len(pool.outputs) == 1
    if x is None or x.shape is None or x.dtype != _D.FLOAT or not plain or not any(pads) or min(pads) < 0:
        return
    begin, end = pads[: len(kernel)], pads[len(kernel) :]
    if strides == ones and begin == end == [n // 2 for n in kernel] and all(n % 2 for n in kernel):
        return  # TensorFlow's "SAME"
    assert graph is not None
    dims = list(shape_of(x) or ())
    most = [max(pair) for pair in zip(begin, end, strict=True)]
    # Numbers that each window has already change no maximum, and unlike infinity they can be quantised.
    mirrored = all(d is not None and n < d and 2 * n < k for d, n, k in zip(dims[2:], most, kernel, strict=True))
    if calibrated and not mirrored:
        return
    inputs = [x, _initializer(graph, names, "pads", np.array([0, 0, *begin, 0, 0, *end]))]
    if not mirrored:
        inputs.append(_initializer(graph, names, "lowest", np.array(-np.inf, np.float32)))
    padded = new_node("Pad", inputs, {"mode": "reflect" if mirrored else "constant"}, pool, pool).outputs[0]
    dims[2:] = [None if d is None else d + b + e for d, b, e in zip(dims[2:], begin, end, strict=True)]
    padded.name, padded.type, padded.shape = names.value(f"{x.name}_padded"), x.type, ir.Shape(dims)
    pool.replace_input_with(0, padded)
    attributes["pads"] = ir.AttrInt64s("pads", [0] * len(pads))


def _initializer(graph: ir.Graph, names: Names, wish: str, data: Array) -> ir.Value:
    tensor = ir.tensor(data, name=names.value(wish))
    value = ir.Value(name=tensor.name, type=ir.TensorType(tensor.dtype), const_value=tensor)
    value.shape = ir.Shape(data.shape)
    graph.register_initializer(value)
    return value


def carry_grids(model: ir.Model) -> bool:
    """Let a model with QuantizeLinear and DequantizeLinear be computed in 8 bits, by its own scales and zero points.

    Tells whether it is: where weights have grids that TensorFlow Lite's kernels do not take, it stays as it is, and is
    computed in floats. So is one whose weights alone are integers: the converter would quantise its data as well, by
    grids of its own.
    """
    names = Names(model)
    found = [node for graph in graphs(model) for node in graph if is_op(node, "DequantizeLinear")]
    grids = {node: grid for node in found if (grid := _grid(node)) is not None}
    has_data = any(grid.integers is None for grid in grids.values())
    if not has_data or not all(_fits(node, grid) for node, grid in grids.items()):
        return False
    for node, grid in grids.items():
        _carry(node, grid, names)
    for graph in graphs(model):
        remove_unread(list(graph))
    idioms(model, has_rule)  # weights are constants now
    fold_constants(model)
    return True


@dataclass(frozen=True)
class Grid:
    """What a DequantizeLinear makes of integers: (integer - zero) · scale."""

    dtype: ir.DataType
    scale: Array
    zero: Array
    axis: int | None
    """Along which the scale differs, if it does."""
    integers: Array | None
    """None where they are computed."""

    def spread(self, parameter: Array) -> Array:
        """A scale or zero point for each of the integers."""
        assert self.integers is not None
        shape = [1] * self.integers.ndim
        if self.axis is not None:
            shape[self.axis] = -1
        return np.broadcast_to(parameter.reshape(shape), self.integers.shape)

    @property
    def values(self) -> Array:
        assert self.integers is not None
        shifted = self.integers.astype(np.float64) - self.spread(self.zero)
        return (shifted * self.spread(self.scale)).astype(np.float32)

    @property
    def limits(self) -> dict[str, float]:
        low, high = ((n - self.zero.item()) * self.scale.item() for n in INTEGER_RANGES[self.dtype])
        return {"low": low, "high": high}


def _grid(node: ir.Node) -> Grid | None:
    """That of a DequantizeLinear of constants, or of what was just quantised by the same scale and zero point."""
    parameters, x = _parameters(node), node.inputs[0]
    if parameters is None or x is None or x.dtype is None or node.outputs[0].dtype != _D.FLOAT:
        return None
    scale, zero = parameters
    axis = None if scale.size == 1 else node.attributes.get_int("axis", 1)
    integers = constant(x)
    if integers is not None:
        known = x.dtype in BYTES or (x.dtype == _D.INT32 and not zero.any())
        return Grid(x.dtype, scale, zero, axis, integers.numpy()) if known else None
    quantize = made_by(x, "QuantizeLinear")
    before = None if quantize is None else _parameters(quantize)
    if before is None or axis is not None or x.dtype not in BYTES:
        return None
    return Grid(x.dtype, scale, zero, None, None) if all(map(np.array_equal, before, parameters)) else None


def _parameters(node: ir.Node) -> tuple[Array, Array] | None:
    """The scale and the zero point, if they are constant, and one for the tensor or one for each slice of an axis."""
    tensors = [constant(value) for value in node.inputs[1:3] if value is not None]
    known = [tensor.numpy().reshape(-1) for tensor in tensors if tensor is not None and len(tensor.shape) < 2]
    if len(known) < len(tensors) or node.attributes.get_int("block_size", 0) != 0:
        return None
    scale, *zero = known
    return scale, zero[0].astype(np.int32) if zero else np.zeros(scale.shape, np.int32)


def _layers(value: ir.Value) -> Iterator[ir.Node]:
    """The layers of which it is the weight, as it is or transposed."""
    for use in value.uses():
        if is_op(use.node, "Transpose"):
            yield from _layers(use.node.outputs[0])
        elif use.idx == 1 and is_op(use.node, *LAYERS):
            yield use.node


def _fits(node: ir.Node, grid: Grid) -> bool:
    """Whether TensorFlow Lite's kernels take it: the grids of weights are symmetric.

    Those of linear layers with a scale for each channel cannot be told: the converter finds them by the largest number.
    """
    layers = {layer.op_type for layer in _layers(node.outputs[0])}
    if grid.integers is None or not layers:
        return True
    sizes = np.abs(grid.integers.astype(int))
    if grid.dtype != _D.INT8 or grid.zero.any() or sizes.max(initial=0) > LARGEST:
        return False
    if grid.axis is None or (layers == {"Conv"} and sizes.ndim == 4):  # others are reshaped
        return True
    others = tuple(axis for axis in range(sizes.ndim) if axis != grid.axis % sizes.ndim)
    return layers <= {"Gemm", "MatMul"} and set(sizes.max(others).tolist()) <= {0, LARGEST}


def _carry(node: ir.Node, grid: Grid, names: Names) -> None:
    """Put numbers that are rounded to their grid in the place of a DequantizeLinear."""
    integers, old, graph = node.inputs[0], node.outputs[0], node.graph
    assert graph is not None and integers is not None
    layers = list(_layers(old))
    quantize = integers.producer()
    if quantize is not None and grid.integers is None:
        new = quantize.inputs[0]
        assert new is not None
    else:
        new = _initializer(graph, names, f"{integers.name}_values", grid.values)
        if layers and (grid.axis is None or is_op(layers[0], "Conv")):
            new.meta[GRID] = grid.spread(grid.scale)
    if grid.integers is None or (not layers and grid.axis is None and grid.dtype in BYTES):
        rounded = new_node("FakeQuantize", [new], grid.limits, node, node, domain=DOMAIN)
        take_over(old, rounded.outputs[0])
    else:
        old.replace_all_uses_with(new, replace_graph_outputs=True)
