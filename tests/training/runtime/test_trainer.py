"""Training steps against PyTorch's, from the same start on the same data; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from small_networks import CLASSES, batches, network, onnx_of
from torch import nn

from onward.errors import InvalidDataError, OnwardError
from onward.model import load
from onward.training.recipe.losses import CrossEntropy
from onward.training.recipe.optimizers import LAMB, SGD, AdamW, Optimizer
from onward.training.runtime.trainer import DivergedError, Trainer
from onward.training.runtime.update import written_in_place
from onward.training.trainable import prepare
from onward.verification.verify import verify

STEPS = 50
OPTIMIZERS: dict[str, tuple[Optimizer, type[torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (SGD(lr=0.1, momentum=0.9), torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "adamw": (AdamW(lr=1e-2), torch.optim.AdamW, {"lr": 1e-2}),
}


def torch_steps(net: nn.Module, optimizer: torch.optim.Optimizer, data: list[Any]) -> list[float]:
    net.train()
    losses = []
    for x, y in data:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("how", OPTIMIZERS)
@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm"])
def test_curve_is_that_of_pytorch(name: str, how: str) -> None:
    net, data = network(name), batches(name, 10) * (STEPS // 10)
    ours, theirs, options = OPTIMIZERS[how]
    source = onnx_of(net, data[0][0])
    trainer = Trainer(prepare(source, optimizer=ours), threads=1)
    losses = [trainer.step({"x": x, "labels": y}) for x, y in data]
    expected = torch_steps(net, theirs(net.parameters(), **options), data)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert expected[-1] < 0.9 * expected[0], "nothing was learnt: the comparison would say little"

    assert trainer.parameters.keys() == dict(net.named_parameters()).keys()
    statistics = {key: value for key, value in net.named_buffers() if "running" in key}
    assert trainer.buffers.keys() == statistics.keys()
    for key, value in statistics.items():
        np.testing.assert_allclose(trainer.buffers[key], value.numpy(), rtol=1e-3, atol=1e-4)

    tuned = load(trainer.tuned().to_proto())
    with torch.inference_mode():
        wanted = net.eval()(data[0][0]).numpy()
    report = verify(tuned, load(onnx_of(net, data[0][0])), inputs={"x": data[0][0].numpy()}, rtol=1e-3, atol=1e-3)
    assert report.status == "same"
    before = verify(tuned, load(source), inputs={"x": data[0][0].numpy()}, rtol=1e-3, atol=1e-3)
    assert before.status == "different"
    assert wanted.shape == (16, CLASSES)


def test_a_file_exported_for_training_trains_as_one_for_inference() -> None:
    net, data = network("cnn"), batches("cnn", 5)
    ours, theirs, options = OPTIMIZERS["sgd"]
    trainer = Trainer(prepare(onnx_of(net, data[0][0], training=True), optimizer=ours), threads=1)
    losses = [trainer.step({"x": x, "labels": y}) for x, y in data]
    np.testing.assert_allclose(losses, torch_steps(net, theirs(net.parameters(), **options), data), rtol=1e-4)


def test_evaluation_is_in_inference_mode() -> None:
    net, data = network("cnn"), batches("cnn", 20)
    ours, theirs, options = OPTIMIZERS["sgd"]
    trainer = Trainer(prepare(onnx_of(net, data[0][0]), optimizer=ours), threads=1)
    for x, y in data:
        trainer.step({"x": x, "labels": y})
    torch_steps(net, theirs(net.parameters(), **options), data)
    x, y = (torch.cat(parts) for parts in zip(*batches("cnn", 5, seed=2), strict=True))
    before = {key: array.copy() for key, array in (trainer.parameters | trainer.buffers).items()}
    found = trainer.evaluate({"x": x, "labels": y}, batch=33)
    with torch.inference_mode():
        scores = net.eval()(x)
    assert found["loss"] == pytest.approx(F.cross_entropy(scores, y).item(), rel=1e-4)
    assert found["accuracy"] == (scores.argmax(1) == y).sum().item() / len(y)
    assert all(np.array_equal(before[key], now) for key, now in (trainer.parameters | trainer.buffers).items())


def test_dropout_is_off_in_evaluation_and_follows_the_seed_in_training() -> None:
    net, data = network("dropout"), batches("dropout", 6)
    source = onnx_of(net, data[0][0], training=True)

    def curve(seed: int) -> list[float]:
        trainer = Trainer(prepare(source, optimizer=SGD(lr=0.1)), threads=1, seed=seed)
        with torch.inference_mode():
            plain = F.cross_entropy(net.eval()(data[0][0]), data[0][1]).item()
        assert trainer.evaluate([data[0]])["loss"] == pytest.approx(plain, rel=1e-5)
        return [trainer.step({"x": x, "labels": y}) for x, y in data]

    first = curve(0)
    assert first == curve(0)
    assert first != curve(1)


def test_gradients_are_accumulated() -> None:
    net, data = network("mlp"), batches("mlp", 8)
    source = onnx_of(net, data[0][0])
    whole = Trainer(prepare(source, optimizer=AdamW(lr=1e-2)), threads=1)
    parts = Trainer(prepare(source, optimizer=AdamW(lr=1e-2), accumulate=2), threads=1)
    for (x1, y1), (x2, y2) in zip(data[::2], data[1::2], strict=True):
        both = whole.step({"x": torch.cat([x1, x2]), "labels": torch.cat([y1, y2])})
        halves = [parts.step({"x": x, "labels": y}) for x, y in ((x1, y1), (x2, y2))]
        assert both == pytest.approx(sum(halves) / 2, rel=1e-5)
    assert parts.steps == whole.steps == 4
    for name, array in whole.parameters.items():
        np.testing.assert_allclose(parts.parameters[name], array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("clip", [None, 0.1])
def test_the_whole_update_is_that_of_pieces(clip: float | None) -> None:
    """An optimizer that looks at more than an element runs as one graph, in place as far as that is right."""
    net, data = network("mlp"), batches("mlp", 4)
    trainer = Trainer(prepare(onnx_of(net, data[0][0]), optimizer=AdamW(lr=1e-2), clip_norm=clip), threads=1)
    theirs = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for x, y in data:
        loss = F.cross_entropy(net(x), y)
        theirs.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        theirs.step()
        assert trainer.step({"x": x, "labels": y}) == pytest.approx(loss.item(), rel=1e-4)


def test_what_is_still_read_is_not_written_over() -> None:
    """`m.next` reads `w`, which `w.next` must not have replaced by then."""
    names = ["w", "g", "m"]
    inputs = [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in names]
    nodes = [oh.make_node("Sub", ["w", "g"], ["w.next"]), oh.make_node("Add", ["m", "w"], ["m.next"])]
    outputs = [oh.make_tensor_value_info(f"{name}.next", onnx.TensorProto.FLOAT, [3]) for name in ("w", "m")]
    graph = load(oh.make_model(oh.make_graph(nodes, "g", inputs, outputs))).ir.graph
    assert written_in_place(graph) == {"m.next"}


def test_lamb_goes_by_parameter() -> None:
    data = batches("mlp", 3)
    trainer = Trainer(prepare(onnx_of(network("mlp"), data[0][0]), optimizer=LAMB(lr=1e-2)), threads=1)
    losses = [trainer.step({"x": data[0][0], "labels": data[0][1]}) for _ in range(10)]
    assert losses[-1] < losses[0]


def constant_model() -> onnx.ModelProto:
    """A weight in a Constant node, as some exporters write them."""
    weight = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    nodes = [
        oh.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight)),
        oh.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    x, y = (oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n", d]) for n, d in (("x", 5), ("y", 3)))
    return oh.make_model(oh.make_graph(nodes, "g", [x], [y]), opset_imports=[oh.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("choice", [None, ["w"]])
def test_weights_in_constant_nodes_are_trained_and_saved(choice: list[str] | None) -> None:
    trainer = Trainer(prepare(constant_model(), loss="mse", optimizer=SGD(lr=0.1), trainable=choice))
    x = np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32)
    for _ in range(3):
        trainer.step({"x": x, "labels": np.zeros((8, 3), np.float32)})
    found = verify(trainer.tuned(), load(constant_model()), inputs={"x": x})
    assert found.status == "different"
    assert np.array_equal(
        numpy_helper.to_array(trainer.tuned().to_proto().graph.node[0].attribute[0].t), trainer.parameters["w"]
    )


X, Y = np.zeros((4, 12), np.float32), np.zeros(4, np.int64)
BAD = {
    "missing": ({"x": X}, "the batch has no 'labels'; a step takes 'x', 'labels'"),
    "unknown": ({"x": X, "labels": Y, "z": Y}, "a step takes no 'z'"),
    "shape": ({"x": X[:, :5], "labels": Y}, r"'x' is of shape \[4, 5\], but a step takes \['n', 12\]"),
    "rank": ({"x": X[0], "labels": Y}, r"'x' is of shape \[12\]"),
    "sizes": ({"x": X, "labels": Y[:3]}, "'n' is 4 in 'x', but 3 in 'labels'"),
    "empty": ({"x": X[:0], "labels": Y[:0]}, "it is empty"),
    "dtype": ({"x": X, "labels": Y + 0.5}, "'labels' is of float64, but a step takes int64"),
    "text": ({"x": X.astype(str), "labels": Y}, "'x' is of <U32, but a step takes float32"),
    "high": (
        {"x": X, "labels": np.array([0, 0, 4, 9])},
        r"'labels' at 2 is 4 \(and 1 more\), but there are 4 classes, 0 to 3",
    ),
    "negative": ({"x": X, "labels": np.array([0, -1, 0, 0])}, "'labels' at 1 is -1, but there are 4 classes"),
}


@pytest.fixture(scope="module")
def mlp() -> bytes:
    return onnx_of(network("mlp"), batches("mlp", 1)[0][0])


@pytest.mark.parametrize("case", BAD)
def test_a_bad_batch_is_refused(case: str, mlp: bytes) -> None:
    batch, message = BAD[case]
    trainer = Trainer(prepare(mlp))
    before = trainer.parameters["0.weight"].copy()
    with pytest.raises(InvalidDataError, match=message):
        trainer.step(batch)
    assert np.array_equal(before, trainer.parameters["0.weight"]) and trainer.steps == 0


def test_the_class_to_ignore_is_no_error_and_does_not_count(mlp: bytes) -> None:
    trainer = Trainer(prepare(mlp, loss=CrossEntropy(ignore_index=-100)))
    x = np.random.default_rng(0).normal(size=(4, 12)).astype(np.float32)
    whole = trainer.evaluate({"x": x, "labels": np.array([0, -100, 2, -100])})
    half = trainer.evaluate({"x": x[::2], "labels": np.array([0, 2])})
    assert whole == pytest.approx(half, rel=1e-6)
    with pytest.raises(InvalidDataError, match="'labels' at 0 is -99"):
        trainer.step({"x": x, "labels": np.array([-99, 0, 0, 0])})


def test_a_loss_that_is_no_number_is_explained(mlp: bytes) -> None:
    trainer = Trainer(prepare(mlp, optimizer=SGD(lr=0.1)))
    x, y = batches("mlp", 1)[0]
    poisoned = x.clone()
    poisoned[0, 0] = torch.nan
    with pytest.raises(DivergedError, match="the loss is nan at step 1: 1 of 192 numbers of 'x' in the batch"):
        trainer.step({"x": poisoned, "labels": y})
    with pytest.raises(DivergedError, match=r"at step 1: the first bad tensor is \w+ of Gemm.* smaller learning rate"):
        trainer.step({"x": x.sign() * 3e38, "labels": y})
    trainer.step({"x": x, "labels": y})
    trainer.parameters["3.bias"][1] = np.inf
    with pytest.raises(DivergedError, match=r"at step 2: the weight 3\.bias has 1 numbers .* smaller learning rate"):
        trainer.step({"x": x, "labels": y})


def test_running_statistics_outlive_a_bad_batch() -> None:
    x, y = batches("cnn", 1)[0]
    trainer = Trainer(prepare(onnx_of(network("cnn"), x)))
    trainer.step({"x": x, "labels": y})
    before = {name: array.copy() for name, array in trainer.buffers.items()}
    with pytest.raises(DivergedError):
        trainer.step({"x": x * torch.nan, "labels": y})
    assert all(np.array_equal(array, trainer.buffers[name]) for name, array in before.items())


def test_weights_that_could_not_be_saved_are_refused_before_training(mlp: bytes) -> None:
    trainable = prepare(mlp)
    trainable.original.ir.graph.initializers["0.weight"].name = "other"
    with pytest.raises(OnwardError, match=r"holds no weight '0\.weight'"):
        Trainer(trainable)


def test_a_batch_is_a_dict() -> None:
    trainer = Trainer(prepare(onnx_of(network("mlp"), torch.randn(4, 12))))
    with pytest.raises(InvalidDataError, match="a batch is a dict of arrays by name, 'x', 'labels'"):
        trainer.step((torch.randn(4, 12), torch.zeros(4)))  # type: ignore[arg-type]
