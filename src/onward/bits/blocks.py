"""Weights of products in blocks of 4 bits: MatMulNBits of ONNX Runtime, or DequantizeLinear of ONNX itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.advice.options import option
from onward.bits.chosen import check_patterns, is_named
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer
from onward.graph.names import Names
from onward.graph.narrow import pack
from onward.graph.origin import copy_origin
from onward.graph.replace import constant, graphs, is_op
from onward.graph.unused import remove_unused
from onward.model import Model

Floats = npt.NDArray[np.float32]
Form = Literal["runtime", "standard"]

MICROSOFT = "com.microsoft"
STANDARD_FROM = 21
"""The opset from which DequantizeLinear takes blocks and 4 bits."""
SIZES = (16, 32, 64, 128, 256)
LEAST = 4096
"""Numbers of a weight that is worth it."""
STEPS = 15
SHRUNK = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
"""Shares of a block's range that are tried: what lies beyond is clipped, and all else is nearer to its number."""
ROWS_AT_ONCE = 512


@dataclass(frozen=True)
class Product:
    """A node that multiplies by a constant matrix."""

    node: ir.Node
    weight: ir.Value
    is_transposed: bool
    """Whether the matrix is (columns of the result, rows that are summed)."""

    @property
    def result(self) -> str:
        """The name of what it gives: nodes may have none."""
        return self.node.outputs[0].name or ""

    def matrix(self) -> Floats:
        """(columns of the result, what is summed)."""
        tensor = constant(self.weight)
        assert tensor is not None
        array = np.asarray(tensor.numpy(), np.float32)
        return array if self.is_transposed else np.ascontiguousarray(array.T)


@dataclass(frozen=True)
class Blocks:
    """A matrix in blocks along what is summed."""

    numbers: npt.NDArray[np.uint8]
    """(columns, blocks, numbers of a block), from 0 to 15."""
    scales: Floats
    """(columns, blocks)"""
    points: npt.NDArray[np.uint8]
    """What stands for zero, (columns, blocks)."""

    def matrix(self, summed: int) -> Floats:
        found = (self.numbers.astype(np.float32) - self.points[..., None]) * self.scales[..., None]
        return np.asarray(found.reshape(len(found), -1)[:, :summed])


def products(model: ir.Model) -> Iterator[Product]:
    """Those of a model that can have a weight in blocks."""
    for graph in graphs(model):
        for node in graph:
            if is_op(node, "MatMul") or (is_op(node, "Gemm") and _is_plain(node)):
                weight = node.inputs[1]
                tensor = constant(weight)
                if weight is None or tensor is None or len(tensor.shape) != 2 or tensor.size < LEAST:
                    continue
                if tensor.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
                    is_transposed = is_op(node, "Gemm") and node.attributes.get_int("transB", 0) == 1
                    yield Product(node, weight, is_transposed)


def _is_plain(gemm: ir.Node) -> bool:
    given = gemm.attributes
    return given.get_float("alpha", 1.0) == given.get_float("beta", 1.0) == 1.0 and not given.get_int("transA", 0)


