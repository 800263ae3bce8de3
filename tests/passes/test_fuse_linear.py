"""Linear layers with all that belongs to them."""

import pytest
from harness import check, floats, source, text_model

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


@pytest.mark.parametrize("shape", [(5,), (1, 5), (1, 1, 5)])
def test_a_constant_for_each_feature_is_the_bias(shape):
    text = HEADER + "g (float[a,b,4] x) => (float y) { p = MatMul(x, w) y = Add(bias, p) }"
    model = text_model(text, w=floats(4, 5), bias=floats(*shape, seed=1))
    check(model, [floats(2, 3, 4)])
    assert "nn.Linear(4, 5)" in source(model) and "+" not in source(model)


@pytest.mark.parametrize("shape", [(3, 5), (1, 1, 1, 5), (1,)])
def test_a_constant_that_is_more_or_less_is_added(shape):
    text = HEADER + "g (float[a,3,4] x) => (float y) { p = MatMul(x, w) y = Add(p, bias) }"
    model = text_model(text, w=floats(4, 5), bias=floats(*shape, seed=1))
    check(model, [floats(2, 3, 4)])
    assert "nn.Linear(4, 5, bias=False)" in source(model)


def test_a_layer_over_flattened_axes_is_one_over_all_of_them():
    text = f"""{HEADER} g (float[a,b,4] x) => (float[c,d,5] y)
    <int64[2] flat = {{-1, 4}}, int64[1] n = {{5}}, int64[1] two = {{2}}, int64[1] nil = {{0}}> {{
        s = Shape(x) front = Slice(s, nil, two) back = Concat<axis = 0>(front, n)
        r = Reshape(x, flat) p = MatMul(r, w) q = Reshape(p, back) y = Add(q, bias)
    }}"""
    model = text_model(text, w=floats(4, 5), bias=floats(5, seed=1))
    check(model, [floats(2, 3, 4)], unknown=False)
    assert "return self.linear(x)" in source(model) and "x.reshape" not in source(model)


@pytest.mark.parametrize("size", [5, 1])
def test_a_product_with_a_row_over_flattened_axes_is_one_over_all_of_them(size):
    """As GPT-2's layers are exported."""
    text = f"""{HEADER} g (float[a,b,4] x) => (float[c,d,5] y)
    <int64[2] flat = {{-1, 4}}, int64[1] n = {{5}}, int64[1] two = {{2}}, int64[1] nil = {{0}}> {{
        s = Shape(x) front = Slice(s, nil, two) back = Concat<axis = 0>(front, n)
        r = Reshape(x, flat) p = Gemm(r, w, bias) y = Reshape(p, back)
    }}"""
    model = text_model(text, w=floats(4, 5), bias=floats(size, seed=1))
    check(model, [floats(2, 3, 4)], unknown=False)
    assert ("return self.linear(x)" in source(model)) is (size == 5)
