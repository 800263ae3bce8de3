"""Low-rank adapters: a large matrix stays as it is, the product of two small ones beside it is trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.build import Builder, Tensor
from onward.training.recipe.groups import matches
from onward.training.recipe.parameters import NothingToTrain

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class LoRA:
    """Adapters for matrices that are the right operand of MatMul or Gemm, all or those of the names given."""

    rank: int = 8
    patterns: tuple[str, ...] = ("*",)
    alpha: float | None = None
    """The product is multiplied by `alpha / rank`; None: as large as the rank."""
    seed: int = 0

    @property
    def scale(self) -> float:
        return 1.0 if self.alpha is None else self.alpha / self.rank


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


def add_adapters(model: ir.Model, how: LoRA, others: Collection[str] = ()) -> dict[str, Adapter]:
    """Write adapters beside products, in place; gives them by the name of their matrix.

    `others` are those that the model has already, which get none themselves.
    """
    rng = np.random.default_rng(how.seed)
    op = Builder(model)
    found: dict[str, Adapter] = {}
    for weight in list(model.graph.initializers.values()):
        name, transposed = weight.name or "", _is_transposed(weight)
        if transposed is None or name in others or not matches(name, how.patterns):
            continue
        assert weight.const_value is not None
        rows, columns = weight.const_value.shape.numpy()
        wide, narrow = (columns, rows) if transposed else (rows, columns)
        a, b = initial(model.graph, name, wide, narrow, how, weight.const_value.dtype.numpy(), rng)
        found[name] = Adapter(a, b, how.scale, transposed, name)
        for node, _ in list(weight.uses()):
            beside(op, node, a, b, how.scale)
    if not found and not others:
        raise NothingToTrain(
            f"no matrix that only MatMul and Gemm multiply by, and no quantised one, is called "
            f"{' or '.join(how.patterns)}"
        )
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


def initial(
    graph: ir.Graph, weight: str, wide: int, narrow: int, how: LoRA, dtype: np.dtype[Any], rng: np.random.Generator
) -> tuple[str, str]:
    """The two weights that a matrix gets, which takes `wide` and gives `narrow` numbers; their product is zero."""
    rank = min(how.rank, wide, narrow)
    arrays = {
        f"{weight}.lora_a": rng.uniform(-1, 1, (wide, rank)).astype(dtype) / np.asarray(np.sqrt(wide), dtype),
        f"{weight}.lora_b": np.zeros((rank, narrow), dtype),
    }
    for name, array in arrays.items():
        tensor = ir.Tensor(array, name=name)
        graph.register_initializer(
            ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
        )
    a, b = arrays
    return a, b


def beside(
    op: Builder,
    node: ir.Node,
    a: str,
    b: str,
    scale: float,
    dtype: ir.DataType | None = None,
    x: ir.Value | None = None,
) -> None:
    """Add what an adapter makes of `x`, a product's first input by default, to the product.

    It is of `dtype`, if that is not the adapter's own.
    """
    x, y = x or node.inputs[0], node.outputs[0]
    assert x is not None
    weights = op.model.graph.initializers
    left: Tensor = op.tensor(x)
    factor = scale
    if node.op_type == "Gemm":
        factor *= node.attributes.get_float("alpha", 1.0)
        if node.attributes.get_int("transA", 0):
            left = op.Transpose(left, perm=[1, 0])
    own = weights[a].dtype
    narrow = dtype is not None and own is not None and dtype != own
    if narrow:
        left = op.Cast(left, to=int(own or 0))
    low = left @ op.tensor(weights[a]) @ op.tensor(weights[b])
    low = low * factor if factor != 1 else low
    total = op.tensor(y) + (op.Cast(low, to=int(dtype or 0)) if narrow else low)
    users = [(user, index) for user, index in y.uses() if user is not total.value.producer()]
    for user, index in users:
        user.replace_input_with(index, total.value)
    graph = op.model.graph
    for i, output in enumerate(graph.outputs):
        if output is y:
            graph.outputs[i] = total.value
            y.name, total.value.name = op.names.value(f"{y.name}.frozen"), y.name
