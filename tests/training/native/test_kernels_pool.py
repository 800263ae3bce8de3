"""Compiled pools give what ONNX Runtime's give, bit for bit: the first of the largest elements."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from onward.canon.defaults import fill_defaults
from onward.graph.build import Builder
from onward.model import Model
from onward.training.autodiff.reverse import several_gradients
from onward.training.native.compiler import compiler
from onward.training.native.fusion import fused

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")

POOLS: dict[str, tuple[list[int], dict[str, Any]]] = {
    "side by side": ([8, 6], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "a rest": ([7, 9], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "overlapping": ([9, 8], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "every place": ([5, 7], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}),
    "gaps between windows": ([9, 10], {"kernel_shape": [2, 2], "strides": [3, 4]}),
    "dilations": ([9, 9], {"kernel_shape": [2, 3], "dilations": [3, 2], "pads": [1, 1, 1, 2]}),
    "rounded up": ([8, 7], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "rounded up, with pads": (
        [7, 8],
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    ),
    "same upper": ([8, 7], {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "same lower": ([8, 7], {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "in the middle": ([9, 10], {"kernel_shape": [1, 2], "strides": [3, 4], "auto_pad": "SAME_UPPER"}),
    "the whole map": ([4, 4], {"kernel_shape": [4, 4]}),
    "many places": ([40, 41], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
}


def pool(sizes: list[int], attributes: dict[str, Any], dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Model:
    x = ir.Value(name="x", type=ir.TensorType(dtype), shape=ir.Shape(["n", 3, *sizes]))
    model = ir.Model(ir.Graph([x], [], nodes=[], name="p", opset_imports={"": 21}), ir_version=10)
    op = Builder(model)
    for tensor in op.many("MaxPool", 2, op.tensor(x), **attributes):
        model.graph.outputs.append(tensor.value)
    return model


def run(model: ir.Model, x: np.ndarray, library: Path | None = None, **more: np.ndarray) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if library is not None:
        options.register_custom_ops_library(str(library))
    session = onnxruntime.InferenceSession(Model(model).to_proto().SerializeToString(), options)
    return session.run(None, {"x": x, **more})


@pytest.mark.parametrize("name", POOLS)
def test_equal_to_the_op(name: str) -> None:
    sizes, attributes = POOLS[name]
    model = pool(sizes, attributes)
    found = fused(model)
    assert found is not None and "MaxPool" not in [node.op_type for node in found[0].graph]
    rng = np.random.default_rng(0)
    for batch in (1, 37):
        drawn = rng.normal(size=(batch, 3, *sizes)).astype(np.float32)
        for x in (drawn, np.round(drawn), np.maximum(drawn, 0), -np.abs(drawn) - 5):
            for ours, plain in zip(run(found[0], x, found[1]), run(model, x), strict=True):
                np.testing.assert_array_equal(ours, plain)


def test_infinities_have_places_within_their_windows() -> None:
    sizes, attributes = POOLS["overlapping"]
    found = fused(pool(sizes, attributes))
    assert found is not None
    x = np.full((2, 3, *sizes), -np.inf, np.float32)
    y, places = run(found[0], x, found[1])
    assert (y == -np.inf).all() and (places >= 0).all() and (places < x.size).all()
    x[...] = np.inf
    assert (run(found[0], x, found[1])[0] == np.inf).all()


def test_others_are_left() -> None:
    sides = {"kernel_shape": [2, 2], "strides": [2, 2]}
    assert fused(pool([8, 6], sides, ir.DataType.DOUBLE)) is None
    assert fused(pool([8, 6], {**sides, "storage_order": 1})) is None
    alone = pool([8, 6], sides)
    alone.graph.outputs.pop()
    assert fused(alone) is None
    unknown = pool([8, 6], sides)
    unknown.graph.inputs[0].shape = ir.Shape(["n", 3, "h", "w"])
    unknown.graph.node(0).outputs[0].shape = ir.Shape(["n", 3, None, None])
    assert fused(unknown) is None


def trained(sizes: list[int], attributes: dict[str, Any]) -> ir.Model:
    """A pool, and the gradient of its input, from the gradient of its output."""
    model = pool(sizes, attributes)
    op = Builder(model)
    x, y = model.graph.inputs[0], model.graph.outputs[0]
    g = ir.Value(name="g", type=y.type, shape=y.shape)
    model.graph.inputs.append(g)
    fill_defaults(model)
    (found,) = several_gradients(op, [(y, op.tensor(g))], [x])
    assert found is not None
    model.graph.outputs[1] = found.value
    return model


@pytest.mark.parametrize("name", POOLS)
def test_gradients(name: str) -> None:
    sizes, attributes = POOLS[name]
    model = trained(sizes, attributes)
    found = fused(model)
    assert found is not None
    names = [node.op_type for node in found[0].graph]
    taps = zip(attributes["kernel_shape"], attributes.get("strides", (1, 1)), strict=True)
    if "dilations" not in attributes and np.prod([-(-k // s) for k, s in taps]) <= 4:
        assert "unpool" in names and "MaxUnpool" not in names and "Slice" not in names
    rng = np.random.default_rng(0)
    for batch in (1, 30):
        x = np.round(rng.normal(size=(batch, 3, *sizes)), 1).astype(np.float32)
        y = run(pool(sizes, attributes), x)[0]
        g = rng.normal(size=y.shape).astype(np.float32)
        ours, plain = (run(m, x, library, g=g)[1] for m, library in (found, (model, None)))
        np.testing.assert_allclose(ours, plain, rtol=1e-6, atol=1e-6)
