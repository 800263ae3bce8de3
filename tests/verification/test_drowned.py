"""Data on which a model carries its own rounding so far that nothing can be told."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from onward.model import Model, load
from onward.runners import prepare
from onward.runners.calls import Inputs, Outputs, Run
from onward.verification.check import Verdict, compared, verdict
from onward.verification.noise.jitter import jittered
from onward.verification.results import Report

STEPS = 60
"""Each may double what a number is off by."""
ANYWHERE = "u0 = Sigmoid(x)"
AT_ZERO = """
    size = Abs(x) most = ReduceMax<axes=[1]>(size) ten = Constant<value_float=10.0>() far = Mul(most, ten)
    v = Sub(start, far) low = Constant<value_float=0.0>() high = Constant<value_float=1.0>() u0 = Clip(v, low, high)
"""


def chaotic(begin: str) -> onnx.ModelProto:
    """x ↦ 3.99 x (1 - x), again and again, which turns any two numbers apart; zero stays where it is."""
    steps = "".join(f"a{i} = Sub(one, u{i}) b{i} = Mul(u{i}, a{i}) u{i + 1} = Mul(b{i}, r)\n" for i in range(STEPS))
    body = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[N,64] x) => (float[N,64] y) {{
        r = Constant<value_float=3.99>() one = Constant<value_float=1.0>() {begin} {steps}
        tenth = Constant<value_float=0.1>() z = Mul(x, tenth) y = Add(u{STEPS}, z)
    }}"""
    model = onnx.parser.parse_model(body)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.linspace(0.2, 0.8, 64, dtype=np.float32), "start"))
    return model


def rounding_differently(model: onnx.ModelProto) -> Run:
    return prepare("onnxruntime:unoptimized", load(jittered(model, seed=5)))


def judged(model: onnx.ModelProto, run: Run, **how: object) -> tuple[Report, Verdict]:
    source: Model = load(model)
    report = compared(source, run, on="onnxruntime", **how)
    return report, verdict(report)


def test_other_data_is_compared_where_rounding_decides() -> None:
    model = chaotic(AT_ZERO)
    report, found = judged(model, rounding_differently(model))
    assert found.status == "verified" and "3 sets of inputs" in found.words
    assert [trial.data for trial in report.sides[0].trials] == report.data
    assert report.data[0].startswith("random") and report.data[-1].startswith("random") and "seed" in report.data[-1]
    assert any("on zeros" in note and "rounding alone moves y" in note for note in report.notes)


def test_nothing_is_known_where_rounding_decides_everywhere() -> None:
    model = chaotic(ANYWHERE)
    _, found = judged(model, rounding_differently(model))
    assert found.status == "not verified" and "rounding alone moves y" in found.words


def test_data_of_the_user_is_not_replaced() -> None:
    model, zeros = chaotic(AT_ZERO), {"x": np.zeros((3, 64), np.float32)}
    report, found = judged(model, rounding_differently(model), data=zeros)
    assert found.status == "not verified" and len(report.data) == 1


DEFECTS: dict[str, Callable[[Inputs, Outputs], np.ndarray]] = {
    "everywhere": lambda inputs, outputs: outputs["y"] * np.float32(1.01),
    "only where rounding decides, and beyond it": lambda inputs, outputs: (
        outputs["y"] if inputs["x"].any() else outputs["y"] * np.float32(100)
    ),
    "a constant where rounding decides": lambda inputs, outputs: (
        outputs["y"] if inputs["x"].any() else np.zeros_like(outputs["y"])
    ),
}


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_still_found(defect: Callable[[Inputs, Outputs], np.ndarray]) -> None:
    model = chaotic(AT_ZERO)
    right = rounding_differently(model)
    _, found = judged(model, lambda inputs: {"y": defect(inputs, right(inputs))})
    assert found.status == "different"
