"""Arithmetic that changes nothing is left out, and what looks like it is not."""

import numpy as np
import pytest
from harness import check, floats, source, text_model

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
X = np.concatenate([floats(2, 4), np.array([[0.0, -0.0, 0.0, -0.0]], np.float32)])


def model(body: str):
    numbers = "float one = {1}, float[1,1] row = {1}, float nil = {0}, float minus = {-0.0}, float[1,1,1] deep = {1}"
    return text_model(f"{HEADER} g (float[n,4] x) => (float y) <{numbers}> {{ {body} }}")


def returned(body: str) -> str:
    """What the generated model computes, in one line."""
    text = source(model(body))
    return text[text.index("def forward") :].split("return ")[1].split("\n")[0]


LEFT_OUT = {
    "a = Mul(x, one) y = Tanh(a)": "torch.tanh(x)",
    "a = Mul(row, x) y = Tanh(a)": "torch.tanh(x)",
    "a = Div(x, one) y = Tanh(a)": "torch.tanh(x)",
    "a = Sub(x, nil) y = Reciprocal(a)": "torch.reciprocal(x)",
    "a = Add(minus, x) y = Reciprocal(a)": "torch.reciprocal(x)",
    "a = Add(x, nil) y = Softmax(a)": "torch.softmax(x, dim=-1)",
    "a = Mul(x, one) b = Add(a, nil) c = Relu(b) y = Exp(c)": "torch.exp(F.relu(x))",
    "y = Mul(x, one)": "x",
}


@pytest.mark.parametrize("body", LEFT_OUT)
def test_what_changes_nothing_is_left_out(body):
    check(model(body), [X])
    assert returned(body) == LEFT_OUT[body]


@pytest.mark.parametrize(
    "body",
    [
        "a = Add(x, nil) y = Reciprocal(a)",
        "a = Add(x, nil) b = Neg(a) y = Div(one, b)",
        "a = Sub(x, minus) y = Reciprocal(a)",
        "a = Div(one, x) y = Tanh(a)",
        "a = Sub(nil, x) y = Tanh(a)",
        "a = Mul(x, deep) y = Tanh(a)",
    ],
)
def test_what_changes_something_stays(body):
    check(model(body), [X])
    assert returned(body) not in ("torch.tanh(x)", "torch.reciprocal(x)", "1.0 / -x")
