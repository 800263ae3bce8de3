"""Activation functions and normalisations that exporters write out."""

import re

import numpy as np
import pytest
from harness import check, floats, source, text_model

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
X = np.concatenate([floats(2, 3, 20) * 3, np.array([[[0.0] * 20] * 3] * 2, np.float32)], 1)

GELU = "F.gelu(x)"
TANH = 'F.gelu(x, approximate="tanh")'


def activation(body: str) -> str:
    return f"""{HEADER} g (float[a,b,c] x) => (float y)
    <float half = {{0.5}}, float one = {{1}}, float two = {{2}}, float three = {{3}}, float six = {{6}},
     float zero = {{0}}, float root = {{1.41421354}}, float inv = {{0.70710677}}, float k = {{0.79788458}},
     float[1,1,1,1] raised = {{1}}, float c = {{0.044715}},
     float alpha = {{1.702}}, float wrong = {{0.6}}> {{ {body} }}"""


ACTIVATIONS = [
    ("a = Div(x, root) b = Erf(a) d = Add(b, one) e = Mul(x, d) y = Mul(e, half)", GELU),
    ("h = Mul(half, x) a = Mul(x, inv) b = Erf(a) d = Add(one, b) y = Mul(h, d)", GELU),
    ("a = Div(x, root) b = Erf(a) d = Add(b, one) e = Div(d, two) y = Mul(x, e)", GELU),
    (
        "p = Pow(x, three) q = Mul(p, c) r = Add(x, q) s = Mul(r, k) t = Tanh(s) u = Add(t, one) "
        "v = Mul(x, half) y = Mul(v, u)",
        TANH,
    ),
    (
        "a = Mul(x, x) p = Mul(x, a) q = Mul(c, p) r = Add(x, q) s = Mul(k, r) t = Tanh(s) u = Add(t, one) "
        "v = Mul(half, u) y = Mul(x, v)",
        TANH,
    ),
    (
        "a = Mul(x, x) q = Mul(c, a) r = Add(one, q) w = Mul(x, k) s = Mul(w, r) t = Tanh(s) u = Add(one, t) "
        "v = Mul(half, u) y = Mul(x, v)",
        TANH,
    ),
    ("s = Sigmoid(x) y = Mul(x, s)", "F.silu(x)"),
    ("s = Sigmoid(x) y = Mul(s, x)", "F.silu(x)"),
    ("m = Mul(x, alpha) s = Sigmoid(m) y = Mul(x, s)", "1.702"),
    ("a = Add(x, three) b = Clip(a, zero, six) d = Mul(x, b) y = Div(d, six)", "F.hardswish(x)"),
    ("a = Add(x, three) b = Clip(a, zero, six) d = Div(b, six) y = Mul(x, d)", "F.hardswish(x)"),
    ("h = HardSigmoid<alpha=0.1666666667, beta=0.5>(x) y = Mul(x, h)", "F.hardswish(x)"),
    ("s = Softplus(x) t = Tanh(s) y = Mul(x, t)", "F.mish(x)"),
    ("n = Neg(x) e = Exp(n) d = Add(one, e) y = Div(one, d)", "torch.sigmoid(x)"),
    ("n = Neg(x) e = Exp(n) d = Add(e, one) y = Reciprocal(d)", "torch.sigmoid(x)"),
]
LOOKALIKES = [
    "a = Mul(x, wrong) b = Erf(a) d = Add(b, one) e = Mul(x, d) y = Mul(e, half)",
    "a = Div(x, root) b = Erf(a) d = Add(b, one) e = Mul(x, d) y = Mul(e, wrong)",
    "a = Div(x, root) b = Erf(a) d = Add(b, one) z = Neg(x) e = Mul(z, d) y = Mul(e, half)",
    "p = Pow(x, two) q = Mul(p, c) r = Add(x, q) s = Mul(r, k) t = Tanh(s) u = Add(t, one) "
    "v = Mul(x, half) y = Mul(v, u)",
    "z = Neg(x) s = Sigmoid(z) y = Mul(x, s)",
    "a = Add(x, three) b = Clip(a, zero, three) d = Mul(x, b) y = Div(d, six)",
    "h = HardSigmoid(x) y = Mul(x, h)",
    "n = Neg(x) e = Exp(n) d = Add(e, raised) y = Reciprocal(d)",
    "n = Neg(x) e = Exp(n) d = Add(e, two) y = Reciprocal(d)",
    "a = Div(x, root) b = Erf(a) d = Add(b, raised) e = Mul(x, d) y = Mul(e, half)",
    "m = Mul(x, raised) s = Sigmoid(m) y = Mul(x, s)",
    "z = Div(x, zero) s = Sigmoid(z) y = Mul(x, s)",
]
"""Other numbers, other inputs, and numbers of a shape (1, 1, 1, 1) that give the result another rank."""


@pytest.mark.parametrize(("body", "expected"), ACTIVATIONS)
def test_recognised(body, expected):
    model = text_model(activation(body))
    check(model, [X])
    assert expected in source(model)


