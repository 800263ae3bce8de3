"""Training that began on ONNX Runtime goes on in the generated PyTorch package as if nothing had happened."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper, parser
from safetensors.torch import load as load_tensors
from small_networks import NETWORKS, batches, network, onnx_of
from torch import Tensor, nn

import onward
from onward.cli import main
from onward.errors import UnsupportedError
from onward.training.export import to_torch_package
from onward.training.export.recognise import recognise
from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.info.read import load
from onward.training.recipe.adapters import lora
from onward.training.recipe.groups import Group
from onward.training.recipe.losses import (
    L1,
    BinaryCrossEntropy,
    CrossEntropy,
    Huber,
    KLDivergence,
    MeanSquaredError,
    NegativeLogLikelihood,
    Penalty,
    Term,
)
from onward.training.recipe.optimizers import LAMB, SGD, Adagrad, Adam, AdamW, RMSprop
from onward.training.recipe.schedules import Cosine, Linear, Steps, Warmup
from onward.training.runtime import checkpoint
from onward.training.runtime.trainer import Trainer
from onward.training.step_graphs import LOSS
from onward.training.trainable import Trainable, prepare

STEPS = 20


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.split(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module(f"{folder.name}.train")


def feeds(data: list[tuple[Tensor, Tensor]]) -> list[dict[str, Any]]:
    return [{"x": x.numpy(), "labels": y.numpy()} for x, y in data]


def curves(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, training: bool = False, **options: Any
) -> tuple[list[float], list[float], Trainer, nn.Module]:
    """Losses of the last 20 of 40 steps on ONNX Runtime, and of the same 20 in PyTorch."""
    model = onnx_of(network(name), NETWORKS[name].data(4), training=training)
    made: Trainable = prepare(model, **options)
    trainer = Trainer(made)
    data = feeds(batches(name, 2 * STEPS * made.accumulate))
    for batch in data[: len(data) // 2]:
        trainer.step(batch)
    to_torch_package(trainer, folder)
    rest = data[len(data) // 2 :]
    expected = [trainer.step(batch) for batch in rest]
    module: Any = imported(folder, monkeypatch)
    net = module.load_adapted() if made.adapters else module.load()
    given = [{key: torch.from_numpy(array) for key, array in batch.items()} for batch in rest]
    averages = [module.load_average(net)] if "average" in options else []
    optimizer = module.load_optimizer(net)
    found = module.train(net, optimizer, given, *averages)
    module.save(net, *([optimizer] if hasattr(module, "SLOTS") else []), *averages, step=trainer.steps, epoch=0)
    assert module.load_progress() == (trainer.steps, 0)
    return expected, found, trainer, net


OPTIMIZERS: dict[str, Any] = {
    "sgd": SGD(lr=0.05),
    "nesterov": SGD(lr=0.02, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "dampening": SGD(lr=0.02, momentum=0.8, dampening=0.3),
    "adagrad": Adagrad(lr=0.02, lr_decay=0.01),
    "rmsprop": RMSprop(lr=2e-3, momentum=0.5, centered=True),
    "adam": Adam(lr=3e-3, betas=(0.8, 0.99), weight_decay=1e-3),
    "adamw": AdamW(lr=3e-3, eps=1e-7),
    "lamb": LAMB(lr=1e-2, betas=(0.8, 0.99)),
    "onnx_adam": OnnxAdam(lr=3e-3, first=0, weight_decay=1e-3, norm_coefficient_post=1e-4),
    "onnx_adagrad": OnnxAdagrad(lr=0.02, decay_factor=0.01, weight_decay=1e-3),
    "onnx_momentum": OnnxMomentum(lr=0.02, beta=0.7, mode="nesterov"),
}


@pytest.mark.parametrize(
    ("name", "optimizer"), [*(("mlp", name) for name in OPTIMIZERS), ("cnn", "adamw"), ("cnn", "nesterov")]
)
def test_losses_go_on(name: str, optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = CrossEntropy(label_smoothing=0.1, weight=(1.0, 2.0, 0.5, 1.5))
    expected, found, trainer, net = curves(
        name, tmp_path / "net", monkeypatch, loss=loss, optimizer=OPTIMIZERS[optimizer]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert len(set(expected)) > 1
    for key, array in {**trainer.parameters, **trainer.buffers}.items():
        np.testing.assert_allclose(net.state_dict()[key].numpy(), array, rtol=1e-3, atol=1e-4, err_msg=key)
    subprocess.run([sys.executable, "-m", "ruff", "check", "--isolated", str(tmp_path / "net")], check=True)


OPTIONS: dict[str, dict[str, Any]] = {
    "clipping": {"optimizer": Adam(lr=3e-3), "clip_norm": 0.5, "clip_value": 0.05},
    "accumulation": {"optimizer": AdamW(lr=3e-3), "accumulate": 2},
    "groups": {
        "optimizer": AdamW(lr=3e-3, weight_decay=0.1),
        "groups": [Group("0.*", lr=0.1), Group("3.bias", frozen=True)],
        "no_decay": "vectors",
    },
    "a part": {"optimizer": SGD(lr=0.05, momentum=0.9), "trainable": ["3.*"]},
    "cosine": {"optimizer": Adam(lr=5e-3), "schedule": Warmup(5, Cosine(50, 0.1))},
    "stairs": {"optimizer": SGD(lr=0.1), "schedule": Steps(8, 0.5), "accumulate": 2},
    "penalties": {"optimizer": Adam(lr=3e-3), "penalties": [Penalty(1e-2), Penalty(3e-3, 1, ["0.weight", "3.*"])]},
    "average": {"optimizer": Adam(lr=1e-2), "average": 0.9, "clip_value": 0.05},
    "average of a part": {"optimizer": SGD(lr=0.1), "average": 0.8, "trainable": ["3.*"], "accumulate": 2},
    "groups of lamb": {"optimizer": LAMB(lr=1e-2), "groups": [Group("0.*", lr=0.1)], "no_decay": "vectors"},
    "line": {"optimizer": SGD(lr=0.1, momentum=0.5), "schedule": Warmup(25, Linear(10))},
}


@pytest.mark.parametrize("options", OPTIONS)
def test_options_go_along(options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, found, trainer, net = curves("mlp", tmp_path / "net", monkeypatch, **OPTIONS[options])
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    trained = {key for key, parameter in net.named_parameters() if parameter.requires_grad}
    assert trained == set(trainer.parameters)
    for key, array in trainer.parameters.items():
        np.testing.assert_allclose(net.state_dict()[key].numpy(), array, rtol=1e-3, atol=1e-4, err_msg=key)


def test_gates_in_another_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX and PyTorch order the gates of an LSTM differently: the state of the optimizer follows."""
    expected, found, _, net = curves("lstm", tmp_path / "net", monkeypatch, optimizer=Adam(lr=1e-2))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert isinstance(net.rnn, nn.LSTM)


