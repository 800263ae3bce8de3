"""A model made anew from exported source begins with weights to train from, not with what memory held."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from onward.training.export import to_jax_package, to_keras_package, to_tensorflow_package, to_torch_package
from onward.training.recipe.losses import MeanSquaredError
from onward.training.trainable import prepare

WEIGHTS = {"mixing": np.full((4, 6), 0.3), "gain": np.full(6, 2.0), "shift": np.full(6, 0.5)}


def source() -> onnx.ModelProto:
    """No layer of a framework: weights that a module declares itself."""
    nodes = [
        oh.make_node("Einsum", ["x", "mixing"], ["h"], equation="ij,jk->ik"),
        oh.make_node("Mul", ["h", "gain"], ["s"]),
        oh.make_node("Add", ["s", "shift"], ["y"]),
    ]
    x, y = (oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size]) for name, size in (("x", 4), ("y", 6)))
    weights = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in WEIGHTS.items()]
    graph = oh.make_graph(nodes, "g", [x], [y], weights)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=9)


def exported(write: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    write(prepare(source(), MeanSquaredError()), folder)
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    return importlib.import_module(f"{folder.name}.model")


def check(found: dict[str, Any]) -> None:
    assert found.keys() == WEIGHTS.keys()
    assert 0 < np.abs(found["mixing"]).max() < 1 and np.ptp(found["mixing"]) > 0
    np.testing.assert_array_equal(found["gain"], 1)
    np.testing.assert_array_equal(found["shift"], 0)


def test_pytorch_and_keras_begin_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = exported(to_torch_package, tmp_path / "anew_torch", monkeypatch)
    check({name: tensor.detach().numpy() for name, tensor in module.Model().named_parameters()})
    module = exported(to_keras_package, tmp_path / "anew_keras", monkeypatch)
    check({weight.name: np.asarray(weight) for weight in module.build().trainable_weights})


def test_jax_and_tensorflow_have_no_model_without_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = exported(to_tensorflow_package, tmp_path / "anew_tensorflow", monkeypatch)
    with pytest.raises(TypeError, match="weights"):
        module.Model()
    module = exported(to_jax_package, tmp_path / "anew_jax", monkeypatch)
    assert not hasattr(module, "Model") and not hasattr(module, "init")
    np.testing.assert_allclose(module.load()["gain"], WEIGHTS["gain"])
