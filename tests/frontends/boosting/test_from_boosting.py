"""Models of XGBoost and LightGBM become ONNX models that predict what the library predicts, on every row."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")

from boosted import DOUBLE, IDS, SINGLE, check, converted, hard_rows, on_runtime  # noqa: E402
from boosting_variants import VARIANTS, Variant, X, Y, margins, predicted, rows  # noqa: E402

import onward  # noqa: E402
from onward.errors import InvalidModelError, OnwardError, UnsupportedError  # noqa: E402


@pytest.mark.parametrize("variant", VARIANTS, ids=IDS)
def test_predictions(variant: Variant) -> None:
    model = variant.train()
    for dtype in (np.float32, np.float64):
        made = converted(variant, model, dtype=dtype)
        made.validate()
        x = hard_rows(variant, made, dtype)
        tolerance = DOUBLE if variant.library == "lightgbm" and dtype is np.float64 else SINGLE
        check(on_runtime(made, x), predicted(model, x), tolerance)
        check(on_runtime(converted(variant, model, dtype=dtype, raw=True), x), [margins(model, x)], tolerance)
        assert [part.shape[0] for part in on_runtime(made, x[:0])] == [0] * len(made.ir.graph.outputs)


@pytest.mark.parametrize("variant", VARIANTS, ids=IDS)
def test_in_torch(variant: Variant) -> None:
    torch = pytest.importorskip("torch")
    model = variant.train()
    dtype, tolerance = (np.float32, SINGLE) if variant.library == "xgboost" else (np.float64, DOUBLE)
    made = converted(variant, model)
    x = hard_rows(variant, made, dtype)
    with torch.no_grad():
        found = onward.to_torch(made)(torch.from_numpy(x))
    check(list(found) if isinstance(found, tuple) else [found], predicted(model, x), tolerance)


FEW = (
    "multi:softmax",
    "several targets, leaves of vectors",
    "categories, sets",
    "linear_tree",
    "zero_as_missing",
    "classifier of three names",
    "cross_entropy_lambda",
)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.name in FEW], ids=lambda v: f"{v.library}-{v.name}")
def test_in_tensorflow(variant: Variant) -> None:
    tf = pytest.importorskip("tensorflow")
    model = variant.train()
    dtype, tolerance = (np.float32, SINGLE) if variant.library == "xgboost" else (np.float64, DOUBLE)
    made = converted(variant, model)
    x = hard_rows(variant, made, dtype)
    x[np.abs(x) < np.finfo(dtype).tiny] = 0  # which they are to TensorFlow
    found = onward.to_tensorflow(made)(tf.constant(x))
    results = [np.asarray(part) for part in (found if isinstance(found, tuple | list) else [found])]
    decoded = [np.char.decode(part.astype(bytes)) if part.dtype.kind == "O" else part for part in results]
    check(decoded, predicted(model, x), tolerance)


def test_outputs_have_names_and_types() -> None:
    model = lgb.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1).fit(X.astype(np.float64), Y > 1)
    graph = onward.from_lightgbm(model).ir.graph
    assert [(str(value.name), str(value.dtype)) for value in (*graph.inputs, *graph.outputs)] == [
        ("x", "DOUBLE"),
        ("label", "BOOL"),
        ("probabilities", "DOUBLE"),
    ]
    booster = xgb.train({"nthread": 1}, xgb.DMatrix(X, Y), 2)
    made = onward.from_xgboost(booster, opset=18)
    assert made.opset == {"": 18, "ai.onnx.ml": 3}
    assert [value.name for value in made.ir.graph.outputs] == ["prediction"]


def test_categories_of_data_frames() -> None:
    """They are the codes that the frame of training had."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    names = pandas.Categorical(rng.choice(list("zyxwv"), 300))
    frame = pandas.DataFrame({"number": rng.normal(size=300), "name": names})
    y = frame["number"] + names.codes
    codes = np.stack([frame["number"], names.codes], 1)
    options = {"n_estimators": 4, "n_jobs": 1}
    booster = xgb.XGBRegressor(**options, enable_categorical=True, max_cat_to_onehot=1).fit(frame, y)
    check(on_runtime(onward.from_xgboost(booster), codes.astype(np.float32)), [booster.predict(frame)], SINGLE)
    forest = lgb.LGBMRegressor(**options, verbose=-1, min_data_per_group=5, cat_smooth=1).fit(frame, y)
    check(on_runtime(onward.from_lightgbm(forest), codes), [forest.predict(frame)], DOUBLE)


def test_large_forest() -> None:
    """Deep trees, of which single precision has to find each leaf among many."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3000, 10))
    y = np.sin(3 * x).sum(1)
    model = lgb.train(
        {"num_leaves": 127, "verbose": -1, "min_data_in_leaf": 3, "num_threads": 1}, lgb.Dataset(x, y), 60
    )
    check(on_runtime(onward.from_lightgbm(model), x), [np.asarray(model.predict(x))], 1e-12)
    single = x.astype(np.float32)
    found = on_runtime(onward.from_lightgbm(model, dtype=np.float32), single)
    check(found, [np.asarray(model.predict(single))], 1e-5)


@pytest.mark.parametrize("suffix", ["json", "ubj", "txt"])
def test_files(suffix: str, tmp_path: Path) -> None:
    """Told by what is in them, not by how they are called."""
    path = tmp_path / f"model.{suffix}"
    if suffix == "txt":
        booster = lgb.train({"verbose": -1, "num_threads": 1}, lgb.Dataset(X.astype(np.float64), Y), 4)
    else:
        booster = xgb.train({"nthread": 1}, xgb.DMatrix(X, Y), 4)
    booster.save_model(path)
    path = path.rename(tmp_path / "model")
    read: Any = onward.from_lightgbm if suffix == "txt" else onward.from_xgboost
    made = read(path)
    x = rows().astype(np.float64 if suffix == "txt" else np.float32)
    check(on_runtime(made, x), predicted(booster, x), SINGLE)
    assert made.name == "model"
    assert onward.verify(made, path).status == "same"


def test_continued_with_zeros_that_are_missing() -> None:
    """A feature that is of one kind in some trees and of another in others is refused."""
    data = X.astype(np.float64)
    options = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    first = lgb.train(options, lgb.Dataset(data, Y, free_raw_data=False), 3)
    again = lgb.Dataset(data, Y, params={"zero_as_missing": True}, free_raw_data=False)
    both = lgb.train({**options, "zero_as_missing": True}, again, 3, init_model=first)
    with pytest.raises(UnsupportedError, match="of one kind in some trees and of another in others"):
        onward.from_lightgbm(both)


def test_unfit() -> None:
    for make, model in (
        (onward.from_xgboost, xgb.XGBRegressor()),
        (onward.from_xgboost, xgb.Booster()),
        (onward.from_lightgbm, lgb.LGBMClassifier()),
    ):
        with pytest.raises(InvalidModelError, match="is not fitted"):
            make(model)
    with pytest.raises(OnwardError, match="takes a Booster, an estimator of XGBoost or a path, not int"):
        onward.from_xgboost(3)
    with pytest.raises(OnwardError, match="trees take rows of float32 or float64"):
        onward.from_xgboost(xgb.train({"nthread": 1}, xgb.DMatrix(X, Y), 1), dtype=np.float16)
