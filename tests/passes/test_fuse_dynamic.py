"""Layers that ONNX Runtime's dynamic quantization writes as many nodes."""

import numpy as np
import pytest
from harness import check, floats, source, text_model

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
LINEAR = "c, s, z = DynamicQuantizeLinear(x) m = MatMulInteger(c, w, z, wz) f = Cast<to = 1>(m) t = Mul(s, ws)"
CONV = "c, s, z = DynamicQuantizeLinear(x) m = ConvInteger<pads = [1, 1, 1, 1]>(c, w, z, wz) t = Mul(s, ws)"


def codes(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(0, 256, shape).astype(np.uint8)


def linear(tail: str, scales: tuple[int, ...] = (), **weights: np.ndarray):
    text = f"{HEADER} g (float[a,b,4] x) => (float y) {{ {LINEAR} {tail} }}"
    points = codes(*scales, seed=2) if scales else np.uint8(117)
    return text_model(text, w=codes(4, 5), wz=points, ws=np.abs(floats(*scales)) / 50, **weights)


@pytest.mark.parametrize("scales", [(), (1,), (5,)])
def test_a_linear_layer_is_one_module(scales):
    model = linear("p = Mul(f, t) y = Add(b, p)", scales, b=floats(5))
    check(model, [floats(2, 3, 4)])
    options = "per_channel=True, " if scales == (5,) else ""
    assert f"DynamicLinear(4, 5, {options}dtype=torch.uint8)" in source(model)
    assert "return self.linear(x)" in source(model)


def test_a_layer_without_bias_says_so():
    model = linear("y = Mul(t, f)")
    check(model, [floats(2, 3, 4)])
    assert "DynamicLinear(4, 5, bias=False, dtype=torch.uint8)" in source(model)


@pytest.mark.parametrize(
    "tail",
    [
        "p = Mul(f, t) q = Cast<to = 1>(m) y = Add(p, q)",
        "p = Mul(f, s) y = Mul(p, ws)",
        "u = Cast<to = 1>(z) p = Mul(f, u) y = Mul(p, t)",
    ],
    ids=["read by others", "scales one by one", "another factor"],
)
def test_what_is_done_otherwise_is_left_alone(tail):
    model = linear(tail)
    check(model, [floats(2, 3, 4)], rtol=1e-4)
    assert "DynamicLinear" not in source(model)


def test_layers_after_each_other_are_modules_each():
    text = f"""{HEADER} g (float[a,4] x) => (float y) {{ {LINEAR} p = Mul(f, t)
        c2, s2, z2 = DynamicQuantizeLinear(p) m2 = MatMulInteger(c2, v, z2, vz) f2 = Cast<to = 1>(m2)
        t2 = Mul(s2, vs) y = Mul(f2, t2) }}"""
    weights = {"w": codes(4, 5), "wz": np.uint8(120), "ws": np.float32(0.01)}
    model = text_model(text, **weights, v=codes(5, 3), vz=np.uint8(130), vs=np.float32(0.02))
    check(model, [floats(3, 4)])
    assert "return self.linear_2(self.linear(x))" in source(model)


@pytest.mark.parametrize("shape", [(1, -1, 1, 1), (1, 6, 1, 1)])
def test_a_convolution_is_one_module(shape):
    text = f"""{HEADER} g (float[1,3,7,7] x) => (float y) {{ {CONV} f = Cast<to = 1>(m) p = Mul(f, t)
        r = Reshape(b, n) y = Add(p, r) }}"""
    weights = {"w": codes(6, 3, 3, 3), "wz": np.uint8(100), "ws": np.float32(0.01)}
    model = text_model(text, **weights, b=floats(6), n=np.array(shape, np.int64))
    check(model, [floats(1, 3, 7, 7)])
    assert "DynamicConv(3, 6, (3, 3), padding=1, dtype=torch.uint8)" in source(model)


def test_a_bias_in_whole_steps_stays_one():
    text = f"""{HEADER} g (float[1,3,7,7] x) => (float y) {{ {CONV} d = Div(b, t) w0 = Floor(d) i = Cast<to = 6>(w0)
        r = Reshape(i, n) k = Add(m, r) f = Cast<to = 1>(k) t2 = Mul(s, ws) y = Mul(f, t2) }}"""
    weights = {"w": codes(6, 3, 3, 3), "wz": np.uint8(100), "ws": np.float32(0.01)}
    model = text_model(text, **weights, b=floats(6), n=np.array([1, -1, 1, 1], np.int64))
    check(model, [floats(1, 3, 7, 7)])
    assert "whole_bias=True" in source(model) and "return self.conv(x)" in source(model)


def test_sums_that_single_precision_does_not_hold_are_of_double():
    text = f"{HEADER} g (float[a,600] x) => (float y) {{ {LINEAR} y = Mul(f, t) }}"
    model = text_model(text, w=np.full((600, 2), 255, np.uint8), wz=np.uint8(0), ws=np.float32(0.01))
    check(model, [floats(3, 600)])
    assert "sums=torch.float64" in source(model)
