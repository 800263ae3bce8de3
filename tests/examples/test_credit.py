"""The example of credit: its data are made from a seed, and its features are plain pandas that run on them."""

import runpy
from pathlib import Path
from typing import Any

import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

FOLDER = Path(__file__).parents[2] / "examples/credit"


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / "make_data.py"))


def test_data_are_the_same_each_time_and_look_real(made: dict[str, Any]) -> None:
    frame = made["applications"](400)
    pd.testing.assert_frame_equal(frame, made["applications"](400))
    assert not frame.equals(made["applications"](400, seed=1))
    assert 0.05 < frame["default"].mean() < 0.5
    assert frame[["age", "income", "grade", "purpose", "employer"]].isna().any().all()
    assert not frame[["loan", "applied", "region"]].isna().any().any()


def test_files_are_written(made: dict[str, Any], tmp_path: Path) -> None:
    made["main"](tmp_path, 80)
    train, test = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("train", "test"))
    assert (len(train), len(test)) == (80, 20)
    assert list(pd.read_csv(tmp_path / "train.csv").columns) == list(train.columns)
    assert train["applied"].dtype.kind == "M"


def test_features_are_plain_pandas(made: dict[str, Any]) -> None:
    source = FOLDER / "features.py"
    assert "onward" not in source.read_text()
    found = runpy.run_path(str(source))["features"](made["applications"](100))
    assert {"segment", "weekend", "unemployment", "debt"} <= set(found.columns)
    assert "applied" not in found
    assert len(found) == 100
