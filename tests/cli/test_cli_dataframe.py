"""Functions on data frames in files: converted, verified and inspected from the command line."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import problem

from conftest import Run

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import onward  # noqa: E402

FEATURES = """
import pandas as pd

RATES = pd.DataFrame({"city": ["rome", "oslo"], "rate": [1.5, 2.5]})


def features(df):
    df = df.assign(age=df.age.fillna(df.age.median()), debt=df.loan / df.income.clip(lower=1))
    df["band"] = pd.cut(df.age, [0, 30, 60, 120], labels=["low", "mid", "high"])
    return df.merge(RATES, on="city", how="left").drop(columns=["loan", "income"])


def other(df):
    return df.assign(age=df.age.fillna(0), debt=df.loan / df.income.clip(lower=1))


def coded(df):
    return df.assign(city=df.city.str.replace(r"(.+?)(o|os)", r"\\2\\1", regex=True))


def misspelt(df):
    return df.assign(debt=df.loan / df["incom"])


def branches(df):
    return df if df.loan.mean() > 3 else -df


def makes_nothing():
    return None


number = 3


class Kind:
    pass
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dataframe")
    rng = np.random.default_rng(0)
    for name, rows in (("train", 60), ("test", 25)):
        frame = pd.DataFrame(
            {
                "age": np.where(rng.random(rows) < 0.2, np.nan, rng.integers(18, 90, rows)),
                "loan": rng.random(rows) * 100,
                "income": rng.integers(0, 50, rows),
                "city": rng.choice(np.array(["rome", "oslo", "bonn", None], object), rows),
            }
        )
        frame.to_parquet(made / f"{name}.parquet")
        frame.to_csv(made / f"{name}.csv", index=False)
        frame.to_feather(made / f"{name}.feather")
    (made / "features.py").write_text(FEATURES)
    (made / "polar.py").write_text(
        "import polars as pl\n\n\ndef features(df: pl.DataFrame):\n"
        "    return df.select(pl.col('age').fill_null(0) * 2)\n"
    )
    (made / "broken.py").write_text("def features(df)\n    return df\n")
    (made / "needs.py").write_text("import no_such_module\n")
    (made / "marks.py").write_text(f"open({str(made / 'ran')!r}, 'w')\n\n\ndef features(df):\n    return df\n")
    return made


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))


def converted(run: Run, out: Path, *words: object, sample: str = "train.parquet") -> str:
    code, _, said = run("convert", *words, "--sample", sample, "--to", "onnx", "--out", out, "--trust")
    assert code == 0, said
    return said


@pytest.mark.parametrize("suffix", ["parquet", "csv", "feather"])
def test_convert(run: Run, tmp_path: Path, suffix: str) -> None:
    said = converted(run, tmp_path / "f.onnx", "features.py:features", sample=f"train.{suffix}")
    assert "verified: the same as pandas on the sample of 60 rows, on one row and on none" in said
    assert "columns in: age (float64), loan (float64), income (int64), city (text)" in said
    assert "columns out: age (float64), city (text), debt (float64), band (category), rate (float64)" in said
    assert "trainable" not in said
    rows = pd.read_parquet("test.parquet")
    found = onward.run(tmp_path / "f.onnx", rows)
    assert (
        found.band.tolist()
        == pd.cut(rows.age.fillna(rows.age.median()), [0, 30, 60, 120])
        .cat.rename_categories(["low", "mid", "high"])
        .tolist()
    )


def test_convert_with_a_frozen_aggregate(run: Run, tmp_path: Path) -> None:
    converted(run, tmp_path / "f.onnx", "features.py:features", "--freeze", "age.median")
    median = pd.read_parquet("train.parquet").age.median()
    rows = pd.read_parquet("test.parquet")
    assert onward.run(tmp_path / "f.onnx", rows[rows.age.isna()]).age.tolist() == [median] * int(rows.age.isna().sum())


def test_convert_with_a_column_that_is_never_null(run: Run, tmp_path: Path) -> None:
    def masks(*options: str) -> set[str]:
        converted(run, tmp_path / "f.onnx", "features.py:features", *options, sample="whole.parquet")
        names = [value.name or "" for value in onward.load(tmp_path / "f.onnx").ir.graph.inputs]
        (tmp_path / "f.onnx").unlink()
        return {name for name in names if name.endswith(".null")}

    pd.read_parquet("train.parquet").dropna().to_parquet("whole.parquet")
    assert masks() == {"city.null"}
    assert not masks("--never-null", "city")


