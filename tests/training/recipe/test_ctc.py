"""CTC, values and gradients, against torch.nn.functional.ctc_loss."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from gradient_checks import check_second_order, forget_shapes
from onnx import helper, numpy_helper
from onnx_ir.passes.common import RemoveUnusedNodesPass
from torch import nn

from onward.cli import main
from onward.errors import InvalidDataError, OnwardError, RunFailure
from onward.model import Model
from onward.training.autodiff.derivatives import gradient
from onward.training.capture.torch import from_torch
from onward.training.export import to_torch_package
from onward.training.export.normalised import is_normalised
from onward.training.export.plan import outputs_inside
from onward.training.export.torch.words import loss_call
from onward.training.info.read import load
from onward.training.recipe.ctc import CTC
from onward.training.recipe.optimizers import AdamW
from onward.training.runtime.divergence import DivergedError
from onward.training.runtime.trainer import Trainer
from onward.training.step_graphs import LOSS, keep_outputs
from onward.training.trainable import Trainable, prepare

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
RNG = np.random.default_rng(8)
TIMES, BATCH, CLASSES = 9, 5, 6
LOGITS = RNG.standard_normal((TIMES, BATCH, CLASSES)) * 3
LABELS = np.array([[1, 1, 2, 3], [5, 4, -1, -1], [2, 2, 2, 2], [-1, -1, -1, -1], [3, 1, 2, -1]])
LENGTHS = {"input_lengths": np.array([9, 7, 8, 4, 5]), "target_lengths": np.array([4, 2, 4, 0, 3])}
TOO_SHORT = {**LENGTHS, "input_lengths": np.array([9, 7, 6, 4, 5])}
"""Four equal labels take seven times, with the blanks between them."""


def model(logits: Array, *, batch_first: bool = False, normalised: bool = True) -> onnx.ModelProto:
    """Gives out its only weight, as logarithms of probabilities if asked for."""
    kind = helper.np_dtype_to_tensor_dtype(logits.dtype)
    nodes = [helper.make_node("LogSoftmax" if normalised else "Identity", ["w"], ["y"])]
    shape = ["batch", "time", CLASSES] if batch_first else ["time", "batch", CLASSES]
    output = helper.make_tensor_value_info("y", kind, shape)
    graph = helper.make_graph(nodes, "weight", [], [output], [numpy_helper.from_array(logits, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def run(made: Trainable, feeds: Arrays) -> tuple[Array, Array]:
    session = onnxruntime.InferenceSession(Model(made.gradients).to_proto().SerializeToString())
    value, slope = session.run([LOSS, "w.grad"], {**made.parameters, **feeds})
    return value, slope


def expected(loss: CTC, logits: Array, feeds: Arrays, labels: Array) -> tuple[Array, Array]:
    x = torch.tensor(logits, requires_grad=True)
    times = torch.tensor(feeds.get("input_lengths", np.full(BATCH, TIMES)))
    value = F.ctc_loss(
        x.log_softmax(-1),
        torch.tensor(labels),
        times,
        torch.tensor(feeds["target_lengths"]),
        blank=loss.blank,
        reduction=loss.reduction,
        zero_infinity=loss.zero_infinity,
    )
    value.backward()
    assert x.grad is not None
    return value.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize(
    ("loss", "lengths"),
    [
        (CTC(), LENGTHS),
        (CTC(reduction="sum"), LENGTHS),
        (CTC(blank=CLASSES - 1), LENGTHS),
        (CTC(zero_infinity=True), TOO_SHORT),
        (CTC(zero_infinity=True, reduction="sum"), TOO_SHORT),
        (CTC(logits=True), LENGTHS),
        (CTC(batch_first=True), LENGTHS),
        (CTC(concatenated=True), LENGTHS),
        (CTC(input_lengths=None), LENGTHS),
    ],
    ids=str,
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-8), (np.float32, 2e-5)])
def test_as_pytorch(loss: CTC, lengths: Arrays, dtype: Any, tolerance: float) -> None:
    labels = np.where(LABELS == 5, 0, LABELS) if loss.blank else LABELS
    feeds = {"labels": labels, **lengths}
    if loss.concatenated:
        feeds["labels"] = labels[np.arange(4) < lengths["target_lengths"].reshape(-1, 1)]
    if loss.input_lengths is None:
        del feeds["input_lengths"]
    logits = LOGITS.astype(dtype)
    given = logits.transpose(1, 0, 2).copy() if loss.batch_first else logits
    made = prepare(model(given, batch_first=loss.batch_first, normalised=not loss.logits), loss, "sgd", ["w"])
    value, slope = run(made, feeds)
    wanted, gradients = expected(loss, LOGITS, feeds, labels)
    assert value.shape == () and value.dtype == dtype
    np.testing.assert_allclose(value, wanted, rtol=tolerance)
    found = slope.transpose(1, 0, 2) if loss.batch_first else slope
    np.testing.assert_allclose(found, gradients, rtol=0, atol=tolerance * max(1, np.abs(gradients).max()))


def test_one_time_and_long_sequences() -> None:
    for times, count in ((1, 1), (400, 60)):
        logits = RNG.standard_normal((times, 2, CLASSES))
        feeds = {
            "labels": RNG.integers(1, CLASSES, (2, count)),
            "target_lengths": np.array([count, max(count // 2, 1)]),
        }
        feeds["input_lengths"] = np.array([times, times])
        value, slope = run(prepare(model(logits), "ctc", "sgd", ["w"]), feeds)
        wanted, gradients = expected(CTC(), logits, feeds, feeds["labels"])
        np.testing.assert_allclose(value, wanted, rtol=1e-9)
        np.testing.assert_allclose(slope, gradients, rtol=0, atol=1e-9)


def test_impossible_labels_are_infinitely_unlikely() -> None:
    loss = CTC()
    made = prepare(model(LOGITS), loss, "sgd", ["w"])
    value, _ = run(made, {"labels": LABELS, **TOO_SHORT})
    assert value == np.inf == expected(loss, LOGITS, TOO_SHORT, LABELS)[0]
    with pytest.raises(DivergedError, match="zero_infinity=True leaves it out"):
        Trainer(made).step({"labels": LABELS, **TOO_SHORT})


def test_a_probability_of_zero_is_no_nan() -> None:
    """A class that cannot be is a way that cannot be gone."""
    logits = LOGITS.copy()
    logits[4, :, 0] = -np.inf
    value, slope = run(prepare(model(logits), "ctc", "sgd", ["w"]), {"labels": LABELS, **LENGTHS})
    wanted, _ = expected(CTC(), logits, LENGTHS, LABELS)
    assert np.isfinite(wanted)
    np.testing.assert_allclose(value, wanted, rtol=1e-9)
    assert np.isfinite(slope).all()


def test_second_order() -> None:
    logits = LOGITS[:5, :2].copy()
    feeds = {
        "labels": np.array([[1, 1], [2, -1]]),
        "target_lengths": np.array([2, 1]),
        "input_lengths": np.array([5, 4]),
    }
    made = prepare(model(logits), CTC(), "sgd", ["w"])
    keep_outputs(made.gradients, {LOSS})
    RemoveUnusedNodesPass()(made.gradients)
    plain = Model(made.gradients).to_proto()
    check_second_order(gradient(plain, LOSS, ["w"]).to_proto(), {"w": logits, **feeds}, ["w"])
    derived = gradient(forget_shapes(plain), LOSS, ["w"]).to_proto()
    session = onnxruntime.InferenceSession(derived.SerializeToString())
    (slope,) = session.run(["w.grad"], {"w": logits, **feeds})
    np.testing.assert_allclose(slope, expected(CTC(), logits, feeds, feeds["labels"])[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "change", "message"),
    [
        (CTC(), {"labels": np.where(LABELS == 5, 6, LABELS)}, "'labels' has 6, but there are 6 classes, 0 to 5"),
        (CTC(), {"labels": np.where(LABELS == 5, -3, LABELS)}, "'labels' has -3"),
        (CTC(), {"labels": np.where(LABELS == 5, 0, LABELS)}, "'labels' has 0, but .*; 0 is the blank"),
        (CTC(), {"target_lengths": np.array([5, 2, 4, 0, 3])}, "'target_lengths' has 5, but 'labels' only 4"),
        (CTC(), {"input_lengths": np.array([9, 7, 8, -4, 5])}, "'input_lengths' has the length -4"),
        (CTC(concatenated=True), {"labels": np.array([1, 2])}, "'labels' holds 2 labels, but .* adds up to 13"),
    ],
)
def test_wrong_data_are_refused(loss: CTC, change: Arrays, message: str) -> None:
    made = prepare(model(LOGITS), loss, "sgd", ["w"])
    with pytest.raises(InvalidDataError, match=message):
        Trainer(made).step({"labels": LABELS, **LENGTHS, **change})


def test_runtimes_stop_at_lengths_and_labels_that_cannot_be() -> None:
    """Also where no Trainer looks at the data."""
    made = prepare(model(LOGITS), CTC(), "sgd", ["w"])
    with pytest.raises(RunFailure, match="out of data bounds"):
        Trainer(made).step({"labels": LABELS, **LENGTHS, "input_lengths": np.array([10, 7, 8, 4, 5])})
    for change in (
        {"labels": np.where(LABELS == 5, -1, LABELS)},
        {"target_lengths": np.array([5, 2, 4, 0, 3])},
    ):
        with pytest.raises(Exception, match=r"[Oo]ut of"):
            run(made, {"labels": LABELS, **LENGTHS, **change})


def test_a_prediction_of_another_rank_is_refused() -> None:
    flat = replace(CTC(), batch_first=True)
    proto = model(LOGITS)
    proto.graph.node[0].op_type = "Flatten"
    del proto.graph.output[0].type.tensor_type.shape.dim[2:]
    with pytest.raises(OnwardError, match=r"\[batch, time, classes\], not one of rank 2"):
        prepare(proto, flat, "sgd", ["w"])


class Listener(nn.Module):
    """Frames to logarithms of probabilities, [batch, time, features] to [time, batch, classes]."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(7, 16)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.body(frames))).log_softmax(-1).transpose(0, 1)


