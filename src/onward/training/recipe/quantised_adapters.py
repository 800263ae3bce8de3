"""Low-rank adapters beside quantised matrices, which stay in their bits.

They are nodes and weights of the model itself, also when it is saved for inference: merged into the matrix, they
would be rounded away.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onward.canon.lower import key_of
from onward.errors import OnwardError
from onward.graph.build import Builder
from onward.model import Model
from onward.training.recipe.adapters import LoRA, beside, initial
from onward.training.recipe.groups import matches

MS = "com.microsoft"
NUMBERS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
"""What a quantised matrix may stand for."""


@dataclass(frozen=True)
class Product:
    """What multiplies numbers by a quantised matrix: a node, or several that stand for one."""

    node: ir.Node
    """The one that gives the product, as numbers."""
    weight: ir.Value
    """The constant of integers."""
    wide: int
    """What the matrix takes, and what it gives."""
    narrow: int
    dtype: ir.DataType
    """Of what is multiplied."""
    x: ir.Value | None = None
    """What is multiplied, where that is not the first input of the node."""


def with_adapters(model: Model, how: LoRA) -> tuple[Model, list[str]]:
    """The model with adapters beside its quantised matrices of the names chosen, and what they are called."""
    _warn_of_others(model.ir.graph, how)
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
        beside(op, product.node, *names[weight], how.scale, product.dtype, product.x)
    own.graph.sort()
    made = Model(own, model.training_info, model.path, model.ir_version, model.data_files, model.held)
    return made, [name for pair in names.values() for name in pair]


def _products(graph: ir.Graph) -> Iterator[Product]:
    for node in graph:
        reader = _READERS.get(key_of(node))
        found = None if reader is None else reader(node)
        if found is not None and found.dtype in NUMBERS:
            yield found


def _warn_of_others(graph: ir.Graph, how: LoRA) -> None:
    """Say how many quantised matrices get no adapter, and why: they are frozen as they are."""
    found = [node for node in graph if (index := WITHOUT.get(key_of(node))) and _fits(node, index, how)]
    taken = {product.weight for product in _products(graph)}
    left = [node for node in found if not taken.intersection(node.inputs)]
    if left:
        kinds = ", ".join(sorted({node.op_type for node in left}))
        warnings.warn(
            f"{len(left)} quantised products get no adapter ({kinds}): their input or result is of integers, so there "
            f"are no numbers to add an adapter to. Quantise the model in QDQ form, or its weights alone, to adapt them",
            stacklevel=2,
        )


def _fits(node: ir.Node, index: int, how: LoRA) -> bool:
    weight = node.inputs[index] if index < len(node.inputs) else None
    return weight is not None and _is_constant(weight) and matches(weight.name or "", how.patterns)


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


def _of_quantiles(node: ir.Node) -> Product | None:
    """A matrix (N, K) of codes, each of which stands for a quantile times the largest size in its block."""
    codes, sizes = node.inputs[1:3]
    if codes is None or not _is_constant(codes) or not node.attributes.get_int("transB", 1):
        return None
    wide, narrow = (node.attributes.get_int(name, 0) for name in ("K", "N"))
    return Product(node, codes, wide, narrow, _dtype(sizes))


def _rounding_itself(node: ir.Node) -> Product | None:
    """Numbers that the node itself rounds to 8 bits."""
    return _of_integers(node, node, node.inputs[0])


def _to_numbers(node: ir.Node) -> Product | None:
    """Integers that DynamicQuantizeLinear made of numbers; the result are numbers again."""
    rounded = _rounded(node)
    if rounded is None or node.inputs[2] is not rounded.outputs[1]:
        return None
    return _of_integers(node, node, rounded.inputs[0])


def _in_integers(node: ir.Node) -> Product | None:
    """The same; the result are integers that Cast and Mul by both scales make numbers of, as ONNX Runtime writes it."""
    rounded, cast = _rounded(node), _only_user(node, "Cast")
    scaled = None if cast is None else _only_user(cast, "Mul")
    if rounded is None or cast is None or scaled is None:
        return None
    other = next((value for value in scaled.inputs if value is not cast.outputs[0]), None)
    scales = None if other is None else other.producer()
    if scales is None or key_of(scales) != "Mul" or rounded.outputs[1] not in scales.inputs:
        return None
    return _of_integers(node, scaled, rounded.inputs[0])


def _of_integers(node: ir.Node, end: ir.Node, x: ir.Value | None) -> Product | None:
    codes = node.inputs[1]
    tensor = None if codes is None else ir.convenience.get_const_tensor(codes)
    if codes is None or tensor is None or len(tensor.shape) != 2:
        return None
    wide, narrow = tensor.shape.numpy()
    return Product(end, codes, wide, narrow, ir.DataType.FLOAT, x)


def _rounded(node: ir.Node) -> ir.Node | None:
    """The DynamicQuantizeLinear that a product's first input comes from."""
    made = None if node.inputs[0] is None else node.inputs[0].producer()
    return made if made is not None and key_of(made) == "DynamicQuantizeLinear" else None


def _only_user(node: ir.Node, op: str) -> ir.Node | None:
    users = [user for user, _ in node.outputs[0].uses()]
    return users[0] if len(users) == 1 and key_of(users[0]) == op and not node.outputs[0].is_graph_output() else None


def _is_constant(value: ir.Value) -> bool:
    return ir.convenience.get_const_tensor(value) is not None


def _dtype(value: ir.Value | None) -> ir.DataType:
    if value is None:
        return ir.DataType.UNDEFINED
    tensor = ir.convenience.get_const_tensor(value)
    return (tensor.dtype if tensor is not None else value.dtype) or ir.DataType.UNDEFINED


_READERS: dict[str, Callable[[ir.Node], Product | None]] = {
    "MatMul": _dequantised,
    "Gemm": _dequantised,
    "MatMulInteger": _in_integers,
    f"{MS}::MatMulNBits": _in_blocks,
    f"{MS}::MatMulBnb4": _of_quantiles,
    f"{MS}::DynamicQuantizeMatMul": _rounding_itself,
    f"{MS}::MatMulIntegerToFloat": _to_numbers,
}
WITHOUT = {
    "MatMulInteger": 1,
    "QLinearMatMul": 3,
    f"{MS}::MatMulBnb4": 1,
    f"{MS}::MatMulIntegerToFloat": 1,
    f"{MS}::QAttention": 1,
    f"{MS}::QGemm": 3,
}
"""Ops whose matrix, at this place among the inputs, gets no adapter if none is said for it above."""
