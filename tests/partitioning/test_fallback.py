"""What PyTorch has no rule for stays ONNX inside the module: the same numbers, and it trains."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import onward
from onward.backends.backend import backend
from onward.errors import OnwardError, UnsupportedError
from onward.partitioning.fallback import with_fallback
from onward.partitioning.graph import graph_of, ready

WARPED = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (float[m, 4] x) => (int32[2, k] path, float[m, 3] y)
<float[4, 3] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.7, 0.8, 0.9, 1.0, 1.1, 1.2}> {
    y = MatMul(x, w)
    path = com.microsoft.DynamicTimeWarping(y)
}"""
"""It traces a path through a matrix of costs."""


def digits(*ops: str) -> tuple[onward.Model, Any]:
    """The network of digits, some ops of which stay ONNX."""
    model = onward.load("examples/digits/digits.onnx")
    nodes = graph_of(ready(model)).nodes
    chosen = {node.name or "" for node in nodes if node.op_type in ops}
    made, parts = with_fallback(model, "torch", chosen)
    assert parts
    one = backend("torch")
    return model, one.load(one.generate(made))


def test_an_op_that_only_onnx_runtime_has_stays_onnx(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="DynamicTimeWarping"):
        onward.to_torch(onnx.parser.parse_model(WARPED))
    done = onward.convert(onnx.parser.parse_model(WARPED), to="torch", out=tmp_path / "net", fallback="onnxruntime")
    assert [verdict.status for verdict in done.verdicts] == ["verified"]
    assert "DynamicTimeWarping" in done.remarks[0] and "ONNX Runtime" in done.remarks[0]
    assert "onnx_part(" in (tmp_path / "net" / "model.py").read_text()
    assert "onward." not in (tmp_path / "net" / "ops.py").read_text()


def test_a_model_that_pytorch_takes_has_no_parts(tmp_path: Path) -> None:
    done = onward.convert("examples/digits/digits.onnx", to="torch", out=tmp_path / "net", fallback="onnxruntime")
    assert "onnx_part" not in (tmp_path / "net" / "model.py").read_text()
    assert not any("ONNX Runtime" in remark for remark in done.remarks)


def test_gradients_pass_through_parts_and_reach_their_weights() -> None:
    model, net = digits("BatchNormalization", "Relu")
    whole = onward.to_torch(model, check=False)
    x = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(1), requires_grad=True)
    own, theirs = dict(net.named_parameters()), dict(whole.named_parameters())
    assert own.keys() == theirs.keys()
    found = torch.autograd.grad(net(x).square().sum(), [x, *own.values()])
    expected = torch.autograd.grad(whole(x).square().sum(), [x, *(theirs[name] for name in own)])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()) + 1e-6)


def test_a_module_with_parts_learns() -> None:
    _, net = digits("BatchNormalization", "Relu")
    draw = torch.Generator().manual_seed(2)
    x, labels = torch.randn(16, 1, 8, 8, generator=draw), torch.randint(0, 10, (16,), generator=draw)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_a_module_with_parts_is_exported_with_an_open_batch() -> None:
    model, net = digits("BatchNormalization")
    program = torch.export.export(net, (torch.randn(3, 1, 8, 8),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    x = torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(program.module()(x), onward.to_torch(model, check=False)(x), rtol=1e-4, atol=1e-4)


def test_what_is_beside_a_part_without_a_derivative_trains() -> None:
    net = onward.to_torch(onnx.parser.parse_model(WARPED), fallback="onnxruntime")
    path, y = net(torch.randn(6, 4))
    assert path.dtype == torch.int32 and not path.requires_grad
    y.sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_finite_differences_agree() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (double[n, 3] x) => (double[n, 2] y)
    <double[3, 2] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6}> {
        a = Tanh(x)
        b = MatMul(a, w)
        y = Mul(b, b)
    }"""
    model = onward.load(onnx.parser.parse_model(text))
    names = {node.op_type: node.name or "" for node in graph_of(ready(model)).nodes}
    made, _ = with_fallback(model, "torch", {names["MatMul"], names["Mul"]})
    one = backend("torch")
    net = one.load(one.generate(made))
    x = torch.tensor(np.random.default_rng(0).standard_normal((4, 3)), requires_grad=True)
    assert torch.autograd.gradcheck(net, (x,))


def test_a_custom_op_stays_onnx_and_trains() -> None:
    """Its kernel is in a library of another package, its gradient in a plugin."""
    pytest.importorskip("onnxruntime_extensions")
    text = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.contrib" : 1]> g (float[3, 3] x) => (float[3, 3] y)
    <float[3, 3] w = {4, 1, 0, 0, 5, 1, 1, 0, 6}> {
        a = Add(x, w)
        b = ai.onnx.contrib.Inverse(a)
        y = MatMul(b, x)
    }"""
    model = onward.load(onnx.parser.parse_model(text))
    inverse = next(node.name or "" for node in graph_of(ready(model)).nodes if node.op_type == "Inverse")
    made, parts = with_fallback(model, "torch", {inverse})
    assert [node.op_type for part in parts for node in part.nodes] == ["Inverse"]
    one = backend("torch")
    net = one.load(one.generate(made))
    (w,) = net.parameters()
    x = torch.eye(3) + 0.1
    torch.testing.assert_close(net(x), torch.linalg.inv(x + w) @ x)
    losses = []
    for _ in range(10):
        loss = (net(x) - 0.3).square().sum()
        (gradient,) = torch.autograd.grad(loss, [w])
        wanted = torch.autograd.functional.jacobian(
            lambda w: (torch.linalg.inv(x + w) @ x - 0.3).square().sum(), w.detach()
        )
        torch.testing.assert_close(gradient, wanted, rtol=1e-3, atol=1e-5)
        losses.append(loss.item())
        with torch.no_grad():
            w -= 0.5 * gradient
    assert losses[-1] < losses[0]


def test_another_fallback_or_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OnwardError, match="the fallback is onnxruntime"):
        onward.convert("examples/digits/digits.onnx", to="torch", out=tmp_path / "net", fallback="openvino")
    with pytest.raises(OnwardError, match=r"is for .*torch.* `onward partition MODEL --for tensorflow`"):
        onward.convert("examples/digits/digits.onnx", to="tensorflow", out=tmp_path / "net", fallback="onnxruntime")