def speech(samples: int) -> Arrays:
    """Two frames of noise around each label's own sound, and pauses between them."""
    rng = np.random.default_rng(4)
    sounds = rng.standard_normal((CLASSES, 7)) * 2
    lengths = rng.integers(1, 5, samples)
    labels = np.where(np.arange(4) < lengths.reshape(-1, 1), rng.integers(1, CLASSES, (samples, 4)), -1)
    heard = np.stack([labels, labels, np.zeros_like(labels)], -1).reshape(samples, -1).clip(0)
    frames = sounds[heard] + rng.standard_normal((samples, 12, 7)) * 0.3
    return {
        "frames": frames.astype(np.float32),
        "labels": labels,
        "input_lengths": 3 * lengths,
        "target_lengths": lengths,
    }


def test_training_goes_on_from_file_to_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    loss = nn.CTCLoss(zero_infinity=True)
    made = from_torch(Listener(), torch.randn(3, 12, 7), loss, AdamW(lr=1e-2))
    made.save(tmp_path / "trainable.onnx")
    trainable = load(tmp_path / "trainable.onnx")
    assert trainable.loss == made.loss
    trainer = Trainer(trainable)
    data = speech(96)
    history = trainer.fit(data, epochs=40, batch=32)
    assert np.mean(history.losses[-3:]) < 0.2 * history.losses[0]
    folder = to_torch_package(trainer, tmp_path / "listener")
    monkeypatch.syspath_prepend(str(tmp_path))
    module: Any = importlib.import_module("listener.train")
    net = module.load()
    batch = {name: torch.from_numpy(array) for name, array in data.items()}
    found = module.train(net, module.load_optimizer(net), [batch] * 10)
    np.testing.assert_allclose(found, [trainer.step(data) for _ in range(10)], rtol=1e-4)
    assert "F.ctc_loss(" in (folder / "train.py").read_text()


