"""Files of XGBoost and LightGBM on the command line: whole ones, damaged ones, and what else is in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")

from boosting_variants import CATEGORY, CLASSES, FEATURES, SEVERAL, X, Y  # noqa: E402

import onward  # noqa: E402
from onward.cli import main  # noqa: E402
from onward.errors import InvalidModelError  # noqa: E402

KINDS = ["c" if feature == CATEGORY else "q" for feature in range(FEATURES)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of each format."""
    folder = tmp_path_factory.mktemp("boosted")
    known = {"nthread": 1, "max_depth": 3, "max_cat_to_onehot": 1}
    data = xgb.DMatrix(X, CLASSES, feature_types=KINDS, enable_categorical=True)
    booster = xgb.train({**known, "objective": "multi:softprob", "num_class": 3}, data, 3)
    options = {
        "min_data_per_group": 5,
        "verbose": -1,
        "num_threads": 1,
        "min_data_in_leaf": 5,
        "cat_smooth": 1,
        "linear_tree": True,
    }
    forest = lgb.train(options, lgb.Dataset(X.astype(np.float64), Y, categorical_feature=[CATEGORY]), 3)
    for model, name in ((booster, "model.json"), (booster, "model.ubj"), (forest, "model.txt")):
        model.save_model(folder / name)
    return {path.suffix[1:]: path for path in folder.iterdir()}


@pytest.mark.parametrize("suffix", ["json", "ubj", "txt"])
def test_to_onnx_and_torch(
    suffix: str, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model.onnx"
    assert main(["convert", str(files[suffix]), "--to", "onnx", "--out", str(out)]) == 0
    assert "verified: worst error" in capsys.readouterr().err
    wanted = onnx.TensorProto.DOUBLE if suffix == "txt" else onnx.TensorProto.FLOAT
    assert onnx.load(out).graph.input[0].type.tensor_type.elem_type == wanted
    pytest.importorskip("torch")
    arguments = ["--to", "torch", "--out", str(tmp_path / "net"), "--input", "x:float32[batch,5]"]
    assert main(["convert", str(files[suffix]), *arguments]) == 0
    assert capsys.readouterr().err.count("verified: worst error") == 2


def test_options_that_do_not_fit(files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["--input", "x:float32[batch,6]"], 'this model takes "x:float32[batch,5]"'),
        (["--input", "y:float32[batch,5]"], 'this model takes "x:float32[batch,5]"'),
        (["--input", "x:int64[batch,5]"], "trees take rows of float32 or float64"),
        (["--signature", "serving_default"], "do not apply to boosted trees"),
        (["--opset", "7"], "opset 7"),
    ):
        for path in files.values():
            out = tmp_path / "model.onnx"
            assert main(["convert", str(path), "--to", "onnx", "--out", str(out), *arguments]) == 2
            assert words in capsys.readouterr().err.replace("\n", " ")
            assert not out.exists()


@pytest.mark.parametrize("suffix", ["json", "ubj", "txt"])
def test_cut_off(suffix: str, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = files[suffix].read_bytes()
    path, out = tmp_path / f"cut.{suffix}", tmp_path / "model.onnx"
    for share in (0.1, 0.5, 0.8):
        path.write_bytes(whole[: int(len(whole) * share)])
        assert main(["convert", str(path), "--to", "onnx", "--out", str(out)]) == 2
        assert "cut off" in capsys.readouterr().err
        assert not out.exists()


def _changed(tree: str, old: str, new: str) -> str:
    assert old in tree
    return tree.replace(old, new, 1)


def _shifted(text: str, field: str) -> str:
    """The first number of a field is another one, as long."""
    start = text.index(f"{field}=") + len(field) + 1
    return text[:start] + ("9" if text[start] != "9" else "8") + text[start + 1 :]


LIGHTGBM_DAMAGE: dict[str, Callable[[str], str]] = {
    "child": lambda text: _shifted(text, "left_child"),
    "leaves": lambda text: _shifted(text, "num_leaves"),
    "feature": lambda text: _shifted(text, "split_feature"),
    "set": lambda text: _shifted(text, "cat_boundaries"),
    "linear": lambda text: _shifted(text, "num_features"),
    "missing field": lambda text: _changed(text, "\nthreshold=", "\nthresholt="),
    "sizes": lambda text: _shifted(text, "tree_sizes"),
    "width": lambda text: _changed(text, "max_feature_idx=4", "max_feature_idx=x"),
}


@pytest.mark.parametrize("what", LIGHTGBM_DAMAGE)
def test_damaged_lightgbm(what: str, files: dict[str, Path], tmp_path: Path) -> None:
    """LightGBM itself ends the process on most of these."""
    path = tmp_path / "model.txt"
    path.write_text(LIGHTGBM_DAMAGE[what](files["txt"].read_text()))
    with pytest.raises(InvalidModelError, match=r"model\.txt: .*(damaged|sizes of its trees)"):
        onward.from_lightgbm(path)


def _set(tree: dict[str, Any], name: str, value: int) -> None:
    tree[name][0] = value


XGBOOST_DAMAGE: dict[str, Callable[[dict[str, Any]], None]] = {
    "child": lambda tree: _set(tree, "left_children", 99),
    "circle": lambda tree: _set(tree, "left_children", 0),
    "no child": lambda tree: _set(tree, "right_children", -1),
    "parent": lambda tree: tree["parents"].__setitem__(1, 5),
    "feature": lambda tree: _set(tree, "split_indices", 5),
    "length": lambda tree: tree["split_conditions"].pop(),
    "categories": lambda tree: _set(tree, "categories_sizes", 999),
    "missing field": lambda tree: tree.pop("parents"),
}


@pytest.mark.parametrize("what", XGBOOST_DAMAGE)
def test_damaged_xgboost(what: str, files: dict[str, Path], tmp_path: Path) -> None:
    """XGBoost itself reads memory at random on most of these."""
    import json

    model = json.loads(files["json"].read_text())
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    XGBOOST_DAMAGE[what](next(tree for tree in trees if tree["categories_nodes"]))
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    with pytest.raises(InvalidModelError, match=r"model\.json: "):
        onward.from_xgboost(path)


def test_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a.json", '{"layers": []}'), ("a.txt", "a tree\n"), ("b.txt", "")):
        path = tmp_path / name
        path.write_text(text)
        assert main(["convert", str(path), "--to", "onnx", "--out", str(tmp_path / "out.onnx")]) == 2
        assert "not recognised as a model" in capsys.readouterr().err.replace("\n", " ")
        for read, library in ((onward.from_xgboost, "XGBoost"), (onward.from_lightgbm, "LightGBM")):
            with pytest.raises(InvalidModelError, match=f"this is not a model of {library}"):
                read(path)
    with pytest.raises(InvalidModelError, match="this file or folder does not exist"):
        onward.from_xgboost(tmp_path / "nothing.json")


def test_objects_are_verified_by_what_they_predict() -> None:
    """A classifier gives labels and probabilities, on both sides."""
    from onward.formats import open_object
    from onward.verification.sides import Side

    for model, convert in (
        (xgb.XGBClassifier(n_estimators=2, n_jobs=1).fit(X, (SEVERAL > 1).astype(int)), onward.from_xgboost),
        (lgb.LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1).fit(X, CLASSES), onward.from_lightgbm),
    ):
        run = open_object(model).run
        assert onward.verify(convert(model), Side("the estimator", run)).status == "same"
