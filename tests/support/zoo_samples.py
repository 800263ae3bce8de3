"""Results of zoos, made by hand and made up."""

import random
from dataclasses import replace

from onward.zoo.results import TARGETS, VERDICTS, Cell, ModelFacts, Outline, Results, Slot

HOSTILE = "</script><b id=evil>bold</b> & 'quoted' \"double\" | `tick`"
SOURCE = '''"""A network."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)  # <b id=evil> & more

    def forward(self, x):
        return torch.relu(self.conv(x)) * 0.5e-3 + 'a'
'''
VERSIONS = "onward 0.1.0 (1a2b3c), onnx 1.23.2"
WHEN = "2026-11-18T10:00:00+00:00"
OPS = ("Conv", "Relu", "Add", "MatMul", "Resize", "LSTM", "com.microsoft::Attention", "Gather", "Softmax", "NoSuchOp")


def facts(name: str, number: int = 0, **more: object) -> ModelFacts:
    made = ModelFacts(
        name,
        f"{number:064x}",
        format=("onnx", "tflite", "h5")[number % 3],
        task=("text embedding", "object detection", "other")[number // 2 % 3],
        licence="MIT",
        package=f"{name.partition('/')[0]}=={number % 7}.1",
        size_bytes=1000 * (number + 1) ** 2,
        opset=("ai.onnx=17", "ai.onnx=9;com.microsoft=1", "ai.onnx=13")[number % 3],
        inputs=(Slot("x", "tensor(float)", (1, 3, "n", None)), Slot("mask", "tensor(int64)")),
        outputs=(Slot("y", "tensor(float)", ()),),
        ops={op: place + 1 for place, op in enumerate(OPS) if (number + place) % 3 == 0},
        nodes=10 * number + 4,
        parameters=1234 * number,
        graph=Outline((("Conv ×2",), ("Relu", "LSTM"), ("Add",)), ((0, 1), (0, 2), (1, 3), (2, 3), (0, 3))),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def cell(model: ModelFacts, target: str, verdict: str = "same", **more: object) -> Cell:
    compared = verdict in ("same", "different")
    made = Cell(
        model.model,
        model.sha256,
        target,
        VERSIONS,
        verdict,  # type: ignore[arg-type]
        error=(2e-6 if verdict == "same" else 0.5) if compared else None,
        allowance=3e-5 if compared else None,
        seconds=1.25,
        verify_seconds=0.5,
        peak_mb=512.0,
        nodes=7,
        size_bytes=5000,
        transposes=2,
        speed=1.5 if compared else None,
        source=SOURCE if target == "torch" else "",
        limit_seconds=300.0,
        limit_mb=8000.0,
        when=WHEN,
        machine="Abacus, 2 cores",
    )
    return replace(made, **more)  # type: ignore[arg-type]


def results(models: list[ModelFacts], cells: list[Cell]) -> Results:
    return Results({one.model: one for one in models}, {one.key: one for one in cells})


def small(when: str = WHEN, **fixed: str) -> Results:
    """Four models on three targets, training and a peer; by name, verdicts on PyTorch that are others."""
    nets = [facts("a/net.onnx", 0), facts("b/net.onnx", 1), facts("c/Éx<b>.tflite", 4), facts("lone", 8)]
    refused = {"message": f"no rule for Resize: {HOSTILE}", "first_node": "up (Resize)"}
    cells = [
        cell(nets[0], "torch", fixed.get("a", "same")),
        cell(nets[0], "jax", "same", speed=0.5, seconds=9.0),
        cell(nets[0], "tflite", "refused", **refused),
        cell(nets[0], "train", "same"),
        cell(nets[0], "peer:onnx2torch", "failed", message="KeyError: 'Resize'"),
        cell(nets[1], "torch", fixed.get("b", "different"), first_node="conv_3 (Conv)", message="off at conv_3"),
        cell(nets[1], "jax", "timeout", message="not done in 300 s"),
        cell(nets[1], "peer:onnx2torch", "same"),
        cell(nets[2], "torch", fixed.get("c", "not verified"), message="draws random numbers"),
        cell(nets[2], "tflite", "crash", message="SIGSEGV"),
        cell(nets[2], "jax", "out of memory", message="more than 8 GB"),
        cell(nets[3], "torch", "same", error=0.0, speed=30.0),
    ]
    return results(nets, [replace(one, when=when) for one in cells])


def large(models: int, seed: int = 0) -> Results:
    """Models with all kinds of facts on every target, peers among these, most of them the same."""
    draw = random.Random(seed)
    nets = [facts(f"package-{number // 3}/model-{number}.onnx", number) for number in range(models)]
    weights = [0.86, 0.02, 0.02, 0.06, 0.01, 0.01, 0.01, 0.01]
    verdicts = [*VERDICTS]
    cells = []
    for net in nets:
        for target in (*TARGETS, "train", "peer:onnx2torch"):
            verdict = draw.choices(verdicts, weights)[0]
            message = (
                "" if verdict == "same" else f"{verdict} at node {draw.randrange(200)}: a sentence of usual length"
            )
            speed = round(draw.lognormvariate(0.1, 0.6), 3) if verdict == "same" else None
            cells.append(cell(net, target, verdict, message=message, speed=speed, seconds=draw.expovariate(0.2)))
    return results(nets, cells)