@pytest.mark.parametrize("loss", [CTC(), CTC(blank=5, reduction="sum"), CTC(input_lengths=None)], ids=str)
@pytest.mark.parametrize("raw", [False, True], ids=["log of probabilities", "logits, batch first"])
def test_every_form_in_pytorchs_words(loss: CTC, raw: bool) -> None:
    logits = torch.tensor(LOGITS)
    given = {"labels": np.where(LABELS == 5, 0, LABELS) if loss.blank else LABELS, **LENGTHS}
    if loss.input_lengths is None:
        given["input_lengths"] = np.full(BATCH, TIMES)
    said = replace(loss, logits=raw, batch_first=raw)
    y = logits.transpose(0, 1) if raw else logits.log_softmax(-1)
    batch = {name: torch.tensor(array) for name, array in given.items()}
    call = loss_call(said, "y", lambda name: f"batch[{name!r}]")
    found = eval(call, {"F": F, "torch": torch, "y": y, "batch": batch})
    np.testing.assert_allclose(found, expected(loss, LOGITS, given, given["labels"])[0], rtol=1e-9)


@pytest.mark.parametrize("loss", [CTC(), CTC(zero_infinity=True), CTC(reduction="sum", blank=5)], ids=str)
@pytest.mark.parametrize("flipped", [False, True], ids=["time first", "batch first"])
def test_a_prediction_that_is_not_normalised(
    loss: CTC, flipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of such PyTorch's own gradient is not the derivative of its loss; the exported training has that of the file."""
    loss = replace(loss, batch_first=flipped)
    logits = LOGITS.astype(np.float32)
    given = logits.transpose(1, 0, 2).copy() if flipped else logits
    labels = np.where(LABELS == 5, 0, LABELS) if loss.blank else LABELS
    data = {"labels": labels, **(TOO_SHORT if loss.zero_infinity else LENGTHS)}
    made = prepare(model(given, batch_first=flipped, normalised=False), loss, "momentum", ["w"])
    folder = to_torch_package(made, tmp_path / f"raw_{flipped}_{loss.blank}_{loss.zero_infinity}")
    assert " ctc_loss(" in (folder / "train.py").read_text()
    monkeypatch.syspath_prepend(str(tmp_path))
    module: Any = importlib.import_module(f"{folder.name}.train")
    net = module.load()
    found = module.train(net, module.load_optimizer(net), [{k: torch.from_numpy(v) for k, v in data.items()}] * 5)
    trainer = Trainer(made, kernels=False)
    np.testing.assert_allclose(found, [trainer.step(data) for _ in range(5)], rtol=1e-5)


@pytest.mark.parametrize(
    ("nodes", "is_so"),
    [
        ([("LogSoftmax", {})], True),
        ([("LogSoftmax", {"axis": 2}), ("Identity", {})], True),
        ([("LogSoftmax", {"axis": 1})], False),
        ([("LogSoftmax", {"axis": 1}), ("Transpose", {"perm": [2, 0, 1]})], True),
        ([("LogSoftmax", {"axis": 0}), ("Transpose", {})], True),
        ([("LogSoftmax", {}), ("Transpose", {"perm": [2, 0, 1]})], False),
        ([("LogSoftmax", {}), ("Relu", {})], False),
        ([("Identity", {})], False),
    ],
)
def test_what_is_seen_to_be_normalised(nodes: list[tuple[str, dict[str, Any]]], is_so: bool) -> None:
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    steps = [helper.make_node("Mul", ["x", "w"], ["x0"])]
    steps += [helper.make_node(kind, [f"x{i}"], [f"x{i + 1}"], **more) for i, (kind, more) in enumerate(nodes)]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 3, 3]) for name in ("x", f"x{len(nodes)}")]
    graph = helper.make_graph(steps, "steps", ends[:1], ends[1:], [weight])
    proto = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    made = prepare(proto, "mse", "sgd")
    assert is_normalised(outputs_inside(made)[f"x{len(nodes)}"]) is is_so


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    from_torch(Listener(), torch.randn(3, 12, 7), "ctc").original.save(tmp_path / "model.onnx")
    np.savez(tmp_path / "data.npz", **speech(64))
    prepared, tuned = str(tmp_path / "trainable.onnx"), str(tmp_path / "tuned.onnx")
    options = ["--loss", "ctc", "--set-loss", "zero_infinity=true", "--lr", "1e-2"]
    assert main(["train", "prepare", str(tmp_path / "model.onnx"), *options, "--out", prepared]) == 0
    assert main(["train", "inspect", prepared]) == 0
    assert "loss: ctc(zero_infinity=True) of" in capsys.readouterr().out
    assert main(["train", "run", prepared, "--data", str(tmp_path / "data.npz"), "--epochs", "2", "--out", tuned]) == 0
