"""What layers multiply: their weights as matrices, and the rows of data that these are multiplied by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.replace import constant, is_op, only_user

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Matrix:
    """The weight of a layer that nothing else reads."""

    node: ir.Node
    weight: ir.Value
    array: Floats

    @property
    def axis(self) -> int:
        """Along which the channels of the result are."""
        if self.node.op_type == "Conv":
            return 0
        return 0 if self.node.attributes.get_int("transB", 0) else 1

    @property
    def groups(self) -> int:
        """How many there are of channels that read inputs of their own."""
        return self.node.attributes.get_int("group", 1) if self.node.op_type == "Conv" else 1

    def rows(self) -> Floats:
        """(channels of the result, what is summed)."""
        return np.moveaxis(self.array, self.axis, 0).reshape(self.array.shape[self.axis], -1)

    def shaped(self, rows: npt.NDArray[Any]) -> Floats:
        """Such rows as the weight that they are of."""
        moved = np.moveaxis(self.array, self.axis, 0).shape
        return np.ascontiguousarray(np.moveaxis(rows.reshape(moved), 0, self.axis), np.float32)

    def data(self, x: Floats, most: int) -> Floats:
        """(groups, rows, what is summed): what this is multiplied by where the layer reads `x`, `most` rows at most."""
        if self.node.op_type != "Conv":
            rows = x.reshape(-1, x.shape[-1])
            return rows[_spread(len(rows), most)][None]
        found = _patches(self.node, x, self.array.shape[2:], most)
        parts = found.reshape(len(found), self.groups, -1)
        return np.ascontiguousarray(parts.transpose(1, 0, 2))


def matrices(graph: ir.Graph) -> Iterator[Matrix]:
    """Of the convolutions and products of a graph by constants."""
    for node in graph:
        weight = node.inputs[1] if len(node.inputs) > 1 else None
        tensor = constant(weight)
        if weight is None or tensor is None or tensor.dtype != ir.DataType.FLOAT or only_user(weight) is not node:
            continue
        rank = len(tensor.shape)
        is_layer = is_op(node, "Conv") and rank > 2
        is_layer |= is_op(node, "MatMul") and rank == 2
        is_layer |= is_op(node, "Gemm") and rank == 2 and not node.attributes.get_int("transA", 0)
        if is_layer and tensor.size and weight.is_initializer() and not weight.is_graph_input():
            yield Matrix(node, weight, np.asarray(tensor.numpy(), np.float32))


def _spread(count: int, most: int) -> npt.NDArray[np.int64]:
    """Some of so many places, from all over them."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def _patches(conv: ir.Node, x: Floats, kernel: Sequence[int], most: int) -> Floats:
    """(places, channels, *kernel): what the kernel of a convolution sees at some of its places."""
    rank = len(kernel)
    get = conv.attributes.get_ints
    strides, dilations = (list(get(name, [1] * rank)) for name in ("strides", "dilations"))
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    pads = _pads(conv, x.shape[2:], spans, strides)
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    sizes = [(size - span) // stride + 1 for size, span, stride in zip(padded.shape[2:], spans, strides, strict=True)]
    places = _spread(len(x) * int(np.prod(sizes)), most)
    image, *at = np.unravel_index(places, (len(x), *sizes))
    found = np.empty((len(places), x.shape[1], *kernel), np.float32)
    for offsets in np.ndindex(*kernel):
        here = [a * s + o * d for a, s, o, d in zip(at, strides, offsets, dilations, strict=True)]
        found[(slice(None), slice(None), *offsets)] = padded[(image, slice(None), *here)]
    return found


def _pads(conv: ir.Node, sizes: Sequence[int], spans: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    auto = conv.attributes.get_string("auto_pad", "NOTSET")
    rank = len(sizes)
    if auto in ("NOTSET", "VALID"):
        given = list(conv.attributes.get_ints("pads", [0] * 2 * rank)) if auto == "NOTSET" else [0] * 2 * rank
        return list(zip(given[:rank], given[rank:], strict=True))
    found = []
    for size, span, stride in zip(sizes, spans, strides, strict=True):
        missing = max((-(-size // stride) - 1) * stride + span - size, 0)
        less, more = missing // 2, missing - missing // 2
        found.append((less, more) if auto == "SAME_UPPER" else (more, less))
    return found
