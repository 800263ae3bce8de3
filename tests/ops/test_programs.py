"""Random programs of nested If, Loop and Scan nodes, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from harness import compare
from programs import Program

from onward.scoreboard.suite import forget_shapes, prepare


def referee(model):
    """ONNX Runtime without its optimizer, which crashes on some of these."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return lambda inputs: session.run(None, dict(zip([i.name for i in session.get_inputs()], inputs, strict=True)))


@pytest.mark.parametrize("seed", range(20))
def test_program(seed):
    model = Program(seed).model()
    run, nets = referee(model), [prepare("torch", m) for m in (model, forget_shapes(model))]
    p, q = np.array([0.5, -1.2], dtype=np.float32), np.array([0.8, 0.3], dtype=np.float32)
    rows = np.arange(6, dtype=np.float32).reshape(3, 2) / 5 - 0.5
    for trips, flag in [(4, True), (0, False), (1, True)]:
        inputs = [p, q, np.array(trips), np.array(flag), rows]
        wanted = run(inputs)
        for net in nets:
            compare(net(inputs), wanted, rtol=1e-4, atol=1e-4)
