"""Low-rank adapters: a large matrix stays as it is, the product of two small ones beside it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.build import Builder, Tensor
from onward.training.recipe.groups import matches

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class LoRA:
    """Adapters for matrices that are the right operand of MatMul or Gemm, all or those of the names given."""

    rank: int = 8
    patterns: tuple[str, ...] = ("*",)
    alpha: float | None = None
    """The product is multiplied by `alpha / rank`; None: as large as the rank."""
    seed: int = 0


@dataclass(frozen=True)
class Adapter:
    """What belongs to one matrix: `weight + scale · a @ b`, or of the transposed product."""

    a: str
    b: str
    scale: float
    transposed: bool
    base: str
    """The initializer of the training graph that is the matrix without its adapter."""

    def merged(self, weight: Array, parameters: Mapping[str, Array]) -> Array:
        """The matrix with its adapter in it."""
        product = parameters[self.a].astype(np.float64) @ parameters[self.b].astype(np.float64) * self.scale
        return np.asarray(weight + (product.T if self.transposed else product), weight.dtype)


def lora(rank: int = 8, patterns: str | tuple[str, ...] = "*", alpha: float | None = None, seed: int = 0) -> LoRA:
    """Train low-rank adapters instead of the matrices whose names fit the patterns."""
    if rank < 1:
        raise OnwardError(f"the rank of adapters is {rank}: give at least 1")
    return LoRA(rank, (patterns,) if isinstance(patterns, str) else tuple(patterns), alpha, seed)


def add_adapters(model: ir.Model, how: LoRA) -> dict[str, Adapter]:
    """Write adapters beside products, in place; gives them by the name of their matrix."""
    rng = np.random.default_rng(how.seed)
    op = Builder(model)
    found: dict[str, Adapter] = {}
    for weight in list(model.graph.initializers.values()):
        transposed = _is_transposed(weight)
        if transposed is None or not matches(weight.name or "", how.patterns):
            continue
        adapter = _adapter(model.graph, weight, transposed, how, rng)
        found[weight.name or ""] = adapter
        for node, _ in list(weight.uses()):
            _beside(op, node, adapter)
    if not found:
        raise OnwardError(f"no matrix that only MatMul and Gemm multiply by is called {' or '.join(how.patterns)}")
    model.graph.sort()
    return found


def _is_transposed(weight: ir.Value) -> bool | None:
    """Whether nodes multiply by the transposed matrix; None where a value is no matrix, or used in another way too."""
    if weight.dtype is None or not weight.dtype.is_floating_point() or weight.shape is None or weight.shape.rank() != 2:
        return None
    found: set[bool | None] = {None} if weight.is_graph_output() else set()
    for node, index in weight.uses():
        product = node.op_type in ("MatMul", "Gemm") and node.domain in ("", "ai.onnx") and index == 1
        found.add(bool(node.op_type == "Gemm" and node.attributes.get_int("transB", 0)) if product else None)
    return found.pop() if len(found) == 1 else None


def _adapter(graph: ir.Graph, weight: ir.Value, transposed: bool, how: LoRA, rng: np.random.Generator) -> Adapter:
    assert weight.const_value is not None
    rows, columns = weight.const_value.shape.numpy()
    wide, narrow = (columns, rows) if transposed else (rows, columns)
    rank = min(how.rank, wide, narrow)
    dtype = weight.const_value.dtype.numpy()
    arrays = {
        f"{weight.name}.lora_a": rng.uniform(-1, 1, (wide, rank)).astype(dtype) / np.asarray(np.sqrt(wide), dtype),
        f"{weight.name}.lora_b": np.zeros((rank, narrow), dtype),
    }
    for name, array in arrays.items():
        tensor = ir.Tensor(array, name=name)
        graph.register_initializer(
            ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
        )
    a, b = arrays
    return Adapter(a, b, 1.0 if how.alpha is None else how.alpha / how.rank, transposed, weight.name or "")


def _beside(op: Builder, node: ir.Node, adapter: Adapter) -> None:
    x, y = node.inputs[0], node.outputs[0]
    assert x is not None
    weights = op.model.graph.initializers
    left: Tensor = op.tensor(x)
    factor = adapter.scale
    if node.op_type == "Gemm":
        factor *= node.attributes.get_float("alpha", 1.0)
        if node.attributes.get_int("transA", 0):
            left = op.Transpose(left, perm=[1, 0])
    low = left @ op.tensor(weights[adapter.a]) @ op.tensor(weights[adapter.b])
    total = op.tensor(y) + (low * factor if factor != 1 else low)
    users = [(user, index) for user, index in y.uses() if user is not total.value.producer()]
    for user, index in users:
        user.replace_input_with(index, total.value)
    graph = op.model.graph
    for i, output in enumerate(graph.outputs):
        if output is y:
            graph.outputs[i] = total.value
            y.name, total.value.name = op.names.value(f"{y.name}.frozen"), y.name
