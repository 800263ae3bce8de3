"""Functions on data frames inside pipelines of scikit-learn: what their inputs hold, and in which forms they come."""

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from sklearn.compose import ColumnTransformer, make_column_transformer  # noqa: E402
from sklearn.feature_extraction.text import CountVectorizer  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.pipeline import make_pipeline, make_union  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler  # noqa: E402

import onward  # noqa: E402
from onward.cli import main  # noqa: E402
from onward.errors import UnsupportedError  # noqa: E402

ROWS = pd.DataFrame(
    {
        "age": [20.0, None, 55.0, 31.0, 44.0, 70.0],
        "income": [100, 0, 50, 70, 20, 10],
        "city": ["rome", None, "", "oslo", "rome", "bonn"],
        "joined": pd.to_datetime(["2020-02-29", None, "1969-12-31", "2024-01-01", "2021-05-05", "2022-06-07"]),
    }
)
UNSEEN = pd.DataFrame(
    {
        "age": [None, 33.0, 80.0],
        "income": [5, 6, 7],
        "city": ["", None, "nowhere"],
        "joined": pd.to_datetime([None, "2000-01-01", "1900-03-01"]),
    }
)


def numbers(df: Any) -> Any:
    return pd.DataFrame({"age": df.age.fillna(0), "share": df.income / (df.age.fillna(0) + 1)})


def scaled(df: Any, factor: float = 1.0, *, other: float = 0.0) -> Any:
    return df * factor + other


def with_city(df: Any) -> Any:
    return pd.DataFrame({"age": df.age.fillna(0), "city": df.city})


def same(pipeline: Any, *, sample: Any = ROWS, method: str = "transform") -> onward.Model:
    """The model, which gives the same for rows that it never saw, for one and for none."""
    model = onward.from_sklearn(pipeline, sample, methods=[method])
    for rows in (UNSEEN, sample, UNSEEN.head(1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = getattr(pipeline, method)(rows)
        wanted = wanted.toarray() if hasattr(wanted, "toarray") else np.asarray(wanted)
        found = onward.run(model, rows).to_numpy().reshape(wanted.shape)
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=1e-9)
    assert len(onward.run(model, UNSEEN.head(0))) == 0
    return model


def inputs(model: onward.Model) -> list[str]:
    return [value.name or "" for value in model.ir.graph.inputs]


def test_inputs_are_the_columns_that_are_read() -> None:
    model = same(make_pipeline(FunctionTransformer(numbers), StandardScaler()).fit(ROWS))
    assert inputs(model) == ["age", "income"]


def test_missing_strings_are_told_from_empty_ones() -> None:
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, ["city"]), (StandardScaler(), ["age"]))
    model = same(make_pipeline(FunctionTransformer(with_city), columns).fit(ROWS))
    assert inputs(model) == ["age", "city", "city.null"]
    given = {"age": np.zeros((2, 1)), "city": np.asarray([[""], [""]], object)}
    session = __import__("onnxruntime").InferenceSession(model.to_proto().SerializeToString())
    (empty,) = session.run(None, given)
    (missing,) = session.run(None, {**given, "city.null": np.ones((2, 1), bool)})
    assert empty[0].argmax() != missing[0].argmax()


def test_columns_beside_the_function_follow_the_contract_as_well() -> None:
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    columns = ColumnTransformer([("n", FunctionTransformer(numbers), ["age", "income"]), ("c", ordinal, ["city"])])
    model = same(make_pipeline(columns).fit(ROWS))
    assert inputs(model) == ["age", "income", "city", "city.null"]
    data, rest = onward.split(model)
    assert inputs(data) == ["age", "income", "city", "city.null"]
    assert inputs(rest) == ["age", "share", "city", "city.null"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: FunctionTransformer(scaled, kw_args={"factor": 2.0, "other": 1.0}),
        lambda: FunctionTransformer(partial(scaled, factor=3.0)),
        lambda: FunctionTransformer(scaled, feature_names_out="one-to-one"),
        lambda: FunctionTransformer(scaled, inverse_func=scaled, check_inverse=False),
        lambda: make_union(FunctionTransformer(numbers), FunctionTransformer(scaled)),
        lambda: make_pipeline(FunctionTransformer(), FunctionTransformer(scaled)),
        lambda: make_pipeline(FunctionTransformer(numbers), FunctionTransformer(scaled), StandardScaler()),
        lambda: make_pipeline(StandardScaler().set_output(transform="pandas"), FunctionTransformer(scaled)),
    ],
    ids=["arguments", "partial", "names", "inverse", "union", "none", "two", "after a scaler"],
)
def test_forms_of_the_transformer(make: Any) -> None:
    filled = FunctionTransformer(lambda df: df[["age", "income"]].fillna(1.5))
    same(make_pipeline(filled, make()).fit(ROWS))