def in_blocks(matrix: Floats, size: int, weights: Floats | None = None) -> Blocks:
    """The nearest that blocks come to a matrix (columns, summed), by least squares.

    `weights` say how much each of what is summed counts, such as the mean square of what it is multiplied by.
    """
    columns, summed = matrix.shape
    count = -(-summed // size)
    counts = np.zeros(count * size, np.float32)
    counts[:summed] = 1.0 if weights is None else np.maximum(weights, 1e-12 * max(float(np.max(weights)), 1e-30))
    parts = [
        _best(_padded(matrix[first : first + ROWS_AT_ONCE], count, size), counts.reshape(count, size))
        for first in range(0, columns, ROWS_AT_ONCE)
    ]
    numbers, scales, points = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Blocks(numbers, scales, points)


def _padded(rows: Floats, count: int, size: int) -> Floats:
    filled = np.zeros((len(rows), count * size), np.float32)
    filled[:, : rows.shape[1]] = rows
    return filled.reshape(len(rows), count, size)


def _best(rows: Floats, counts: Floats) -> tuple[npt.NDArray[np.uint8], Floats, npt.NDArray[np.uint8]]:
    """Of each block the share of its range at which the error is least; the scale then follows from its numbers."""
    low, high = np.minimum(rows.min(axis=2), 0), np.maximum(rows.max(axis=2), 0)
    kept: tuple[Any, ...] = ()
    for share in SHRUNK:
        scale = np.where(high > low, share * (high - low) / STEPS, 1.0).astype(np.float32)
        point = np.clip(np.round(-share * low / scale), 0, STEPS)
        number = np.clip(np.round(rows / scale[..., None]) + point[..., None], 0, STEPS)
        steps = number - point[..., None]
        above, below = (counts * rows * steps).sum(axis=2), (counts * steps * steps).sum(axis=2)
        fitted = np.where((below > 0) & (above > 0), above / np.where(below > 0, below, 1), scale).astype(np.float32)
        error = (counts * (rows - steps * fitted[..., None]) ** 2).sum(axis=2)
        found = (error, number.astype(np.uint8), fitted, point.astype(np.uint8))
        if not kept:
            kept = found
            continue
        better = error < kept[0]
        spread = better[..., None]
        kept = (
            np.where(better, error, kept[0]),
            np.where(spread, found[1], kept[1]),
            np.where(better, found[2], kept[2]),
            np.where(better, found[3], kept[3]),
        )
    return kept[1], kept[2], kept[3]


@dataclass(frozen=True)
class Layer:
    """What became of a weight."""

    node: str
    op: str
    numbers: int
    loss: float
    """How far the weight is off, of its size."""

    def __str__(self) -> str:
        return f"{self.node} ({self.op}): {self.numbers:,} numbers, off by {100 * self.loss:.2g} %"


@dataclass(frozen=True)
class Packed:
    model: Model
    layers: tuple[Layer, ...]


def packed(
    model: Model,
    *,
    size: int = 32,
    form: Form = "runtime",
    leave: Sequence[str] = (),
    rounded: Mapping[str, Callable[[Floats, int], Blocks]] | None = None,
) -> Packed:
    """`model` with the weights of its products in blocks of 4 bits, but of the nodes that `leave` names.

    `rounded` has, by the result of a node, what makes blocks of its matrix; the nearest ones are taken else.
    """
    if size not in SIZES:
        raise OnwardError(f"blocks of {size} numbers: give one of {', '.join(map(str, SIZES))}")
    if form == "standard" and model.opset.get("", 0) < STANDARD_FROM:
        raise UnsupportedError(
            f"this model has opset {model.opset.get('', 0)}, and ONNX holds blocks of 4 bits from {STANDARD_FROM} on:"
            f" give {option('opset', STANDARD_FROM)} as well"
        )
    made = model.copy()
    infer(made.ir)
    every = list(products(made.ir))
    check_patterns(leave, [one.node for one in every])
    found = [one for one in every if not is_named(one.node, leave)]
    if not every:
        raise UnsupportedError(f"no product of this model has a constant matrix of {LEAST:,} numbers or more")
    if not found:
        raise UnsupportedError("all products of this model stay in floats, as asked: nothing would be in 4 bits")
    writer = _Writer(made.ir, size, form)
    layers = [writer.write(one, (rounded or {}).get(one.result, in_blocks)) for one in found]
    weights = {one.weight for one in found}
    made.ir.graph.inputs[:] = [value for value in made.ir.graph.inputs if value not in weights]
    remove_unused(made.ir)
    return Packed(replace(made, path=None), tuple(layers))


class _Writer:
    def __init__(self, model: ir.Model, size: int, form: Form) -> None:
        self._model, self._size, self._form = model, size, form
        self._names = Names(model)
        self._made: dict[tuple[ir.Value, bool], tuple[Blocks, int]] = {}
        self._shared: dict[tuple[ir.Value, str], ir.Value] = {}

    def write(self, one: Product, rounded: Callable[[Floats, int], Blocks]) -> Layer:
        matrix = one.matrix()
        key = (one.weight, one.is_transposed)
        if key not in self._made:
            self._made[key] = rounded(matrix, self._size), matrix.shape[1]
        blocks, summed = self._made[key]
        size = float(np.linalg.norm(matrix))
        loss = float(np.linalg.norm(matrix - blocks.matrix(summed))) / size if size else 0.0
        layer = Layer(one.node.name or one.weight.name or "a node", one.node.op_type, matrix.size, loss)
        (self._runtime if self._form == "runtime" else self._standard)(one, blocks, summed)
        return layer

    def _runtime(self, one: Product, blocks: Blocks, summed: int) -> None:
        """The zero points are packed row by row, each of which begins with a byte of its own."""
        columns, count, size = blocks.numbers.shape
        points = np.zeros((columns, count + count % 2), np.uint8)
        points[:, :count] = blocks.points
        dtype = one.weight.dtype or ir.DataType.FLOAT
        stored = {
            "blocks": pack(blocks.numbers.astype(ml_dtypes.uint4)).reshape(columns, count, size // 2),
            "scales": blocks.scales.astype(dtype.numpy()).reshape(-1),
            "zero_points": pack(points.astype(ml_dtypes.uint4)).reshape(-1),
        }
        inputs = [one.node.inputs[0], *(self._stored(one.weight, name, array) for name, array in stored.items())]
        numbers = {"K": summed, "N": columns, "bits": 4, "block_size": size}
        attributes = [ir.AttrInt64(name, number) for name, number in numbers.items()]
        self._model.opset_imports.setdefault(MICROSOFT, 1)
        self._replace(one.node, ir.Node(MICROSOFT, "MatMulNBits", inputs, attributes, version=1))

    def _standard(self, one: Product, blocks: Blocks, summed: int) -> None:
        """(columns, summed) as it is, transposed for MatMul, so that the runtime finds its own product in it."""
        matrix = blocks.numbers.reshape(len(blocks.numbers), -1)[:, :summed]
        parts = {"blocks": matrix, "zero_points": blocks.points}
        stored = {name: np.ascontiguousarray(part.T).astype(ml_dtypes.uint4) for name, part in parts.items()}
        dtype = one.weight.dtype or ir.DataType.FLOAT
        scales = np.ascontiguousarray(blocks.scales.T).astype(dtype.numpy())
        inputs = [
            self._stored(one.weight, "blocks", stored["blocks"]),
            self._stored(one.weight, "scales", scales),
            self._stored(one.weight, "zero_points", stored["zero_points"]),
        ]
        sizes = [ir.AttrInt64("axis", 0), ir.AttrInt64("block_size", self._size)]
        node = ir.Node("", "DequantizeLinear", inputs, sizes, name=self._names.node(f"{one.node.name}_weight"))
        node.outputs[0].name = self._names.value(f"{one.weight.name}_dequantized")
        node.outputs[0].type = ir.TensorType(dtype)
        assert one.node.graph is not None
        copy_origin(node, one.node)
        one.node.graph.insert_before(one.node, node)
        self._replace(one.node, ir.Node("", "MatMul", [one.node.inputs[0], node.outputs[0]]))

    def _replace(self, old: ir.Node, new: ir.Node) -> None:
        """Put `new` in the place of a product, with the sum behind it where that was a part of it."""
        graph, bias = old.graph, old.inputs[2] if len(old.inputs) > 2 else None
        assert graph is not None
        made = [new]
        if bias is not None:
            new.outputs[0].name = self._names.value(f"{old.outputs[0].name}_product")
            made.append(ir.Node("", "Add", [new.outputs[0], bias], name=self._names.node(f"{old.name}_bias")))
        new.name, last, output = old.name, made[-1].outputs[0], old.outputs[0]
        for node in made:
            copy_origin(node, old)
            node.outputs[0].type, node.outputs[0].shape = output.type, output.shape
        graph.insert_before(old, made)
        output.replace_all_uses_with(last, replace_graph_outputs=True)
        name, output.name = output.name, None
        graph.remove(old, safe=True)
        last.name = name

    def _stored(self, weight: ir.Value, what: str, array: npt.NDArray[Any]) -> ir.Value:
        if (weight, what) not in self._shared:
            name = self._names.value(f"{weight.name}_{what}")
            tensor = ir.tensor(array, name=name)
            value = ir.Value(
                name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor
            )
            self._model.graph.register_initializer(value)
            self._shared[weight, what] = value
        return self._shared[weight, what]
