"""Modules of several recurrent layers, as PyTorch's exporters write them."""

import contextlib
import io
import warnings

import numpy as np
import onnx
import pytest
import torch
from harness import check, floats, source, text_model, to_torch
from torch import Tensor, nn

T, B, N, H = 5, 3, 4, 6


class Net(nn.Module):
    def __init__(self, kind: str, given: bool, states: str, **options: object) -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(N, H, **options)
        self.given, self.states, self.is_lstm = given, states, kind == "LSTM"

    def forward(self, x: Tensor, h0: Tensor | None = None, c0: Tensor | None = None) -> tuple[Tensor, ...]:
        start = None if h0 is None else (h0, c0) if self.is_lstm else h0
        y, last = self.rnn(x, start)
        h, c = last if self.is_lstm else (last, last)
        return {"none": (y,), "all": (y, h, c), "last": (h[-1],)}[self.states]


def export(net: Net, inputs: tuple[Tensor, ...], dynamo: bool) -> onnx.ModelProto:
    file = io.BytesIO()
    names = ["x", "h0", "c0"][: len(inputs)]
    options = {"dynamo": True, "optimize": False} if dynamo else {"dynamo": False}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(net, inputs, file, input_names=names, opset_version=20, verbose=False, **options)
    return onnx.load_from_string(file.getvalue())


CASES = [
    ("LSTM", False, "none", {}, False),
    ("LSTM", False, "all", {"num_layers": 3, "batch_first": True}, False),
    ("LSTM", True, "all", {"num_layers": 2, "bidirectional": True}, False),
    ("LSTM", True, "last", {"num_layers": 2, "bias": False}, False),
    ("LSTM", False, "all", {"num_layers": 2, "bidirectional": True, "batch_first": True}, True),
    ("LSTM", True, "all", {"num_layers": 2}, True),
    ("GRU", False, "all", {"num_layers": 2, "batch_first": True}, False),
    ("GRU", True, "last", {"num_layers": 2, "bidirectional": True}, False),
    ("RNN", False, "all", {"num_layers": 2, "nonlinearity": "relu"}, False),
    ("RNN", True, "none", {"bidirectional": True, "batch_first": True}, False),
]


@pytest.mark.parametrize(("kind", "given", "states", "options", "dynamo"), CASES)
def test_one_module(kind, given, states, options, dynamo):
    torch.manual_seed(0)
    net = Net(kind, given, states, **options).eval()
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    x = torch.randn(B, T, N) if options.get("batch_first") else torch.randn(T, B, N)
    inputs = (x, *(torch.randn(layers, B, H) for _ in range(2 if kind == "LSTM" else 1))) if given else (x,)
    model = export(net, inputs, dynamo)
    with torch.no_grad():
        wanted = [y.numpy() for y in net(*inputs)]
    count = len(model.graph.output)
    check(model, [i.numpy() for i in inputs], expected=wanted[:count], unknown=not dynamo)
    text = source(model)
    arguments = ", ".join(
        [f"{N}, {H}", *(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v}" for k, v in options.items())]
    )
    assert text.count(f"nn.{kind}(") == 1
    for argument in arguments.split(", "):
        assert argument in text
    if dynamo:
        to_torch(model).load_state_dict(net.state_dict(), strict=True)


def test_keras_takes_a_state_that_is_given():
    net, inputs = Net("RNN", True, "none", batch_first=True).eval(), (torch.randn(B, T, N), torch.randn(1, B, H))
    with torch.no_grad():
        wanted = [y.numpy() for y in net(*inputs)]
    check(export(net, inputs, False), [i.numpy() for i in inputs], expected=wanted, backends=["keras"])


def layers(between: str) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """Two LSTM nodes with something between them."""
    text = f"""<ir_version: 10, opset_import: ["" : 20]> g (float[t,b,6] x) => (float[t,d,b,h] z, float[d,b,h] h2)
    <int64[1] one = {{1}}> {{
        y, h1, c1 = LSTM<hidden_size=6>(x, w1, r1)
        {between}
        z, h2, c2 = LSTM<hidden_size=6>(s, w2, r2, , , i, j)
    }}"""
    weights = {name: floats(1, 24, 6, seed=n) for n, name in enumerate(("w1", "r1", "w2", "r2"))}
    return text_model(text, **weights), [floats(T, B, 6)]


@pytest.mark.parametrize(
    ("between", "modules"),
    [
        ("s = Squeeze(y, one) i = Identity(h1) j = Identity(c1)", 2),
        ("s = Squeeze(y, one) i = Sub(h1, h1) j = Sub(c1, c1)", 2),
        ("q = Squeeze(y, one) s = Relu(q) i = Sub(h1, h1) j = Sub(c1, c1)", 2),
    ],
)
def test_layers_that_belong_together_only_in_part(between, modules):
    """The second layer starts from what the first one ends with: no single module does that."""
    model, feed = layers(between)
    check(model, feed)
    assert source(model).count("nn.LSTM(6, 6") == modules


def test_weights_put_together_once():
    """Also for a layer that no module computes: its weights are constants, not a computation at every run."""
    text = f"""<ir_version: 10, opset_import: ["" : 20]> g (float[t,b,{N}] x) => (float[t,d,b,h] y)
    <int64[1] zero = {{0}}, int64[1] middle = {{12}}, int64[1] end = {{100}}> {{
        a = Slice(w, zero, middle, zero) c = Slice(w, middle, end, zero) j = Concat<axis=0>(c, a)
        u = Unsqueeze(j, zero)
        y = LSTM<hidden_size={H}, activations=["HardSigmoid", "Tanh", "Tanh"]>(x, u, r)
    }}"""
    model = text_model(text, w=floats(4 * H, N), r=floats(1, 4 * H, H))
    check(model, [floats(T, B, N)])
    assert "torch.cat" not in source(model)