def test_a_sample_with_a_null_where_there_is_never_one_is_refused(run: Run, tmp_path: Path) -> None:
    words = (
        "--never-null",
        "city",
        "--sample",
        "train.parquet",
        "--to",
        "onnx",
        "--out",
        tmp_path / "f.onnx",
        "--trust",
    )
    code, _, said = run("convert", "features.py:features", *words)
    assert (code, "column 'city' has missing values" in problem(said)) == (2, True)


def test_convert_with_extensions(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_extensions")
    if "tensorflow" in sys.modules:
        pytest.skip("onnxruntime-extensions does not work beside TensorFlow")
    words = ("convert", "features.py:coded", "--sample", "train.parquet", "--to", "onnx", "--out", tmp_path / "f.onnx")
    code, _, said = run(*words, "--trust")
    assert (code, "with --extensions" in problem(said)) == (2, True)
    assert "the same as pandas" in converted(run, tmp_path / "f.onnx", "features.py:coded", "--extensions")
    code, told, _ = run("verify", "features.py:coded", tmp_path / "f.onnx", "--sample", "test.parquet", "--trust")
    assert code == 0, told
    code, told, _ = run("inspect", tmp_path / "f.onnx")
    assert (code, "onnxruntime-extensions" in told) == (0, True)


def test_the_sample_is_read_by_the_library_of_the_function(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    assert "the same as polars" in converted(run, tmp_path / "p.onnx", "polar.py:features")
    code, _, said = run(
        *("convert", "polar.py:features", "--sample", "train.parquet", "--library", "pandas"),
        *("--to", "onnx", "--out", tmp_path / "q.onnx", "--trust"),
    )
    assert code == 2
    assert "polar.py, line 5" in problem(said)


def test_by_the_name_of_a_module(run: Run, tmp_path: Path) -> None:
    code, _, said = run(
        "convert", "features:features", "--sample", "train.csv", "--to", "onnx", "--out", tmp_path / "f"
    )
    assert code == 0, said


def test_nothing_runs_without_trust(run: Run, tmp_path: Path, folder: Path) -> None:
    for words in (
        ["convert", "marks.py:features", "--sample", "train.parquet", "--to", "onnx", "--out", tmp_path / "f.onnx"],
        ["verify", "marks.py:features", "train.parquet", "--sample", "train.parquet"],
        ["inspect", "marks.py:features", "--sample", "train.parquet"],
    ):
        code, _, said = run(*words)
        assert code == 2
        assert "--trust opens it" in problem(said)
    assert not (folder / "ran").exists()
    converted(run, tmp_path / "f.onnx", "marks.py:features")
    assert (folder / "ran").exists()
    (folder / "ran").unlink()


@pytest.mark.parametrize(
    ("source", "sample", "words"),
    [
        ("broken.py:features", "train.csv", "broken.py: it is no Python: line 1"),
        ("needs.py:features", "train.csv", "needs.py, line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("absent.py:features", "train.csv", "absent.py: this file or folder does not exist"),
        ("features.py:fetures", "train.csv", "features.py has no function 'fetures'; did you mean features?"),
        ("features.py:number", "train.csv", "it is of int, and no function"),
        ("features.py:Kind", "train.csv", "it is a class, and no function"),
        ("features.py:makes_nothing", "train.csv", "it takes no argument"),
        (
            "features.py:misspelt",
            "train.csv",
            'line 22 (return df.assign(debt=df.loan / df["incom"])): the function fails',
        ),
        ("features.py:misspelt", "train.csv", "it has no column 'incom'; its columns are age, loan, income, city"),
        ("features.py:branches", "train.csv", "line 26 (return df if df.loan.mean() > 3 else -df): Scalar: a branch"),
        ("features.py:features", None, "a function does not say which columns it is given: give --sample rows.parquet"),
        ("features.py:features", "absent.csv", "absent.csv: this file or folder does not exist"),
        ("features.py:features", "features.py", "rows are read from .csv, .feather, .parquet, .npy and .npz"),
    ],
)
def test_bad_input_is_told_in_one_line(run: Run, tmp_path: Path, source: str, sample: str | None, words: str) -> None:
    given = [] if sample is None else ["--sample", sample]
    code, _, said = run("convert", source, *given, "--to", "onnx", "--out", tmp_path / "f.onnx", "--trust")
    assert code == 2
    assert words in problem(said)
    assert not (tmp_path / "f.onnx").exists()


def test_options_of_other_sources_are_refused(run: Run, tmp_path: Path) -> None:
    converted(run, tmp_path / "f.onnx", "features.py:features")
    code, _, said = run("convert", tmp_path / "f.onnx", "--to", "torch", "--out", tmp_path / "t", "--freeze", "a.mean")
    assert (code, "--freeze is for functions on data frames" in problem(said)) == (2, True)
    code, _, said = run("convert", tmp_path / "f.onnx", "--to", "torch", "--out", tmp_path / "t", "--never-null", "a")
    assert (code, "--never-null is for functions on data frames" in problem(said)) == (2, True)
    code, _, said = run("convert", tmp_path / "f.onnx", "--to", "torch", "--out", tmp_path / "t", "--extensions")
    assert (code, "--extensions is for functions on data frames" in problem(said)) == (2, True)
    code, _, said = run("convert", "features.py:features", "--to", "onnx", "--input", "x:float32[2]", "--trust")
    assert (code, "--input does not apply to a function on data frames" in problem(said)) == (2, True)


def test_verify_names_the_column_and_the_row(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "f.onnx"
    converted(run, out, "features.py:features")
    code, said, _ = run("verify", "features.py:features", out, "--sample", "test.parquet", "--trust")
    assert (code, "Same: " in said) == (0, True)
    converted(run, out, "features.py:features", "--freeze", "age.median")
    code, said, _ = run("verify", "features.py:features", out, "--sample", "test.parquet", "--trust")
    row = int(pd.read_parquet("test.parquet").age.isna().idxmax())
    assert code == 1
    assert f"test.parquet: age: row {row} is " in said
    code, said, _ = run("verify", "features.py:other", out, "--sample", "test.parquet", "--trust")
    assert code == 1
    assert "the columns are" in said


def test_verify_as_json(run: Run, tmp_path: Path) -> None:
    converted(run, tmp_path / "f.onnx", "features.py:features")
    words = ("verify", "features.py:features", tmp_path / "f.onnx", "--sample", "test.csv", "--trust", "--json")
    found = json.loads(run(*words)[1])
    assert found["status"] == "same"
    outputs = found["sides"][0]["trials"][0]["outputs"]
    assert [output["name"] for output in outputs] == ["age", "city", "debt", "band", "rate"]


def test_verify_without_rows_or_models(run: Run, tmp_path: Path) -> None:
    code, _, said = run("verify", "features.py:features", tmp_path / "f.onnx", "--sample", "test.csv", "--trust")
    assert (code, "does not exist" in problem(said)) == (2, True)
    converted(run, tmp_path / "f.onnx", "features.py:features")
    code, _, said = run("verify", "features.py:features", tmp_path / "f.onnx", "--trust")
    assert (code, "give --sample rows.parquet" in problem(said)) == (2, True)
    code, _, said = run("verify", tmp_path / "f.onnx", tmp_path / "f.onnx", "--sample", "test.csv")
    assert (code, "--sample is for functions on data frames" in problem(said)) == (2, True)


def test_inspect_shows_columns(run: Run, tmp_path: Path) -> None:
    converted(run, tmp_path / "f.onnx", "features.py:features")
    code, said, _ = run("inspect", tmp_path / "f.onnx")
    assert code == 0
    nodes = len(list(onward.load(tmp_path / "f.onnx").ir.graph))
    assert f"data processing of pandas: {nodes} nodes" in said
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert ["in", "city", "text", "city.null", ""] in cells
    assert ["out", "band", "category", "band.null", "low, mid, high"] in cells
    found: dict[str, Any] = json.loads(run("inspect", tmp_path / "f.onnx", "--json")[1])["data_processing"]
    assert (found["library"], found["model_nodes"], found["boundary"]) == ("pandas", 0, {})
    assert [column["name"] for column in found["inputs"]] == ["age", "loan", "income", "city"]
    assert found["inputs"][0]["null"] == "NaN"


def test_verify_a_pipeline_on_a_sample(run: Run, tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rows = pd.read_parquet("train.parquet").fillna({"age": 0.0})
    rows.to_parquet(tmp_path / "rows.parquet")
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"]), remainder="passthrough")
    for name, factor in (("one", 1.0), ("two", 2.0)):
        model = make_pipeline(columns, LinearRegression()).fit(rows, rows.loan * factor)
        joblib.dump(model, tmp_path / f"{name}.joblib")
    sample = ("--sample", tmp_path / "rows.parquet", "--trust")
    code, _, said = run("convert", tmp_path / "one.joblib", *sample, "--to", "onnx", "--out", tmp_path / "one.onnx")
    assert code == 0, said
    assert run("verify", tmp_path / "one.joblib", tmp_path / "one.onnx", *sample)[0] == 0
    code, said, _ = run("verify", tmp_path / "two.joblib", tmp_path / "one.onnx", *sample)
    assert (code, "predict" in said) == (1, True)
