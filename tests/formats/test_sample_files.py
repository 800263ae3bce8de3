"""Files of rows: what reads them, and what is refused."""

from pathlib import Path

import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from onward.errors import InvalidDataError, MissingPackageError  # noqa: E402
from onward.formats import tables  # noqa: E402
from onward.formats.dataframe.functions import frame_for, library_of_function  # noqa: E402
from onward.formats.tables import read_table  # noqa: E402

FRAME = pd.DataFrame({"a": [1.5, None], "b": ["x", None], "at": pd.to_datetime(["2024-02-29", None])})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FRAME.to_parquet(tmp_path / "rows.parquet")
    FRAME.to_feather(tmp_path / "rows.feather")
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_dtypes_are_those_of_the_file(folder: Path, suffix: str) -> None:
    pd.testing.assert_frame_equal(read_table(folder / f"rows.{suffix}"), FRAME)


def test_dates_in_csv_are_text_as_pandas_reads_them(folder: Path) -> None:
    found = read_table(folder / "rows.csv")
    assert found["at"].tolist()[0] == "2024-02-29"
    assert found["b"].isna().tolist() == [False, True]


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv"])
def test_polars_reads_them_too(folder: Path, suffix: str) -> None:
    polars = pytest.importorskip("polars")
    found = read_table(folder / f"rows.{suffix}", "polars")
    assert isinstance(found, polars.DataFrame)
    assert found["a"].to_list() == [1.5, None]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_damaged_files(folder: Path, suffix: str) -> None:
    path = folder / f"rows.{suffix}"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InvalidDataError, match="its rows cannot be read"):
        read_table(path)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_more_rows_than_the_file_accounts_for(folder: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    big = pd.DataFrame({"a": [0] * 200_000})
    path = folder / f"big.{suffix}"
    big.to_parquet(path) if suffix == "parquet" else big.to_feather(path, compression="zstd")
    assert len(read_table(path)) == 200_000
    monkeypatch.setenv("ONWARD_MAX_UNPACKED", "1000")
    with pytest.raises(InvalidDataError, match=r"claims 200,000 values.*ONWARD_MAX_UNPACKED"):
        read_table(path)


def test_other_suffixes(folder: Path) -> None:
    (folder / "rows.xlsx").write_bytes(b"")
    with pytest.raises(InvalidDataError, match=r"rows are read from .csv, .feather, .parquet, .npy and .npz"):
        read_table(folder / "rows.xlsx")


def test_what_is_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onward.advice import extras

    monkeypatch.setattr(extras, "is_installed", lambda package: package != "pyarrow")
    with pytest.raises(MissingPackageError, match=r"pyarrow is not installed: pip install 'onward\[dataframe\]'"):
        tables.read_table(folder / "rows.parquet")
    monkeypatch.setattr(extras, "is_installed", lambda package: package != "polars")
    with pytest.raises(MissingPackageError, match=r"polars is not installed: pip install 'onward\[dataframe\]'"):
        frame_for(len, folder / "rows.csv", "polars")


def _function(source: str) -> object:
    names: dict[str, object] = {}
    exec(source, names)
    return names["f"]


@pytest.mark.parametrize(
    ("source", "library"),
    [
        ("import pandas as pd\ndef f(df): ...", "pandas"),
        ("def f(df): ...", "pandas"),
        ("import polars as pl\ndef f(df): ...", "polars"),
        ("import polars as pl, pandas as pd\ndef f(df): ...", "pandas"),
        ("import polars as pl, pandas as pd\ndef f(df: pl.DataFrame): ...", "polars"),
        ("from __future__ import annotations\nimport polars as pl, pandas\ndef f(df: pl.DataFrame): ...", "polars"),
        ("import narwhals as nw\ndef f(df): ...", "narwhals"),
    ],
)
def test_the_library_of_a_function(source: str, library: str) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("narwhals")
    assert library_of_function(_function(source)) == library  # type: ignore[arg-type]
