"""Every frontend writes older opsets by one pass, and what it writes is run beside its framework."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import onward
from onward.frontends.opset import written_opset

X = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)


def from_torch(opset: int) -> onward.Model:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.GELU()).eval()
    return onward.from_torch(net, torch.from_numpy(X), opset=opset)


def from_keras(opset: int) -> onward.Model:
    keras = pytest.importorskip("keras")
    layers = [keras.Input((3,)), keras.layers.Dense(4, activation="gelu"), keras.layers.LayerNormalization()]
    return onward.from_keras(keras.Sequential(layers), opset=opset)


def from_jax(opset: int) -> onward.Model:
    jax = pytest.importorskip("jax")
    return onward.from_jax(lambda x: jax.nn.gelu(x).sum(axis=1), X, opset=opset)


def from_sklearn(opset: int) -> onward.Model:
    linear = pytest.importorskip("sklearn.linear_model")
    return onward.from_sklearn(linear.LogisticRegression().fit(X, X[:, 0] > 0), X, opset=opset)


def from_xgboost(opset: int) -> onward.Model:
    xgboost = pytest.importorskip("xgboost")
    return onward.from_xgboost(xgboost.XGBRegressor(n_estimators=3).fit(X, X[:, 0]), opset=opset)


def from_dataframe(opset: int) -> onward.Model:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3, 4, 5]})
    return onward.from_dataframe(lambda df: df.assign(c=df.a / df.b.clip(lower=1)), frame, opset=opset)


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("made", [from_torch, from_keras, from_jax, from_sklearn, from_xgboost, from_dataframe])
def test_every_frontend_writes_older_opsets(made: Callable[[int], Any], opset: int) -> None:
    model = made(opset)
    assert model.opset[""] == opset
    proto = model.to_proto()
    assert proto.ir_version == onnx.helper.find_min_ir_version_for(proto.opset_import, ignore_unknown=True)
    onnxruntime.InferenceSession(proto.SerializeToString())


@pytest.mark.parametrize("opset", [12, 27])
def test_only_some_opsets_are_written(opset: int) -> None:
    with pytest.raises(onward.OnwardError, match="give one from 13 to 26"):
        written_opset(opset)
