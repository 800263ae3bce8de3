"""Layers whose weights are kept in 8 bits, and values that are rounded to 8 bits between them."""

import numpy as np
import pytest
import torch
from harness import check, floats, source, text_model, to_torch

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


def codes(*shape: int, dtype: type = np.int8, seed: int = 0) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng([seed, *shape]).integers(info.min, info.max + 1, shape).astype(dtype)


def scales(*shape: int) -> np.ndarray:
    return np.abs(floats(*shape, seed=3)) / 50


@pytest.mark.parametrize(
    ("text", "size", "options"),
    [
        ("d = DequantizeLinear<axis = 1>(w, s) y = MatMul(x, d)", (5,), "bias=False, per_channel=True"),
        ("d = DequantizeLinear(w, s) p = MatMul(x, d) y = Add(b, p)", (), ""),
        ("d = DequantizeLinear<axis = 1>(w, s) y = Gemm(x, d, b)", (5,), "per_channel=True"),
    ],
    ids=["product", "one scale", "gemm"],
)
def test_a_linear_layer_keeps_its_weight_in_8_bits(text, size, options):
    model = text_model(
        f"{HEADER} g (float[a,4] x) => (float y) {{ {text} }}", w=codes(4, 5), s=scales(*size), b=floats(5)
    )
    check(model, [floats(3, 4)], atol=1e-4)
    assert f"Int8Linear({', '.join(filter(None, ['4, 5', options]))})" in source(model)


def test_codes_that_are_cast_and_scaled_are_such_a_weight():
    text = f"""{HEADER} g (float[a,60] x) => (float y) {{
        f = Cast<to = 1>(w) d = Mul(f, s) p = MatMul(x, d) y = Add(p, b) }}"""
    model = text_model(text, w=codes(60, 80), s=scales(1, 80), b=floats(80))
    check(model, [floats(3, 60)], atol=1e-3)
    assert "Int8Linear(60, 80, per_channel=True)" in source(model)


def test_a_transposed_weight_is_taken_as_it_is():
    text = f"""{HEADER} g (float[a,4] x) => (float y) {{
        d = DequantizeLinear<axis = 0>(w, s, z) y = Gemm<transB = 1>(x, d) }}"""
    model = text_model(text, w=codes(5, 4, dtype=np.uint8), s=scales(5), z=codes(5, dtype=np.uint8, seed=1))
    check(model, [floats(3, 4)], atol=1e-4)
    assert "Int8Linear(4, 5, bias=False, per_channel=True, dtype=torch.uint8)" in source(model)


def test_scales_of_the_other_axis_are_no_layer():
    text = f"{HEADER} g (float[a,4] x) => (float y) {{ d = DequantizeLinear<axis = 0>(w, s) y = MatMul(x, d) }}"
    model = text_model(text, w=codes(4, 5), s=scales(4))
    check(model, [floats(3, 4)], atol=1e-4)
    assert "Int8Linear" not in source(model)


def test_a_weight_that_something_else_reads_is_no_layers_own():
    text = f"""{HEADER} g (float[a,4] x, int64[n] i) => (float y, float e) {{
        d = DequantizeLinear<axis = 1>(w, s) y = MatMul(x, d) e = Gather(d, i) }}"""
    model = text_model(text, w=codes(4, 5), s=scales(5))
    check(model, [floats(3, 4), np.array([2, 0])], atol=1e-4)
    assert "Int8Linear" not in source(model)


@pytest.mark.parametrize("pads", ["[1, 1, 1, 1]", "[0, 1, 2, 1]"], ids=["even", "uneven"])
def test_a_convolution_has_a_bias_of_32_bits_as_floats(pads):
    text = f"""{HEADER} g (float[1,3,7,7] x) => (float y) {{ d = DequantizeLinear<axis = 0>(w, s)
        e = DequantizeLinear<axis = 0>(b, t) y = Conv<pads = {pads}>(x, d, e) }}"""
    bias = np.random.default_rng(0).integers(-9000, 9000, 6).astype(np.int32)
    model = text_model(text, w=codes(6, 3, 3, 3), s=scales(6), b=bias, t=scales(6) / 100)
    check(model, [floats(1, 3, 7, 7)], atol=1e-4)
    assert "Int8Conv(3, 6, (3, 3)" in source(model)
    net = to_torch(model)
    np.testing.assert_array_equal(net.conv.bias.detach().numpy(), bias.astype(np.float32) * (scales(6) / 100))
    net(torch.zeros(1, 3, 7, 7)).sum().backward()
    assert net.conv.bias.grad is not None


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("zero", [0, 7])
def test_rounding_is_one_call(dtype, zero):
    text = f"{HEADER} g (float[a] x) => (float y) {{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }}"
    text = text.replace('"" : 20', '"" : 21')
    model = text_model(text, s=np.float32(0.013), z=dtype(zero))
    x = np.concatenate([np.linspace(-9, 9, 41, dtype=np.float32), np.float32([0.0065, 0.0195, 1e9, -1e9])])
    check(model, [x], rtol=0, atol=1e-7)
    assert "return fake_quantize(x, 0.013, " + str(zero) in source(model)


def test_rounding_to_other_steps_is_none():
    text = f"{HEADER} g (float[a] x) => (float y) {{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, t, z) }}"
    model = text_model(text, s=np.float32(0.013), t=np.float32(0.02), z=np.uint8(3))
    check(model, [floats(9)])
    assert "fake_quantize" not in source(model)
