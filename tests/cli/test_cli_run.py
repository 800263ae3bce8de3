"""`onward run`: options, messages and exit codes; `tests/scoring` has what is computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from onward.cli import main

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    monkeypatch.chdir(tmp_path)
    drawn = np.random.default_rng(1).random((30, 1, 8, 8)).astype(np.float32)
    np.savez("images.npz", image=drawn)
    pd.DataFrame({"id": range(30)} | {f"p{i}": drawn.reshape(30, -1)[:, i] for i in range(64)}).to_csv(
        "pixels.csv", index=False
    )
    return drawn


def test_a_table_and_arrays_give_the_same(images: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(DIGITS), "--data", "images.npz", "--out", "scored.npz", "--batch", "7"]) == 0
    assert capsys.readouterr().out.startswith("scored.npz: 30 rows in ")
    pixels = ",".join(f"p{i}" for i in range(64))
    words = ["run", str(DIGITS), "--data", "pixels.csv", "--column", f"image={pixels}", "--keep", "id"]
    assert main([*words, "--out", "scored.csv"]) == 0
    arrays, table = np.load("scored.npz"), pd.read_csv("scored.csv")
    (name,) = arrays.files
    assert arrays[name].shape == (30, 10) and table.columns.tolist() == ["id", *(f"{name}_{i}" for i in range(10))]
    np.testing.assert_allclose(table.drop(columns="id"), arrays[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--data", "pixels.csv", "--out", "out.csv"],
            "no column 'image', which the model takes; --column image=a,b,c",
        ),
        (["--data", "images.npz", "--out", "out.xls"], "results are written to .parquet, .csv, .feather, .npz"),
        (["--data", "images.npz", "--out", "no/out.csv"], "there is no folder no to write to"),
        (["--data", "images.npz", "--out", "images.npz"], "images.npz exists already: --force writes over it"),
        (["--data", "nothing.csv", "--out", "out.csv"], "nothing.csv"),
        (["--data", "images.npz", "--out", "out.csv", "--column", "image"], "write it as INPUT=A,B,…"),
        (["--data", "images.npz", "--out", "out.csv", "--batch", "0"], "--batch 0: a batch has at least one row"),
        (["--data", "images.npz", "--out", "out.csv", "--workers", "2"], "on a cluster that --on names"),
        (["--data", "images.npz", "--out", "out.csv", "--outputs", "none"], "the model gives no 'none'"),
        (["--data", "images.npz", "--out", "out.csv", "--on", "there"], "no place of a Ray cluster"),
    ],
)
def test_what_is_wrong_is_one_line(
    images: np.ndarray, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    before = sorted(Path().iterdir())
    assert main(["run", str(DIGITS), *words]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert sorted(Path().iterdir()) == before


def test_a_model_of_another_framework_is_converted_first(images: np.ndarray) -> None:
    xgboost = pytest.importorskip("xgboost")
    flat = images.reshape(30, -1)
    trees = xgboost.XGBRegressor(n_estimators=3).fit(flat, flat[:, 0])
    trees.save_model("trees.ubj")
    np.save("flat.npy", flat)
    assert main(["run", "trees.ubj", "--data", "flat.npy", "--out", "scored.npz"]) == 0
    (name,) = np.load("scored.npz").files
    np.testing.assert_allclose(np.load("scored.npz")[name].reshape(-1), trees.predict(flat), rtol=1e-5)
