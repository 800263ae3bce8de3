"""Compiled gathering gives what Pad and Gather give, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from onward.graph.build import Builder
from onward.model import Model
from onward.training.native.compiler import compiler
from onward.training.native.fusion import fused

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")


def gathering(
    rest: list[int], table: list[int], pads: list[int] | None, dtype: ir.DataType = ir.DataType.FLOAT, **options: Any
) -> ir.Model:
    x = ir.Value(name="x", type=ir.TensorType(dtype), shape=ir.Shape(["n", *rest]))
    model = ir.Model(ir.Graph([x], [], nodes=[], name="g", opset_imports={"": 21}), ir_version=10)
    op = Builder(model)
    given = op.tensor(x)
    if pads is not None:
        given = op.Pad(given, op.ints(pads), options.get("value"), mode=options.get("mode"))
    y = op.Gather(given, op.ints(table), axis=options.get("axis", 1))
    model.graph.outputs.append(y.value)
    return model


def run(model: ir.Model, x: np.ndarray, library: Path | None = None) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if library is not None:
        options.register_custom_ops_library(str(library))
    session = onnxruntime.InferenceSession(Model(model).to_proto().SerializeToString(), options)
    return session.run(None, {"x": x})[0]


TABLE = [3, 0, 5, 5, 2, 1, 5, 4] * 9


@pytest.mark.parametrize("rest", [[5], [5, 7], [5, 64]])
@pytest.mark.parametrize("batch", [1, 3, 200])
def test_zeros_behind_the_end(rest: list[int], batch: int) -> None:
    pads = [0] * (len(rest) + 2) + [1] + [0] * (len(rest) - 1)
    model = gathering(rest, TABLE, pads)
    found = fused(model)
    assert found is not None and len(found[0].graph) == 1
    x = np.random.default_rng(0).normal(size=(batch, *rest)).astype(np.float32)
    np.testing.assert_array_equal(run(found[0], x, found[1]), run(model, x))


@pytest.mark.parametrize(
    ("pads", "options"),
    [
        (None, {}),
        ([0, 0, 0, 0, 2, 0], {}),
        ([0, 1, 0, 0, 1, 0], {}),
        ([0, 0, 1, 0, 1, 0], {}),
        ([0, 0, 0, 0, 1, 0], {"value": np.asarray(3, np.float32)}),
        ([0, 0, 0, 0, 1, 0], {"mode": "edge"}),
    ],
)
def test_other_pads_are_kept(pads: list[int] | None, options: dict[str, Any]) -> None:
    model = gathering([6, 4], TABLE, pads, **options)
    found = fused(model)
    assert found is not None and len(found[0].graph) == len(model.graph)
    x = np.random.default_rng(0).normal(size=(3, 6, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(found[0], x, found[1]), run(model, x))


def test_others_are_left() -> None:
    assert fused(gathering([6, 4], TABLE, None, ir.DataType.DOUBLE)) is None
    assert fused(gathering([6, 4], [0, -1], None)) is None
    assert fused(gathering([6, 4], [0, 1], None, axis=2)) is None
    assert fused(gathering([6, 4, 3], TABLE, None)) is None
