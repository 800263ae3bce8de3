"""What ONNX Runtime's optimisations change is not taken for noise."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onward
from onward import runners
from onward.frontends.runtime_kernels import keep_pads
from onward.runners.calls import Run
from onward.verification.noise.spread import PLAIN, measure_noise

IMAGE = -np.random.default_rng(0).uniform(1, 2, (1, 2, 8, 8)).astype(np.float32)


def padded_pool(opset: int) -> onnx.ModelProto:
    """Zeros around numbers below zero, and the largest of each window: ONNX Runtime leaves the zeros out."""
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["padded"]),
        helper.make_node("MaxPool", ["padded"], ["y"], kernel_shape=[3, 3], strides=[2, 2]),
    ]
    graph = helper.make_graph(
        nodes,
        "pool",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 4, 4])],
        [numpy_helper.from_array(np.asarray([0, 0, 1, 1, 0, 0, 1, 1], np.int64), "pads")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def largest(model: onnx.ModelProto) -> float:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return float(session.run(None, {"x": IMAGE})[0].max())


def test_a_change_by_optimisations_is_a_difference() -> None:
    report = onward.verify(padded_pool(17), against=["torch"], inputs={"x": IMAGE})
    assert not report.ok
    assert any("optimisations change y" in note for note in report.notes)


def test_noise_is_not_measured_twice() -> None:
    """To tell whether optimisations round or change something takes the runs that tell how far rounding carries."""
    prepared = []

    def prepare(runner: str, model: onward.Model) -> Run:
        prepared.append(runner)
        return runners.prepare(runner, model)

    model = onward.load(padded_pool(17))
    outputs = runners.prepare("onnxruntime", model)({"x": IMAGE})
    noise = measure_noise(model, [({"x": IMAGE}, outputs)], prepare=prepare)
    assert noise.remark and prepared == [PLAIN] * 3, "as it is, rounding differently, and in double precision"
    assert not noise.widen()
    assert len(prepared) == 3


def test_what_is_padded_before_a_pool_stays_so() -> None:
    assert largest(padded_pool(21)) < 0, "ONNX Runtime is right by itself now: keep_pads is no longer needed"
    for opset in (13, 17, 18, 21):
        model = onward.load(padded_pool(opset))
        keep_pads(model.ir)
        assert largest(model.to_proto()) == 0
