"""What a training starts from is not held in memory beside what is trained, and stays what it was."""

import mmap
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.training import SGD, Trainer, prepare

SIZE = 160


def model() -> onnx.ModelProto:
    weight = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", SIZE])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.zeros(SIZE, np.float32), "b")],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def batch() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {"x": rng.normal(size=(4, SIZE)).astype(np.float32), "labels": rng.integers(0, SIZE, 4)}


def root(array: np.ndarray) -> object:
    base: object = array
    while getattr(base, "base", None) is not None:
        base = base.base  # type: ignore[attr-defined]
    return base.obj if isinstance(base, memoryview) else base


def test_weights_of_a_file_are_set_aside_and_can_be_trained_again(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    trainable = prepare(path, optimizer=SGD(lr=0.1))
    start = trainable.parameters["w"].copy()
    losses = []
    for _ in range(2):
        trainer = Trainer(trainable)
        losses.append([trainer.step(batch()) for _ in range(3)])
        trainer.save(path)
    assert losses[0] == losses[1]
    held = trainable.original.ir.graph.initializers["w"].const_value
    assert held is not None
    for array in (trainable.parameters["w"], held.numpy()):
        assert isinstance(root(array), mmap.mmap)
        assert (array == start).all()
    assert not (onward.load(path).ir.graph.initializers["w"].const_value.numpy() == start).all()


@pytest.mark.parametrize("error", [OSError(28, "no room")])
def test_without_room_they_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    onnx.save(model(), tmp_path / "model.onnx")
    trainable = prepare(tmp_path / "model.onnx", optimizer=SGD(lr=0.1))

    def full(**options: object) -> None:
        raise error

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    before = trainable.parameters["w"]
    Trainer(trainable)
    assert trainable.parameters["w"] is before


def test_a_model_in_memory_is_left_alone() -> None:
    given = onward.load(model())
    before = given.ir.graph.initializers["w"].const_value
    Trainer(prepare(given, optimizer=SGD(lr=0.1)))
    assert given.ir.graph.initializers["w"].const_value is before
