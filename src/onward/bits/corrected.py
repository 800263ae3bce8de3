"""Blocks of 4 bits that make up for one another's errors, on data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.bits.blocks import STEPS, Blocks, Floats, Product, in_blocks, products
from onward.bits.compensated import Grid, Moments, Numbers, compensated
from onward.graph.infer import infer
from onward.graph.names import Names
from onward.graph.replace import constant
from onward.model import Model
from onward.runners import prepare
from onward.runners.calls import Inputs

LARGEST = 2**28
"""Bytes of moments that are measured in one run."""


def calibrated(model: Model, samples: Sequence[Inputs]) -> dict[str, Callable[[Floats, int], Blocks]]:
    """By the result of a product, what makes blocks of its matrix that suit the samples."""
    return {name: partial(corrected, moment=moment) for name, moment in moments(model, samples).items()}


def moments(model: Model, samples: Sequence[Inputs]) -> dict[str, Moments]:
    """By the result of a product, from running the model on samples. Products inside of bodies are left out."""
    source = model.copy().ir
    infer(source)
    inside = set(source.graph)
    wanted = [one for one in products(source) if one.node in inside]
    found: dict[str, Moments] = {}
    while wanted:
        part: list[Product] = []
        size = 0
        while wanted and (not part or size + _bytes(wanted[0]) <= LARGEST):
            size += _bytes(wanted[0])
            part.append(wanted.pop(0))
        found |= _measured(model, source, part, samples)
    return found


def _bytes(one: Product) -> int:
    return 4 * _summed(one) ** 2


def _summed(one: Product) -> int:
    tensor = constant(one.weight)
    assert tensor is not None
    return tensor.shape.numpy()[1 if one.is_transposed else 0]


def _measured(model: Model, source: ir.Model, part: Sequence[Product], samples: Sequence[Inputs]) -> dict[str, Moments]:
    clone = source.clone()
    names, twins = Names(clone), dict(zip(source.graph, clone.graph, strict=True))
    clone.graph.outputs.clear()
    read = {one.result: twins[one.node].inputs[0] for one in part}
    made: dict[ir.Value, str] = {}
    for one in part:
        value = read[one.result]
        assert value is not None
        if value not in made:
            made[value] = _square(clone, names, value, _summed(one))
    run = prepare("onnxruntime", replace(model, ir=clone, path=None, training_info=[]))
    sums: dict[str, Any] = {}
    for inputs in samples:
        for name, square in run(inputs).items():
            sums[name] = sums.get(name, 0.0) + np.asarray(square, np.float64)
    return {name: sums[made[value]] / len(samples) for name, value in read.items() if value is not None}


def _square(model: ir.Model, names: Names, value: ir.Value, summed: int) -> str:
    """Add an output that is xᵀ · x of all rows of `value`."""

    def add(op_type: str, *inputs: ir.Value, **attributes: int) -> ir.Value:
        given = [ir.AttrInt64(name, number) for name, number in attributes.items()]
        node = ir.Node("", op_type, inputs, given, name=names.node(f"moments/{op_type}"))
        node.outputs[0].name = names.value(f"moments/{op_type}")
        model.graph.append(node)
        return node.outputs[0]

    sizes = ir.tensor(np.array([-1, summed], np.int64), name=names.value("moments/sizes"))
    shape = ir.Value(name=sizes.name, type=ir.TensorType(sizes.dtype), shape=ir.Shape([2]), const_value=sizes)
    model.graph.register_initializer(shape)
    rows = add("Reshape", add("Cast", value, to=int(ir.DataType.FLOAT)), shape)
    made = add("MatMul", add("Transpose", rows), rows)
    made.type, made.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape((summed, summed))
    model.graph.outputs.append(made)
    return made.name or ""


def corrected(matrix: Floats, size: int, moment: Moments) -> Blocks:
    """A matrix (columns, summed) in blocks, for products with data of that moment."""
    parts: list[Blocks] = []

    def grid(left: Numbers, rows: slice) -> Grid:
        part = in_blocks(left.astype(np.float32), size, np.diag(moment)[rows].astype(np.float32))
        parts.append(part)
        return Grid(part.scales[:, 0].astype(np.float64), part.points[:, 0].astype(np.float64), 0, STEPS)

    numbers = compensated(matrix, moment, size, grid)
    for place, part in enumerate(parts):
        found = numbers[:, place * size : (place + 1) * size]
        part.numbers[:, 0, : found.shape[1]] = found
    joined = (np.concatenate([getattr(p, name) for p in parts], axis=1) for name in ("numbers", "scales", "points"))
    return Blocks(*joined)
