"""Models made of functions on data frames: scored in batches as `onward.run` scores the whole frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import onward
from onward.errors import InvalidDataError, UnsupportedError

ROWS = 200
RNG = np.random.default_rng(5)


def frame() -> pd.DataFrame:
    rows = pd.DataFrame(
        {
            "id": [f"{i:03}" for i in range(ROWS)],
            "loan": RNG.uniform(1, 9, ROWS),
            "late": pd.array(RNG.integers(0, 5, ROWS), "Int64"),
            "region": RNG.choice(["north", "south"], ROWS),
            "grade": pd.Categorical(RNG.choice(["a", "b", "c"], ROWS)),
            "applied": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 999, ROWS), "D"),
            "member": RNG.random(ROWS) > 0.5,
        }
    )
    for column in ("loan", "late", "region", "grade", "applied"):
        rows.loc[RNG.random(ROWS) < 0.2, column] = None
    return rows


def features(df: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "loan": df.loan.fillna(0) + df.member,
            "late": df.late + 1,
            "region": df.region.str.upper(),
            "grade": df.grade,
            "applied": df.applied,
            "month": df.applied.dt.month,
        }
    )


def polars_features(df: pl.DataFrame) -> pl.DataFrame:
    loan = pl.col("loan")
    return df.select(
        both=loan + pl.col("late"), region=pl.col("region").str.to_uppercase(), day=pl.col("applied").dt.date()
    )


@pytest.fixture
def rows() -> pd.DataFrame:
    return frame()


def test_pandas(rows: pd.DataFrame, tmp_path: Path) -> None:
    model = onward.from_dataframe(features, rows)
    rows.to_parquet(tmp_path / "rows.parquet")
    assert onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.parquet", batch=33, keep="id") == ROWS
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert found.pop("id").tolist() == rows.id.tolist()
    pd.testing.assert_frame_equal(found, onward.run(model, rows), check_dtype=False)
    assert (
        found.dtypes[["region", "grade", "applied"]].tolist()
        == features(rows).dtypes[["region", "grade", "applied"]].tolist()
    )


def test_polars(rows: pd.DataFrame, tmp_path: Path) -> None:
    given = pl.from_pandas(rows.drop(columns="grade"))
    model = onward.from_dataframe(polars_features, given)
    given.write_parquet(tmp_path / "rows.parquet")
    assert onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.parquet", batch=33) == ROWS
    assert pl.read_parquet(tmp_path / "out.parquet").equals(onward.run(model, given))


def test_texts_of_a_csv_file_become_what_the_model_reads(rows: pd.DataFrame, tmp_path: Path) -> None:
    model = onward.from_dataframe(features, rows)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert (
        onward.score(
            model, tmp_path / "rows.csv", tmp_path / "out.csv", batch=33, keep="id,grade", outputs="late,month"
        )
        == ROWS
    )
    found = pd.read_csv(tmp_path / "out.csv", dtype={"id": str})
    whole = onward.run(model, rows)
    assert found.id.tolist() == rows.id.tolist() and found.columns.tolist() == ["id", "grade", "late", "month"]
    assert found.grade.fillna("").tolist() == rows.grade.astype(object).fillna("").tolist()
    np.testing.assert_array_equal(found.late, whole.late.astype(float))
    np.testing.assert_array_equal(found.month, whole.month)


def test_with_the_model_behind_it(rows: pd.DataFrame, tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    def numbers(df: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"loan": df.loan.fillna(0), "late": df.late.fillna(0).astype("int64")})

    fitted = LogisticRegression().fit(numbers(rows), rows.member)
    both = onward.pipeline(onward.from_dataframe(numbers, rows), onward.from_sklearn(fitted, numbers(rows)))
    rows.to_parquet(tmp_path / "rows.parquet")
    assert onward.score(both, tmp_path / "rows.parquet", tmp_path / "out.parquet", batch=33) == ROWS
    found, whole = pd.read_parquet(tmp_path / "out.parquet"), onward.run(both, rows)
    assert found.columns.tolist() == whole.columns.tolist()
    np.testing.assert_allclose(found.iloc[:, -1], whole.iloc[:, -1], rtol=1e-5)


def test_a_statistic_of_the_batch_is_refused(rows: pd.DataFrame, tmp_path: Path) -> None:
    model = onward.from_dataframe(lambda df: df.assign(loan=df.loan.fillna(df.loan.median()))[["loan"]], rows)
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(UnsupportedError, match="such as a median, has to be fitted or frozen"):
        onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.parquet")


def test_a_filter_is_refused(rows: pd.DataFrame, tmp_path: Path) -> None:
    model = onward.from_dataframe(lambda df: df[df.member][["loan"]], rows)
    rows.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(UnsupportedError, match="not one result for each row"):
        onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.parquet")


def test_columns_by_the_contract(rows: pd.DataFrame, tmp_path: Path) -> None:
    model = onward.from_dataframe(features, rows)
    rows.rename(columns={"region": "regions"}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InvalidDataError, match=r"no column 'region'.*did you mean regions\?"):
        onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    given = rows.assign(loan=rows.loan.astype(object))
    given.loc[:, "loan"] = "much"
    given.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InvalidDataError, match=r"column 'loan' is of str, not of float64: these are texts"):
        onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    with pytest.raises(InvalidDataError, match="says itself what its columns are"):
        onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.parquet", column={"loan": "loan"})
    with pytest.raises(InvalidDataError, match=r"the model gives no 'mnth'; did you mean month\?"):
        onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.parquet", outputs="mnth")
    assert pq.read_schema(tmp_path / "rows.parquet").names[0] == "id"
