"""`onward convert` from files of scikit-learn."""

from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import compose, ensemble, linear_model, pipeline, preprocessing

skops = pytest.importorskip("skops.io")

from onward.cli import main  # noqa: E402
from onward.model import load  # noqa: E402


class Doubling(preprocessing.FunctionTransformer):
    """A class that no library has."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline that takes strings, a forest, and rows for both."""
    made = tmp_path_factory.mktemp("sklearn")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.normal(40, 9, 90), "city": rng.choice(np.array(["rome", "oslo", None], object), 90)}
    )
    bought = np.where(table["age"] > 40, "yes", "no")
    columns = compose.make_column_transformer(
        (preprocessing.StandardScaler(), ["age"]), (preprocessing.OneHotEncoder(), ["city"])
    )
    steps = pipeline.make_pipeline(columns, linear_model.LogisticRegression()).fit(table, bought)
    skops.dump(steps, made / "pipeline.skops")
    joblib.dump(steps, made / "pipeline.joblib")
    table.assign(bought=bought).to_csv(made / "table.csv", index=False)
    numbers = rng.normal(size=(90, 4))
    forest = ensemble.RandomForestClassifier(5, random_state=0).fit(numbers, numbers[:, 0] > 0)
    skops.dump(forest, made / "forest.skops")
    np.save(made / "numbers.npy", numbers.astype(np.float32))
    np.savez(made / "narrow.npz", numbers[:, :3])
    skops.dump(Doubling().fit(numbers), made / "own.skops")
    skops.dump(linear_model.LinearRegression(), made / "unfitted.skops")
    (made / "cut.skops").write_bytes((made / "forest.skops").read_bytes()[:-300])
    return made


def run(folder: Path, *words: str) -> int:
    paths = [str(folder / word) if (folder / word).is_file() else word for word in words]
    return main(["convert", *paths])


def test_to_onnx(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pipeline.onnx"
    assert run(folder, "pipeline.skops", "--to", "onnx", "--out", str(out), "--sample", "table.csv") == 0
    assert "verified: worst error" in capsys.readouterr().err
    graph = load(out).ir.graph
    assert [value.name for value in graph.inputs] == ["age", "city"]
    assert [value.name for value in graph.outputs] == ["predict", "predict_proba"]


def test_numbers_need_no_sample(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "forest.onnx"
    assert run(folder, "forest.skops", "--to", "onnx", "--out", str(out), "--opset", "19") == 0
    assert "over 3 sets of inputs" in capsys.readouterr().err
    assert load(out).opset[""] == 19


@pytest.mark.parametrize("name, sample", [("forest", "numbers.npy"), ("pipeline", "table.csv")])
def test_to_pytorch(name: str, sample: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    out = tmp_path / name
    assert run(folder, f"{name}.skops", "--to", "torch", "--out", str(out), "--sample", sample) == 0
    assert capsys.readouterr().err.count("verified: worst error") == 2
    assert (out / "model.py").is_file()


def test_pickles_are_opened_where_they_are_trusted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pipeline.joblib", "--to", "onnx", "--out", str(tmp_path / "net.onnx"), "--sample", "table.csv"]
    assert run(folder, *words) == 2
    assert "--trust opens it" in capsys.readouterr().err
    assert not (tmp_path / "net.onnx").exists()
    assert run(folder, *words, "--trust") == 0


BAD = {
    "cut off": (["cut.skops"], "not recognised as a model"),
    "own class": (["own.skops"], "test_convert_sklearn.Doubling, which could execute anything when it is opened"),
    "sample for another kind": (["numbers.npy", "--sample", "table.csv"], "--sample is for models of other frameworks"),
    "strings without a sample": (
        ["pipeline.skops"],
        "fitted on strings: give rows like those that it was fitted on: --sample rows.csv",
    ),
    "unfitted": (["unfitted.skops", "--sample", "numbers.npy"], "LinearRegression is not fitted"),
    "without its columns": (["pipeline.skops", "--sample", "narrow.npz"], "does not take the sample"),
    "without such a file": (["forest.skops", "--sample", "rows.csv"], "rows.csv: this file or folder does not exist"),
    "wrong width": (["forest.skops", "--sample", "narrow.npz"], "X has 3 features, but RandomForestClassifier"),
    "unknown rows": (
        ["forest.skops", "--sample", "own.skops"],
        "rows are read from .csv, .feather, .parquet, .npy and .npz",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, message = BAD[name]
    assert run(folder, *words, "--to", "onnx", "--out", str(tmp_path / "net.onnx")) == 2
    error = capsys.readouterr().err.strip()
    assert message in " ".join(error.split())
    assert not list(tmp_path.iterdir())
