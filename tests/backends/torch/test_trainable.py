"""A converted model can be trained: what is a parameter, what train() and eval() do, what a step changes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import onward

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


def small_model() -> onnx.ModelProto:
    """Conv → BatchNormalization → Relu → Dropout → Gemm, the Gemm's weight in a Constant node."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)

    positive = numpy_helper.from_array(rng.random(4).astype(np.float32) + 0.5, "bn.var")
    nodes = [
        helper.make_node("Conv", ["x", "conv.w"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "bn.scale", "bn.b", "bn.mean", "bn.var"], ["b"], momentum=0.8),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Dropout", ["c", "ratio"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("Constant", [], ["head"], value=weight("head_value", 4, 3)),
        helper.make_node("MatMul", ["f", "head"], ["g"]),
        helper.make_node("Mul", ["g", "scale"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [
            weight("conv.w", 4, 2, 3, 3),
            weight("bn.scale", 4),
            weight("bn.b", 4),
            weight("bn.mean", 4),
            positive,
            numpy_helper.from_array(np.float32(0.5), "ratio"),
            numpy_helper.from_array(np.float32(2.0), "scale"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_float_weights_are_parameters_and_statistics_buffers() -> None:
    net = onward.to_torch(small_model())
    assert sum(p.numel() for p in net.parameters()) == 4 * 2 * 9 + 4 + 4 + 4 * 3
    buffers = {name.rpartition(".")[2] for name, _ in net.named_buffers()}
    assert buffers == {"running_mean", "running_var", "num_batches_tracked"}


def test_a_step_changes_every_parameter() -> None:
    net = onward.to_torch(small_model()).train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.nn.functional.cross_entropy(net(torch.randn(6, 2, 8, 8)), torch.arange(6) % 3).backward()
    optimizer.step()
    unchanged = [k for k, v in net.state_dict().items() if torch.equal(v, before[k])]
    assert unchanged == []


def test_train_and_eval() -> None:
    torch.manual_seed(0)
    net = onward.to_torch(small_model())
    x = torch.randn(16, 2, 8, 8)
    assert not net.training
    torch.testing.assert_close(net(x), net(x), atol=0, rtol=0)
    mean = next(b for name, b in net.named_buffers() if "mean" in name)
    before = mean.clone()
    net.train()
    assert not torch.equal(net(x), net(x)), "dropout drops in training mode"
    assert not torch.equal(mean, before), "running statistics follow the batches in training mode"
    net.eval()
    torch.testing.assert_close(net(x), net(x), atol=0, rtol=0)


def test_momentum_of_running_statistics() -> None:
    """ONNX's momentum is the share of the old value, PyTorch's the share of the new one."""
    net = onward.to_torch(small_model())
    norm = next(m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d))
    assert norm.momentum == pytest.approx(0.2)


def test_trainable_chooses_by_name() -> None:
    net = onward.to_torch(DIGITS, trainable=["head.*"])
    assert {name for name, p in net.named_parameters() if p.requires_grad} == {"head.weight", "head.bias"}
    assert all(not p.requires_grad for p in onward.to_torch(DIGITS, trainable=False).parameters())
    with pytest.raises(onward.OnwardError, match="no weight is called 'nose"):
        onward.to_torch(DIGITS, trainable=["nose.*"])


def test_trainable_makes_a_constant_a_parameter() -> None:
    net = onward.to_torch(small_model(), trainable=["*"])
    assert all(p.requires_grad for p in net.parameters())


def test_fine_tuning_lowers_the_loss() -> None:
    sample = np.load(DIGITS.parent / "sample.npz")
    images, labels = (torch.from_numpy(sample[k]) for k in ("image", "label"))
    net = onward.to_torch(DIGITS)
    with torch.no_grad():
        net.head.weight.mul_(0.01)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(images), labels.long())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