def test_a_frame_of_both_strings_and_numbers_between_two_steps() -> None:
    first = ColumnTransformer(
        [("f", FunctionTransformer(numbers), ["age", "income"]), ("c", "passthrough", ["city"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    second = make_column_transformer(
        (StandardScaler(), ["share"]), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["city"])
    )
    same(make_pipeline(first, second).fit(ROWS))


def test_a_function_of_a_single_column() -> None:
    columns = ColumnTransformer([("d", FunctionTransformer(lambda s: s.dt.year.fillna(0).to_frame()), "joined")])
    same(make_pipeline(columns).fit(ROWS))


def test_a_function_that_gives_texts_to_count() -> None:
    texts = FunctionTransformer(lambda df: df["city"].fillna("none"))
    pipeline = make_pipeline(texts, CountVectorizer()).fit(ROWS)
    found = onward.run(onward.from_sklearn(pipeline, ROWS), UNSEEN)
    np.testing.assert_array_equal(found.to_numpy(), pipeline.transform(UNSEEN).toarray())


def test_times_that_reach_an_estimator_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"joined.*a datetime.* is given to an estimator"):
        onward.from_sklearn(
            make_pipeline(FunctionTransformer(lambda df: df[["joined"]]), OrdinalEncoder()).fit(ROWS.dropna()),
            ROWS.dropna(),
        )


def test_a_refusal_names_the_line() -> None:
    def branches(df: Any) -> Any:
        return df[["age"]] if df.age.mean() > 3 else df[["income"]]

    with pytest.raises(UnsupportedError, match=r"FunctionTransformer: test_sklearn_functions.py, line \d+ .*a branch"):
        onward.from_sklearn(make_pipeline(FunctionTransformer(branches)).fit(ROWS), ROWS)


def test_arrays_are_not_given_to_functions_on_frames() -> None:
    model = make_pipeline(FunctionTransformer(scaled, validate=True), StandardScaler())
    rows = ROWS[["age", "income"]].fillna(1.0)
    with pytest.raises(UnsupportedError, match="is given an array"):
        onward.from_sklearn(model.fit(rows), rows)


class Fitted(LinearRegression):
    """A class that only fits in a way of its own."""

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(X, np.asarray(y) * 2)


class Doubled(LinearRegression):
    """A class that computes something else."""

    def predict(self, X: Any) -> Any:
        return super().predict(X) * 2


def test_derived_classes() -> None:
    y = ROWS.income * 1.5
    model = same(make_pipeline(FunctionTransformer(numbers), Fitted()).fit(ROWS, y), method="predict")
    assert inputs(model) == ["age", "income"]
    with pytest.raises(UnsupportedError, match="Doubled has no rule here"):
        onward.from_sklearn(make_pipeline(FunctionTransformer(numbers), Doubled()).fit(ROWS, y), ROWS)


def test_functions_in_files_are_code(tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    dump = pytest.importorskip("skops.io").dump
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_features.py").write_text("def features(df):\n    return df[['age', 'income']].fillna(0)\n")
    import own_features

    dump(make_pipeline(FunctionTransformer(own_features.features), StandardScaler()).fit(ROWS), "pipeline.skops")
    ROWS.to_parquet("rows.parquet")
    words = ["convert", "pipeline.skops", "--sample", "rows.parquet", "--to", "onnx", "--out", "all.onnx"]
    assert main(words) == 2
    assert "it holds the function own_features.features" in capsys.readouterr().err
    assert main([*words, "--trust"]) == 0
    said = capsys.readouterr().err
    assert "verified: the same as scikit-learn on 6 rows of the sample" in said
    assert "columns in: age (float64), income (int64)" in said
    assert main([*words[:2], "--to", "onnx", "--out", "all.onnx", "--trust"]) == 2
    assert "give --sample rows.parquet" in capsys.readouterr().err