def test_transposed_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix that is multiplied from the right is a linear layer's, transposed, and so is its state."""
    rng = np.random.default_rng(5)
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape, np.float32), name)
        for name, shape in (("a.weight", (12, 7)), ("a.bias", (7,)), ("b.weight", (7, 4)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "a.weight"], ["p"]),
        helper.make_node("Add", ["p", "a.bias"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("MatMul", ["t", "b.weight"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(k, TensorProto.FLOAT, ["n", n]) for k, n in (("x", 12), ("y", 4)))
    graph = helper.make_graph(nodes, "two layers", [x], [y], weights)
    made = prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "cross_entropy")
    trainer = Trainer(made, lr=0.01)
    first, second = feeds(batches("mlp", STEPS)), feeds(batches("mlp", STEPS, seed=2))
    for batch in first:
        trainer.step(batch)
    module: Any = imported(to_torch_package(trainer, tmp_path / "net"), monkeypatch)
    net = module.load()
    assert net.a.weight.shape == (7, 12)
    given = [{key: torch.from_numpy(array) for key, array in batch.items()} for batch in second]
    found = module.train(net, module.load_optimizer(net), given)
    np.testing.assert_allclose(found, [trainer.step(batch) for batch in second], rtol=1e-4)


def test_models_exported_in_training_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch normalisation that is in the mode of training in the file has both modes in PyTorch."""
    expected, found, trainer, net = curves("cnn", tmp_path / "net", monkeypatch, training=True, optimizer="adam")
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert sum(isinstance(part, nn.BatchNorm2d) for part in net.modules()) == 2
    np.testing.assert_allclose(net.state_dict()["1.running_var"].numpy(), trainer.buffers["1.running_var"], rtol=1e-4)


def test_dropout_is_kept_with_its_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepare(onnx_of(network("dropout"), torch.randn(4, 12), training=True))
    net = imported(to_torch_package(made, tmp_path / "net"), monkeypatch).load()
    assert [part.p for part in net.modules() if isinstance(part, nn.Dropout)] == pytest.approx([0.4, 0.2])


def test_inference_mode_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, found, _, net = curves("cnn", tmp_path / "net", monkeypatch, optimizer="adam", train_mode=False)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert not net.training


def script(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the training loop of a package, as a user does."""
    command = [sys.executable, "-m", f"{folder.name}.train", "data.npz", *options]
    env = os.environ | environment
    return subprocess.run(command, cwd=folder.parent, env=env, check=False, capture_output=True, text=True)


def exported(folder: Path, name: str = "mlp", **options: Any) -> Path:
    """The package of a training that has not begun, with data for it beside."""
    model = onnx_of(network(name), NETWORKS[name].data(4), training=name == "dropout")
    to_torch_package(prepare(model, **options), folder)
    x, y = batches(name, 1, 256)[0]
    np.savez(folder.parent / "data.npz", x=x.numpy(), labels=y.numpy())
    return folder


def state_of(folder: Path) -> dict[str, Any]:
    return {path.name: load_tensors(path.read_bytes()) for path in folder.glob("*.safetensors")}


def test_main_trains_and_goes_on_from_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = exported(tmp_path / "net", optimizer=Adam(lr=1e-2))
    runs = [script(folder, "--epochs", "2") for _ in range(2)]
    losses = [float(line.split()[-1]) for run in runs for line in run.stdout.splitlines()]
    assert len(losses) == 4 and "epoch 4: " in runs[1].stdout
    assert losses == sorted(losses, reverse=True)
    module: Any = imported(folder, monkeypatch)
    optimizer = module.load_optimizer(module.load())
    assert {float(own["step"]) for own in optimizer.state.values()} == {4 * 256 / 32}
    assert module.load_progress() == (4 * 256 // 32, 4)


RESUMED: dict[str, dict[str, Any]] = {
    "mlp": {"optimizer": SGD(lr=0.1), "schedule": Warmup(5, Cosine(30, 0.1)), "accumulate": 3},
    "dropout": {"optimizer": Adam(lr=1e-2), "schedule": Steps(5, 0.5), "average": 0.9},
}


@pytest.mark.parametrize("name", RESUMED)
def test_two_runs_are_one_of_twice_the_length(name: str, tmp_path: Path) -> None:
    """The same steps at the same learning rates, on the same batches, with the same masks of dropout."""
    parts, whole = (exported(tmp_path / folder, name, **RESUMED[name]) for folder in ("parts", "whole"))
    curve = [line for _ in range(2) for line in script(parts, "--epochs", "1").stdout.splitlines()]
    assert script(whole, "--epochs", "2").stdout.splitlines() == curve and len(curve) == 2
    once, twice = state_of(whole), state_of(parts)
    assert once.keys() == twice.keys()
    for file, tensors in once.items():
        torch.testing.assert_close(tensors, twice[file], rtol=0, atol=0)


KILLED = """
import os, shutil, signal, sys
from pathlib import Path

replace = Path.replace


def counted(self, target):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)


Path.replace = counted
sys.argv[1:] = ["data.npz"]
from net import train

shutil.copytree("net", "start")
for moves in range(5):
    left = moves
    if not (child := os.fork()):
        train.main()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    os.rename("net", f"killed{moves}")
    shutil.copytree("start", "net")
"""
"""PyTorch is imported once: each training is a copy of this process."""


def test_a_kill_while_it_saves_mixes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between moving its files to their places, one of which is the weights and one the optimizer's state."""
    folder = exported(tmp_path / "net", optimizer=SGD(lr=0.1, momentum=0.9), average=0.9)
    assert script(folder).returncode == 0
    before = state_of(folder)
    (tmp_path / "killed.py").write_text(KILLED)
    done = subprocess.run([sys.executable, "killed.py"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split() == [str(int(signal.SIGKILL))] * 5
    assert script(folder).returncode == 0
    later = state_of(folder)
    outcomes = []
    for moves in range(5):
        killed = tmp_path / f"killed{moves}"
        module: Any = imported(killed, monkeypatch)
        step, _ = module.load_progress()
        outcomes.append(step)
        torch.testing.assert_close(state_of(killed), before if step == 8 else later, rtol=0, atol=0)
    assert outcomes == [8, 16, 16, 16, 16]


def test_averages_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The average is carried over, moves on, and is found again where it was saved."""
    _, _, trainer, net = curves("mlp", tmp_path / "net", monkeypatch, optimizer=Adam(lr=1e-2), average=0.9)
    expected = trainer.trainable.average(trainer.state)
    module: Any = imported(tmp_path / "net", monkeypatch)
    found = module.load_average(module.load()).module.state_dict()
    for key, array in expected.items():
        np.testing.assert_allclose(found[key].numpy(), array, rtol=1e-4, atol=1e-5, err_msg=key)
        assert not np.allclose(array, net.state_dict()[key].numpy(), rtol=1e-4)


ADAPTED: dict[str, dict[str, Any]] = {
    "plain": {"optimizer": AdamW(lr=1e-2)},
    "others beside": {"optimizer": SGD(lr=0.05, momentum=0.9), "trainable": ["*bias"], "penalties": [Penalty(1e-2)]},
    "averaged": {"optimizer": LAMB(lr=1e-2), "average": 0.8, "clip_norm": 0.5},
}


@pytest.mark.parametrize("options", ADAPTED)
@pytest.mark.parametrize("form", ["Gemm", "MatMul"])
def test_adapters_go_along(options: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices that are held transposed, and as they are multiplied by; alpha makes the scale another than 1."""
    if form == "MatMul":
        monkeypatch.setitem(NETWORKS, "mlp", replace(NETWORKS["mlp"], make=Products))
    how = {**ADAPTED[options], "lora": lora(2, alpha=3.0)}
    expected, found, trainer, net = curves("mlp", tmp_path / "net", monkeypatch, **how)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert found[-1] != found[0]
    trained = [name for name, parameter in net.named_parameters() if parameter.requires_grad]
    assert len(trained) == len(trainer.parameters)
    module: Any = imported(tmp_path / "net", monkeypatch)
    x = torch.randn(5, 12)
    merged, apart = (torch.Tensor(make()(x).detach()) for make in (module.load, module.load_adapted))
    torch.testing.assert_close(merged, apart, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(merged, torch.Tensor(onward.to_torch(trainer.tuned())(x)), rtol=1e-3, atol=1e-4)


class Products(nn.Module):
    """Matrices that are multiplied by as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(12, 8) * 0.3)
        self.bias = nn.Parameter(torch.zeros(4))
        self.last = nn.Parameter(torch.randn(8, 4) * 0.3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.first) @ self.last + self.bias


def test_penalties_are_known_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepare(onnx_of(network("mlp"), torch.randn(4, 12)), "cross_entropy", "adam", penalties=[Penalty(0.1)])
    made.save(tmp_path / "trainable.onnx")
    assert load(tmp_path / "trainable.onnx").penalties == [Penalty(0.1)]
    batch = feeds(batches("mlp", 1))[0]
    module: Any = imported(to_torch_package(load(tmp_path / "trainable.onnx"), tmp_path / "net"), monkeypatch)
    found = module.loss_of(module.load(), {key: torch.from_numpy(array) for key, array in batch.items()})
    assert float(found.detach()) == pytest.approx(Trainer(made).step(batch), rel=1e-5)


def of_sign() -> onnx.ModelProto:
    """An optimizer of one's own."""
    text = "agraph (float[N] w, float[N] g, float lr) => (float[N] y) { s = Sign (g) m = Mul (s, lr) y = Sub (w, m) }"
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')


def test_what_pytorch_lacks_is_refused(tmp_path: Path) -> None:
    model = onnx_of(network("mlp"), torch.randn(4, 12))
    for options, problem in [
        ({"schedule": lambda step: 1 / step}, "function of your own.*Table.of"),
    ]:
        with pytest.raises(UnsupportedError, match=problem):
            to_torch_package(prepare(model, **options), tmp_path / "net")
    assert not (tmp_path / "net").exists()


LOSSES: list[Any] = [
    CrossEntropy(),
    CrossEntropy(label_smoothing=0.1, ignore_index=-100, weight=(0.5, 1.0, 2.0), reduction="sum", labels="classes"),
    CrossEntropy(soft=True, label_smoothing=0.2, weight=(0.5, 1.0, 2.0)),
    CrossEntropy(soft=True, reduction="sum"),
    NegativeLogLikelihood(ignore_index=2),
    NegativeLogLikelihood(weight=(0.1, 0.2, 0.3)),
    BinaryCrossEntropy(),
    BinaryCrossEntropy(pos_weight=3.0, reduction="sum"),
    MeanSquaredError(),
    MeanSquaredError(reduction="sum", labels="wanted"),
    L1(),
    Huber(),
    Huber(delta=0.7),
    KLDivergence(),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_read_off_graphs(loss: Any) -> None:
    net = nn.Sequential(nn.Linear(12, 3), nn.LogSoftmax(1))
    made = prepare(onnx_of(net, torch.randn(4, 12)), [Term(loss), Term(loss, weight=0.3)])
    graph = made.gradients.graph
    values = {value.name: value for node in graph for value in node.outputs}
    assert recognise(values[LOSS], {"y": values["y"]}) == [Term(loss, 1.0, "y"), Term(loss, 0.3, "y")]


def target_of(loss: Any, size: int) -> Any:
    rng = np.random.default_rng(2)
    if isinstance(loss, CrossEntropy | NegativeLogLikelihood) and not getattr(loss, "soft", False):
        return rng.integers(0, 3, size)
    odds = rng.random((size, 3)).astype(np.float32)
    return odds / odds.sum(1, keepdims=True)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_in_pytorch(loss: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Linear(12, 3), nn.LogSoftmax(1))
    made = prepare(onnx_of(net, torch.randn(4, 12)), loss, SGD(lr=0.0))
    batch = {"x": np.random.default_rng(1).standard_normal((6, 12), np.float32), loss.labels: target_of(loss, 6)}
    expected = Trainer(made).step(batch)
    module: Any = imported(to_torch_package(made, tmp_path / "net"), monkeypatch)
    found = module.loss_of(module.load(), {key: torch.from_numpy(array) for key, array in batch.items()})
    assert float(found.detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_from_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainable file with a checkpoint, by the command line."""
    path = tmp_path / "trainable.onnx"
    prepare(onnx_of(network(name), NETWORKS[name].data(4)), CrossEntropy(label_smoothing=0.1), Adam(lr=3e-3)).save(path)
    trainer = Trainer(load(path))
    data = feeds(batches(name, 2 * STEPS))
    for batch in data[:STEPS]:
        trainer.step(batch)
    checkpoint.save(tmp_path / "tuned.checkpoint", trainer)
    arguments = ["--to", "torch", "--out", str(tmp_path / "net"), "--checkpoint", str(tmp_path / "tuned.checkpoint")]
    assert main(["train", "export", str(path), *arguments, "--no-verify"]) == 0
    module: Any = imported(tmp_path / "net", monkeypatch)
    net = module.load()
    given = [{key: torch.from_numpy(array) for key, array in batch.items()} for batch in data[STEPS:]]
    found = module.train(net, module.load_optimizer(net), given)
    np.testing.assert_allclose(found, [trainer.step(batch) for batch in data[STEPS:]], rtol=1e-4)
