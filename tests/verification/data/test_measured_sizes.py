"""Sizes of inputs that only fit what the model makes of other inputs."""

import numpy as np
import pytest
from graphs import model, weight

from onward import runners
from onward.model import Model
from onward.verification.data.sets import data_sets

MATTING = """
matting (float[b,3,H,W] src, float[b1,4,h1,w1] r1i, float[b2,4,h2,w2] r2i, float[1] downsample_ratio)
 => (float[?,?,?,?] alpha, float[?,?,?,?] r1o, float[?,?,?,?] r2o)
{
  ones = Constant<value_floats=[1.0, 1.0]>()
  scales = Concat<axis=0>(ones, downsample_ratio, downsample_ratio)
  none = Constant<value=float[0] {}>()
  small = Resize<mode="linear", coordinate_transformation_mode="pytorch_half_pixel">(src, none, scales)
  first = Conv<strides=[2,2], pads=[1,1,1,1]>(small, k)
  with_first = Concat<axis=1>(first, r1i)
  made1 = Conv<pads=[1,1,1,1]>(with_first, g1)
  r1o = Tanh(made1)
  second = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r1o)
  JOIN
  r2o = Tanh(made2)
  l = Conv(r2o, p)
  alpha = Sigmoid(l)
}
"""
JOINS = {
    "by concatenation": "with_second = Concat<axis=1>(second, r2i) made2 = Conv<pads=[1,1,1,1]>(with_second, g2)",
    "by a sum": "with_second = Add(r2i, second) made2 = Conv<pads=[1,1,1,1]>(with_second, g3)",
}


def matting(join: str) -> Model:
    """A small network for video: states are as large as an image that is made smaller by a ratio, which is an input."""
    weights = {"k": weight(4, 3, 3, 3), "g1": weight(4, 8, 3, 3), "p": weight(1, 4, 1, 1)}
    weights |= {"g2": weight(4, 8, 3, 3)} if join == "by concatenation" else {"g3": weight(4, 4, 3, 3)}
    return model(MATTING.replace("JOIN", JOINS[join]), **weights)


@pytest.mark.parametrize("join", JOINS)
def test_states_follow_a_ratio(join: str) -> None:
    net = matting(join)
    sets = list(data_sets(net))
    run = runners.prepare("onnxruntime", net)
    assert len({one.inputs["src"].shape for one in sets}) > 1
    for one in sets:
        ratio = one.inputs["downsample_ratio"][0]
        assert 0 < ratio < 1
        states = run(one.inputs)
        for name in ("r1", "r2"):
            assert states[f"{name}o"].shape == one.inputs[f"{name}i"].shape


def test_sizes_that_are_given_stay() -> None:
    net = matting("by concatenation")
    one = next(data_sets(net, dims={"H": 40, "W": 24}))
    assert one.inputs["src"].shape[2:] == (40, 24)
    assert np.all(np.isfinite(runners.prepare("onnxruntime", net)(one.inputs)["alpha"]))
