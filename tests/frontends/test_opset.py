"""Every frontend writes every opset from 13 on by one pass, and what it writes is run beside its framework."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import onward
from onward.canon.opset import ml_of
from onward.frontends.opset import NEWEST, OLDEST, written_opset

X = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
ML = "ai.onnx.ml"
Made = Callable[[int, Path], Any]


def from_torch(opset: int, folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.GELU()).eval()
    return onward.from_torch(net, torch.from_numpy(X), opset=opset)


def from_a_program(opset: int, folder: Path) -> Any:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Hardswish()).eval()
    return onward.from_torch(torch.export.export(net, (torch.from_numpy(X),)), opset=opset)


def from_keras(opset: int, folder: Path) -> Any:
    keras = pytest.importorskip("keras")
    layers = [keras.Input((3,)), keras.layers.Dense(4, activation="gelu"), keras.layers.LayerNormalization()]
    return onward.from_keras(keras.Sequential(layers), opset=opset)


def from_tensorflow(opset: int, folder: Path) -> Any:
    tf = pytest.importorskip("tensorflow")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])  # type: ignore[untyped-decorator]
    def grown(x: Any) -> Any:
        return tf.while_loop(lambda v: tf.reduce_sum(v) < 90.0, lambda v: (tf.nn.gelu(v) + 1.0,), [x])[0]

    return onward.from_tensorflow(grown, opset=opset)


def from_tflite(opset: int, folder: Path) -> Any:
    tf = pytest.importorskip("tensorflow")

    @tf.function(input_signature=[tf.TensorSpec([8, 3], tf.float32)])  # type: ignore[untyped-decorator]
    def several(x: Any) -> Any:
        return tf.nn.softmax(tf.nn.relu6(x)), tf.reduce_mean(x, 1), tf.nn.l2_normalize(x, 1)

    path = folder / "net.tflite"
    path.write_bytes(tf.lite.TFLiteConverter.from_concrete_functions([several.get_concrete_function()]).convert())
    return onward.from_tflite(path, opset=opset)


def from_jax(opset: int, folder: Path) -> Any:
    jax = pytest.importorskip("jax")
    return onward.from_jax(
        lambda x: jax.lax.fori_loop(0, 3, lambda i, v: v + i, jax.nn.gelu(x)).sum(axis=1), X, opset=opset
    )


def from_stablehlo(opset: int, folder: Path) -> Any:
    jax, export = pytest.importorskip("jax"), pytest.importorskip("jax.export")

    def logs(x: Any) -> Any:
        return jax.nn.log_softmax(x).cumsum(0), x.max(axis=1)

    path = folder / "net.mlir"
    path.write_text(export.export(jax.jit(logs))(jax.ShapeDtypeStruct((8, 3), np.float32)).mlir_module())
    return onward.from_stablehlo(path, opset=opset)


def from_sklearn(opset: int, folder: Path) -> Any:
    linear = pytest.importorskip("sklearn.linear_model")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), linear.LogisticRegression())
    return onward.from_sklearn(pipeline.fit(X, X[:, 0] > 0), X, opset=opset)


def from_trees_of_sklearn(opset: int, folder: Path) -> Any:
    ensemble = pytest.importorskip("sklearn.ensemble")
    forest = ensemble.RandomForestClassifier(3, random_state=0).fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    return onward.from_sklearn(forest, X, opset=opset)


def from_texts_of_sklearn(opset: int, folder: Path) -> Any:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    texts = ["red and green", "green or blue", "blue"]
    return onward.from_sklearn(text.TfidfVectorizer().fit(texts), np.array(texts), opset=opset)


def from_xgboost(opset: int, folder: Path) -> Any:
    xgboost = pytest.importorskip("xgboost")
    return onward.from_xgboost(xgboost.XGBRegressor(n_estimators=3).fit(X, X[:, 0]), opset=opset)


def from_lightgbm(opset: int, folder: Path) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=1, verbose=-1).fit(X, X[:, 0] > 0)
    return onward.from_lightgbm(trees, opset=opset)


def from_pandas(opset: int, folder: Path) -> Any:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3, 4, 5], "c": ["x", "Y", None]})
    return onward.from_dataframe(
        lambda df: df.assign(d=df.a / df.b.clip(lower=4), e=df.c.fillna("?")), frame, opset=opset
    )


def from_polars(opset: int, folder: Path) -> Any:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3, 4, 5]})
    return onward.from_dataframe(
        lambda df: df.with_columns(c=polars.col("a").cum_sum() / polars.col("b")), frame, opset=opset
    )


def from_narwhals(opset: int, folder: Path) -> Any:
    nw, pandas = pytest.importorskip("narwhals"), pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3, 4, 5]})

    @nw.narwhalify  # type: ignore[untyped-decorator]
    def scaled(df: Any) -> Any:
        return df.with_columns(c=nw.col("a") * nw.col("b"))

    return onward.from_dataframe(scaled, frame, opset=opset)


TRACED = [from_torch, from_a_program, from_keras, from_tensorflow, from_tflite, from_jax, from_stablehlo]
TABLES = [from_sklearn, from_trees_of_sklearn, from_texts_of_sklearn, from_xgboost, from_lightgbm]
FRAMES = [from_pandas, from_polars, from_narwhals]
DOUBLE = [from_trees_of_sklearn, from_lightgbm]
"""Trees whose numbers are doubles, which `ai.onnx.ml` has from version 5 on."""


@pytest.mark.parametrize(
    ("made", "opset"),
    [(made, opset) for made in TRACED + FRAMES for opset in (13, 17)]
    + [(made, opset) for made in TABLES for opset in (13, 15, 18, 20, 22, 24)],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_every_frontend_writes_every_opset(made: Made, opset: int, tmp_path: Path) -> None:
    model = made(opset, tmp_path)  # and runs it beside its framework
    assert model.opset[""] == opset
    assert model.opset.get(ML, 1) <= (5 if made in DOUBLE else ml_of(opset))
    proto = model.to_proto()
    assert proto.ir_version == onnx.helper.find_min_ir_version_for(proto.opset_import, ignore_unknown=True)
    onnxruntime.InferenceSession(proto.SerializeToString())


@pytest.mark.parametrize("opset", [OLDEST - 1, NEWEST + 1])
def test_only_some_opsets_are_written(opset: int) -> None:
    with pytest.raises(onward.OnwardError, match="give one from 13 to 26"):
        written_opset(opset)
