"""What `ort_training.py` runs in an environment that has onnxruntime-training: each command prints a line of JSON."""

import copy
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from networks import Batch, made
from onnxruntime.training import artifacts
from onnxruntime.training.api import CheckpointState, Module, Optimizer
from torch import nn

RATES = {"sgd": 1e-2, "adamw": 1e-3}
OPSET = 14
KINDS = {"sgd": artifacts.OptimType.SGD, "adamw": artifacts.OptimType.AdamW}
CURVE = 20
Step = Callable[[Batch], float]


def export(net: nn.Module, batch: Batch, path: Path) -> None:
    """As its documentation says: for training, no constant folded."""
    torch.onnx.export(
        copy.deepcopy(net).train(), (batch[0],), str(path), input_names=["x"], output_names=["y"], dynamo=False,
        opset_version=OPSET, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
    )  # fmt: skip


def generate(path: Path, trained: list[str], optimizer: str, folder: Path) -> None:
    """The model is given by its path."""
    held = {tensor.name for tensor in onnx.load(path, load_external_data=False).graph.initializer}
    artifacts.generate_artifacts(
        str(path),
        requires_grad=[name for name in trained if name in held],
        frozen_params=sorted(held - set(trained)),
        loss=artifacts.LossType.CrossEntropyLoss,
        optimizer=KINDS[optimizer],
        artifact_directory=str(folder),
    )


def ort_step(net: nn.Module, data: list[Batch], optimizer: str, threads: int, folder: Path) -> Step:
    export(net, data[0], folder / "net.onnx")
    generate(folder / "net.onnx", [name for name, _ in net.named_parameters()], optimizer, folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    state = CheckpointState.load_checkpoint(str(folder / "checkpoint"))
    module = Module(str(folder / "training_model.onnx"), state, device="cpu", session_options=options)
    how = Optimizer(str(folder / "optimizer_model.onnx"), module)
    how.set_learning_rate(RATES[optimizer])
    module.train()

    def step(batch: Batch) -> float:
        loss = module(batch[0].numpy(), batch[1].numpy())
        how.step()
        module.lazy_reset_grad()
        return float(loss)

    return step


def torch_step(net: nn.Module, optimizer: str) -> Step:
    net = copy.deepcopy(net).train()
    kind = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer]
    how = kind(net.parameters(), lr=RATES[optimizer])

    def step(batch: Batch) -> float:
        how.zero_grad()
        loss = F.cross_entropy(net(batch[0]), batch[1])
        loss.backward()
        how.step()
        return loss.item()

    return step


def steps(name: str, optimizer: str, threads: int, seconds: float) -> dict[str, object]:
    """Ratios of wall and processor times of steps to PyTorch's, in turns, and how far losses are apart."""
    torch.set_num_threads(threads)
    net, data = made(name)
    with tempfile.TemporaryDirectory() as folder:
        both = {"torch": torch_step(net, optimizer), "ort": ort_step(net, data, optimizer, threads, Path(folder))}
    curves = {who: [step(data[i % len(data)]) for i in range(CURVE)] for who, step in both.items()}
    apart = max(abs(a - b) / abs(b) for a, b in zip(curves["ort"], curves["torch"], strict=True))
    wall: dict[str, list[float]] = {who: [] for who in both}
    processor: dict[str, list[float]] = {who: [] for who in both}
    end = time.perf_counter() + seconds
    while len(wall["ort"]) < 20 or time.perf_counter() < end:
        for who in list(both) if len(wall["ort"]) % 2 else list(both)[::-1]:
            for batch in data:
                began, used = time.perf_counter(), time.process_time()
                both[who](batch)
                wall[who].append(time.perf_counter() - began)
                processor[who].append(time.process_time() - used)

    def ratio(times: dict[str, list[float]]) -> float:
        return statistics.median(a / b for a, b in zip(times["ort"], times["torch"], strict=True))

    each = {who: 1000 * statistics.median(times) for who, times in wall.items()}
    return {"wall": ratio(wall), "cpu": ratio(processor), "apart": apart, "ms": each}


def zoo(jobs: str) -> dict[str, object]:
    """Model to why no training graph is generated for it; each in a process of its own, since some end theirs."""
    found = {}
    for name, path, output, trained in json.loads(Path(jobs).read_text()):
        with tempfile.NamedTemporaryFile("r") as said:
            child = os.fork()
            if not child:
                Path(said.name).write_text(one(path, output, trained))
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            found[name] = said.read() if code == 0 else f"the process ends with {code}"
            print(name, found[name] or "ok", file=sys.stderr, flush=True)
    return found


def one(path: str, output: str, trained: list[str]) -> str:
    """Why no training graph is generated, by a squared error of one output; '' if one is."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            artifacts.generate_artifacts(
                onnx.load(path),
                requires_grad=trained,
                loss=artifacts.LossType.MSELoss,
                loss_input_names=[output],
                optimizer=artifacts.OptimType.AdamW,
                artifact_directory=folder,
            )
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


def prepare(path: str, trained: str) -> dict[str, object]:
    """The time of `generate_artifacts` for a file as `ort_training.py` exports it, reading it included."""
    with tempfile.TemporaryDirectory() as folder:
        began, used = time.perf_counter(), time.process_time()
        generate(Path(path), json.loads(trained), "adamw", Path(folder))
        return {"wall": time.perf_counter() - began, "cpu": time.process_time() - used}


def main() -> None:
    warnings.simplefilter("ignore")
    what, *rest = sys.argv[1:]
    if what == "steps":
        found = steps(rest[0], rest[1], int(rest[2]), float(rest[3]))
    elif what == "zoo":
        found = zoo(rest[0])
    elif what == "prepare":
        found = prepare(rest[0], rest[1])
    else:
        versions = {module.__name__: module.__version__ for module in (onnxruntime, torch, onnx)}
        found = {"versions": versions}
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
