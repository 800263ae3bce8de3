"""Low-rank adapters beside quantised matrices, which stay in their bits.

They are nodes and weights of the model itself, also when it is saved for inference: merged into the matrix, they
would be rounded away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onward.canon.lower import key_of
from onward.errors import OnwardError
from onward.graph.build import Builder
from onward.model import Model
from onward.training.recipe.adapters import LoRA, beside, initial
from onward.training.recipe.groups import matches

NUMBERS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
"""What a quantised matrix may stand for."""


@dataclass(frozen=True)
class Product:
    """A node that multiplies its first input by a quantised matrix."""

    node: ir.Node
    weight: ir.Value
    """The constant of integers."""
    wide: int
    """What the matrix takes, and what it gives."""
    narrow: int
    dtype: ir.DataType
    """Of what is multiplied."""


def with_adapters(model: Model, how: LoRA) -> tuple[Model, list[str]]:
    """The model with adapters beside its quantised matrices of the names chosen, and what they are called."""
    if not any(_products(model.ir.graph)):
        return model, []
    own = model.ir.clone()
    op = Builder(own)
    rng = np.random.default_rng(how.seed)
    names: dict[str, tuple[str, str]] = {}
    for product in list(_products(own.graph)):
        weight = product.weight.name or ""
        if not matches(weight, how.patterns):
            continue
        if weight not in names:
            if f"{weight}.lora_a" in own.graph.initializers:
                raise OnwardError(
                    f'{weight} has an adapter already: train it without --lora, by --trainable "*.lora_?"'
                )
            names[weight] = initial(own.graph, weight, product.wide, product.narrow, how, np.dtype(np.float32), rng)
        beside(op, product.node, *names[weight], how.scale, product.dtype)
    own.graph.sort()
    made = Model(own, model.training_info, model.path, model.ir_version, model.data_files, model.held)
    return made, [name for pair in names.values() for name in pair]


def _products(graph: ir.Graph) -> Iterator[Product]:
    for node in graph:
        if key_of(node) == "com.microsoft::MatMulNBits":
            found = _in_blocks(node)
        elif key_of(node) in ("MatMul", "Gemm"):
            found = _dequantised(node)
        else:
            found = None
        if found is not None and found.dtype in NUMBERS:
            yield found


def _in_blocks(node: ir.Node) -> Product | None:
    codes, scales = node.inputs[1:3]
    if codes is None or not _is_constant(codes):
        return None
    wide, narrow = (node.attributes.get_int(name, 0) for name in ("K", "N"))
    return Product(node, codes, wide, narrow, _dtype(scales))


def _dequantised(node: ir.Node) -> Product | None:
    """A matrix of integers that DequantizeLinear makes numbers of, turned perhaps, right in front of the product."""
    right = node.inputs[1]
    turned = key_of(node) == "Gemm" and bool(node.attributes.get_int("transB", 0))
    made = None if right is None else right.producer()
    if made is not None and key_of(made) == "Transpose" and list(made.attributes.get_ints("perm", (1, 0))) == [1, 0]:
        turned = not turned
        made = None if made.inputs[0] is None else made.inputs[0].producer()
    if made is None or key_of(made) not in ("DequantizeLinear", "com.microsoft::DequantizeLinear"):
        return None
    codes, scale = made.inputs[:2]
    tensor = None if codes is None else ir.convenience.get_const_tensor(codes)
    if codes is None or tensor is None or len(tensor.shape) != 2:
        return None
    wide, narrow = reversed(tensor.shape.numpy()) if turned else tensor.shape.numpy()
    dtype = ir.DataType(made.attributes.get_int("output_dtype", 0) or _dtype(scale))
    return Product(node, codes, wide, narrow, dtype)


def _is_constant(value: ir.Value) -> bool:
    return ir.convenience.get_const_tensor(value) is not None


def _dtype(value: ir.Value | None) -> ir.DataType:
    if value is None:
        return ir.DataType.UNDEFINED
    tensor = ir.convenience.get_const_tensor(value)
    return (tensor.dtype if tensor is not None else value.dtype) or ir.DataType.UNDEFINED