@pytest.mark.parametrize("body", LOOKALIKES)
def test_lookalikes_stay_what_they_are(body):
    model = text_model(activation(body))
    check(model, [X])
    assert not any(name in source(model) for name in ("gelu", "silu", "hardswish(", "mish"))
    assert bool(re.search(r"\bsigmoid\(", source(model))) == (" Sigmoid(" in body)


def normalisation(body: str) -> str:
    return f"""{HEADER} g (float[a,b,20] x) => (float[a,b,20] y)
    <float eps = {{1e-4}}, float two = {{2}}, float half = {{0.5}}, int64[1] axis = {{-1}}, int64[1] middle = {{1}}>
    {{ {body} }}"""


NORMS = [
    (
        "m = ReduceMean(x, axis) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, axis) e = Add(v, eps) s = Sqrt(e) "
        "n = Div(d, s) w = Mul(n, weight) y = Add(w, bias)",
        "nn.LayerNorm(20, eps=0.0001)",
    ),
    (
        "m = ReduceMean(x, axis) d = Sub(x, m) d2 = Sub(x, m) p = Mul(d2, d2) v = ReduceMean(p, axis) "
        "e = Add(v, eps) s = Sqrt(e) i = Reciprocal(s) n = Mul(d, i) w = Mul(weight, n) y = Add(bias, w)",
        "nn.LayerNorm(20, eps=0.0001)",
    ),
    (
        "m = ReduceMean(x, axis) d = Sub(x, m) p = Mul(d, d) v = ReduceMean(p, axis) e = Add(v, eps) q = Sqrt(e) "
        "r = Reciprocal(q) s = Mul(r, weight) t = Mul(m, s) u = Sub(bias, t) w = Mul(x, s) y = Add(w, u)",
        "nn.LayerNorm(20, eps=0.0001)",
    ),
    (
        "m = ReduceMean(x, axis) d = Sub(x, m) p = Mul(d, d) v = ReduceMean(p, axis) e = Add(v, eps) q = Sqrt(e) "
        "r = Reciprocal(q) s = Mul(r, weight) t = Mul(v, s) u = Sub(bias, t) w = Mul(x, s) y = Add(w, u)",
        "",
    ),
    (
        "p = Pow(x, two) v = ReduceMean(p, axis) e = Add(v, eps) s = Sqrt(e) n = Div(x, s) y = Mul(n, weight)",
        "nn.RMSNorm(20, eps=0.0001)",
    ),
    (
        "m = ReduceMean(x, axis) d = Sub(x, m) p = Mul(x, x) v = ReduceMean(p, axis) e = Add(v, eps) s = Sqrt(e) "
        "n = Div(d, s) w = Mul(n, weight) y = Add(w, bias)",
        "",
    ),
    (
        "m = ReduceMean(x, middle) d = Sub(x, m) p = Pow(d, two) v = ReduceMean(p, middle) e = Add(v, eps) "
        "s = Sqrt(e) n = Div(d, s) w = Mul(n, weight) y = Add(w, bias)",
        "",
    ),
]


@pytest.mark.parametrize(("body", "expected"), NORMS)
def test_normalisation(body, expected):
    weights = {"weight": floats(20), "bias": floats(20, seed=1)}
    model = text_model(normalisation(body), **(weights if "bias" in body else {"weight": weights["weight"]}))
    check(model, [X])
    text = source(model)
    assert expected in text and (expected or "Norm" not in text)


NARROW = """<ir_version: 10, opset_import: ["" : 20]> g (float16[a,b,20] x) => (float16 y)
<float two = {2}, float eps = {0.00001}, int64[1] last = {-1}> {
    w = Cast<to = 1>(x) m = ReduceMean(w, last) d = Sub(w, m) q = Pow(d, two) v = ReduceMean(q, last)
    e = Add(v, eps) s = Sqrt(e) n = Div(d, s) h = Cast<to = 10>(n) p = Mul(h, weight) y = Add(p, bias)
}"""


def test_a_normalisation_of_narrow_numbers_in_single_precision_is_one_layer():
    weights = {"weight": floats(20).astype(np.float16), "bias": floats(20, seed=1).astype(np.float16)}
    model = text_model(NARROW, **weights)
    check(model, [X.astype(np.float16)])
    assert "nn.LayerNorm(20, dtype=torch.float16)" in source(model)


POOLED = """<ir_version: 10, opset_import: ["" : 20]> g (float[a,b,20] x) => (float y) <float eps = {0.00001}> {
    m = GlobalAveragePool(x) d = Sub(x, m) q = Mul(d, d) v = GlobalAveragePool(q) e = Add(v, eps) s = Sqrt(e)
    i = Reciprocal(s) f = Mul(i, weight) a = Mul(x, f) b2 = Mul(m, f) c2 = Sub(bias, b2) y = Add(a, c2)
}"""


def test_a_pool_over_the_last_axis_is_a_mean():
    model = text_model(POOLED, weight=floats(20), bias=floats(20, seed=1))
    check(model, [X])
    assert "nn.LayerNorm(20)" in source(model)
