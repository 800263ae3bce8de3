"""One step of any model, with a loss that fits what its output stands for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onward.zoo.trainings import training

W = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
QUANTISED = "h = MatMul(x, w) {} q = QuantizeLinear(p, s, z) d = DequantizeLinear(q, s, z) e = QuantizeLinear(d, s, z)"


@pytest.mark.parametrize(
    ("ends", "nodes", "found"),
    [
        (("float16", "float16"), "h = MatMul(x, v) y = Mul(h, big)", "same: mse of 'y'"),
        (("float", "uint8"), QUANTISED.format("p = Sigmoid(h)") + " y = Identity(e)", "same: bce_with_logits of 'h'"),
        (("float", "uint8"), QUANTISED.format("p = Softmax(h)") + " y = Identity(e)", "same: cross_entropy of 'h'"),
        (("float", "uint8"), QUANTISED.format("p = Tanh(h)") + " y = Identity(e)", "same: mse of 'y' is 0."),
        (("float", "int64"), "h = MatMul(x, w) y = ArgMax<keepdims = 1>(h)", "refused: it has no float output"),
    ],
)
def test_a_loss_that_fits(ends: tuple[str, str], nodes: str, found: str, tmp_path: Path) -> None:
    """Sums of these numbers of float16 are too large for it."""
    proto = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> g ({ends[0]}[64, 4] x) => ({ends[1]}[64, m] y) {{ {nodes} }}'
    )
    held = {"w": W, "v": W.astype(np.float16), "big": np.float16(1e4), "s": np.float32(0.004), "z": np.uint8(128)}
    used = {name for node in proto.graph.node for name in node.input}
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in held.items() if n in used)
    onnx.save(proto, tmp_path / "model.onnx")
    made = training(tmp_path / "model.onnx")
    assert f"{made.verdict}: {made.message}".startswith(found)
