"""Functions on frames of pandas as models: the contract of columns, what is frozen, and what is refused."""

import json
import sys
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

pd = pytest.importorskip("pandas")

import onward  # noqa: E402
from onward.backends.emit.execute import GENERATED, run_in  # noqa: E402
from onward.errors import InvalidDataError, OnwardError, RunFailure, UnsupportedError, VerificationError  # noqa: E402
from onward.frontends.dataframe.fitted import fitted_once  # noqa: E402

SAMPLE = pd.DataFrame(
    {
        "age": [20.0, None, 55.0, 31.0],
        "income": [100, 0, 50, 70],
        "name": ["ann", None, "", "bob"],
        "member": [True, False, True, False],
        "joined": pd.to_datetime(["2020-02-29", None, "1969-12-31", "2024-01-01"]),
        "grade": pd.Categorical(["a", "b", None, "a"], ["a", "b", "c"]),
        "visits": pd.array([1, None, 3, 4], "Int64"),
        "unread": [object()] * 4,
    }
)


def features(df: Any) -> Any:
    return df[["age", "income", "name", "member", "joined", "grade", "visits"]]


def inputs(model: onward.Model) -> dict[str, list[int | str | None]]:
    graph = model.to_proto().graph
    return {
        value.name: [d.dim_value or d.dim_param or None for d in value.type.tensor_type.shape.dim]
        for value in graph.input
    }


def session(model: onward.Model) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.to_proto().SerializeToString(), options)


def test_a_column_is_an_input_and_one_that_is_not_read_is_none() -> None:
    model = onward.from_dataframe(lambda df: df.assign(debt=df.income / df.age)[["debt"]], SAMPLE)
    assert inputs(model) == {"income": ["rows", 1], "age": ["rows", 1]}
    onnx.checker.check_model(model.to_proto(), full_check=True)


def test_columns_keep_their_types_and_nulls() -> None:
    model = onward.from_dataframe(features, SAMPLE)
    found = onward.run(model, SAMPLE)
    pd.testing.assert_frame_equal(found, features(SAMPLE))


def test_nulls_are_an_input_that_need_not_be_fed() -> None:
    model = onward.from_dataframe(lambda df: df[["name"]].fillna("nobody"), SAMPLE)
    names = np.array([["ann"], [""]], object)
    runs = session(model)
    assert runs.run(["name.out"], {"name": names})[0].tolist() == [["ann"], [""]]
    fed = {"name": names, "name.null": np.array([[False], [True]])}
    assert runs.run(["name.out"], fed)[0].tolist() == [["ann"], ["nobody"]]


def test_what_stands_under_a_null_does_not_matter() -> None:
    model = onward.from_dataframe(
        lambda df: pd.DataFrame({"is": df.name == "ann", "in": df.name.isin(["ann"])}), SAMPLE
    )
    fed = {"name": np.array([["ann"]], object), "name.null": np.array([[True]])}
    assert [array.tolist() for array in session(model).run(["is", "in"], fed)] == [[[False]], [[False]]]


def test_times_are_ticks_and_nat_is_the_lowest() -> None:
    model = onward.from_dataframe(lambda df: df[["joined"]], SAMPLE)
    assert list(inputs(model)) == ["joined"]
    ticks = np.array([[0], [np.iinfo(np.int64).min]])
    assert session(model).run(None, {"joined": ticks})[0].tolist() == ticks.tolist()


def test_the_metadata_tells_columns_and_types() -> None:
    model = onward.from_dataframe(features, SAMPLE)
    told = json.loads(model.ir.metadata_props["onward.data_processing"])
    assert [column["name"] for column in told["outputs"]] == list(features(SAMPLE).columns)
    by_name = {column["name"]: column for column in told["inputs"]}
    assert by_name["grade"]["categories"] == ["a", "b", "c"]
    assert by_name["joined"] == {"name": "joined", "dtype": "int64", "tensor": "joined", "meaning": "datetime",
                                 "unit": "us", "own": "datetime64[us]"}  # fmt: skip
    assert all(node.name.startswith("dataproc/") for node in model.to_proto().graph.node)


def test_a_label_that_is_no_category_is_missing() -> None:
    model = onward.from_dataframe(lambda df: df.grade.cat.codes.rename("code"), SAMPLE)
    strange = pd.DataFrame({"grade": ["a", "z", "c"]})
    assert onward.run(model, strange).tolist() == [0, -1, 2]


def test_an_aggregate_is_that_of_the_rows_given_unless_it_is_fitted() -> None:
    def batch(df: Any) -> Any:
        return df.income - df.income.mean()

    def fitted(df: Any) -> Any:
        return df.income - onward.fitted(df.income.mean())

    other = pd.DataFrame({"income": [10, 20]})
    assert onward.run(onward.from_dataframe(batch, SAMPLE), other).tolist() == [-5.0, 5.0]
    mean = SAMPLE.income.mean()
    for model in (
        onward.from_dataframe(fitted, SAMPLE),
        onward.from_dataframe(batch, SAMPLE, freeze=["income.mean"]),
    ):
        assert onward.run(model, other).tolist() == [10 - mean, 20 - mean]
    assert onward.fitted(3) == 3
    with pytest.raises(OnwardError, match=r"freeze names \'age\.max\'"):
        onward.from_dataframe(batch, SAMPLE, freeze=["age.max"])


def test_a_schema_stands_for_a_sample() -> None:
    model = onward.from_dataframe(lambda df: df.x + 1, {"x": "float64", "y": "str"})
    assert onward.run(model, pd.DataFrame({"x": [1.0]})).tolist() == [2.0]


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda df: df if df.age.mean() > 3 else df * 2, "a branch depends on data"),
        (lambda df: [row + 1 for row in df.age], "a loop goes over its values"),
        (lambda df: np.asarray(df.age), "as an array"),
        (lambda df: pd.get_dummies(df.name), "CategoricalDtype"),
        (lambda df: df.sample(3), "DataFrame.sample"),
        (lambda df: df.age.astype(str), "astype"),
        (lambda df: df.unread, "object"),
        (lambda df: 3, "returns a int"),
        (lambda df: None, "returns nothing"),
        (lambda df: df.income.to_frame().assign(other=[1, 2, 3, 4]), "length of the sample"),
        (lambda df: df[df.age > 30].age + df[df.age > 30].income.reset_index(drop=True), "different rows"),
    ],
)
def test_what_depends_on_data_is_refused_by_name(function: Any, word: str) -> None:
    with pytest.raises(UnsupportedError, match=word):
        onward.from_dataframe(function, SAMPLE)


def test_a_refusal_names_the_line_of_the_function() -> None:
    def strange(df: Any) -> Any:
        return df.assign(x=df.age.kurtosis_of_mine() if hasattr(df.age, "kurtosis_of_mine") else df.age.to_period())

    with pytest.raises(UnsupportedError, match=r"test_from_dataframe\.py, line \d+ \(return df\.assign"):
        onward.from_dataframe(strange, SAMPLE)


def test_where_pandas_raises_an_error_the_model_fails_and_says_so() -> None:
    model = onward.from_dataframe(lambda df: df.income.astype(float).astype(int), SAMPLE)
    widened = onward.from_dataframe(lambda df: df.age.fillna(0).astype(int), SAMPLE)
    assert onward.run(widened, SAMPLE).tolist() == [20, 0, 55, 31]
    assert onward.run(model, SAMPLE).tolist() == [100, 0, 50, 70]
    direct = onward.from_dataframe(lambda df: df.age.astype(int), {"age": "float64"})
    with pytest.raises(RunFailure, match="missing or infinite"):
        onward.run(direct, pd.DataFrame({"age": [1.0, np.nan]}))


def test_a_wrong_model_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    from onward.frontends.dataframe.tensors import numbers

    monkeypatch.setattr(numbers, "rounded", lambda x, decimals: x)
    with pytest.raises(VerificationError, match="column 'r'"):
        onward.from_dataframe(lambda df: (df.age / 3).round(1).rename("r"), SAMPLE)


def test_functions_of_single_values_are_followed_through_their_branches() -> None:
    table = {"ann": 1, "bob": 2}

    def band(age: float) -> str:
        if age < 25:
            return "young"
        return "old" if age > 50 else "middle"

    def row(person: Any) -> float:
        return person["income"] * 2 if person["member"] else -1.0

    def all_of_them(df: Any) -> Any:
        return pd.DataFrame(
            {"band": df.age.apply(band), "row": df.apply(row, axis=1), "code": df.name.map(lambda n: table.get(n, 0))}
        )

    model = onward.from_dataframe(all_of_them, SAMPLE)
    assert onward.run(model, SAMPLE).band.tolist() == ["young", "middle", "old", "middle"]


def test_pandas_is_as_it_was_afterwards() -> None:
    before = {name: getattr(pd, name) for name in ("Series", "DataFrame", "isna", "cut", "merge")}
    onward.from_dataframe(lambda df: pd.isna(df.age), SAMPLE)
    with pytest.raises(UnsupportedError):
        onward.from_dataframe(lambda df: pd.crosstab(df.name, df.grade), SAMPLE)
    assert all(getattr(pd, name) is value for name, value in before.items())
    assert "len" not in globals()


def test_frames_that_do_not_fit_are_told() -> None:
    model = onward.from_dataframe(lambda df: df.age + df.income, SAMPLE)
    with pytest.raises(InvalidDataError, match="no column 'income'"):
        onward.run(model, pd.DataFrame({"age": [1.0]}))
    with pytest.raises(InvalidDataError, match="'age'"):
        onward.run(model, pd.DataFrame({"age": ["old"], "income": [1]}))
    with pytest.raises(InvalidDataError, match="missing"):
        onward.run(model, pd.DataFrame({"age": [1.0], "income": pd.array([None], "Int64")}))
    with pytest.raises(InvalidDataError, match="a sample is a data frame"):
        onward.from_dataframe(lambda df: df, [1, 2])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_that_are_never_null_have_no_mask(library: str) -> None:
    module = pytest.importorskip(library)
    rows = module.DataFrame({"city": ["a", "b"], "name": ["x", "y"]})

    def function(df: Any) -> Any:
        return df[["city", "name"]]

    model = onward.from_dataframe(function, rows, never_null=["city"])
    names = [value.name for value in model.ir.graph.inputs]
    assert "city.null" not in names
    assert "name.null" in names
    with pytest.raises(OnwardError, match="city"):
        onward.run(model, module.DataFrame({"city": ["a", None], "name": ["x", None]}))
    with pytest.raises(OnwardError, match="never_null names 'town'"):
        onward.from_dataframe(function, rows, never_null=["town"])


def test_a_function_is_compared_with_what_it_fitted_to_the_sample() -> None:
    def scaled(df: Any) -> Any:
        low, high = onward.fitted(df.income.min()), onward.fitted(df.income.max())
        return ((df.income - low) / (high - low)).rename("income")

    model = onward.from_dataframe(scaled, SAMPLE)
    assert onward.verify(scaled, model, sample=SAMPLE).ok
    doubled = onward.from_dataframe(lambda df: 2 * scaled(df), SAMPLE)
    assert not onward.verify(scaled, doubled, sample=SAMPLE).ok
    once = fitted_once(scaled)
    once(SAMPLE)
    assert once(SAMPLE.head(1)).tolist() == scaled(SAMPLE).head(1).tolist()


def test_modules_generated_from_models_are_not_the_users_own() -> None:
    """Thousands of them may be there, in which nothing asks for frames."""
    name = f"{GENERATED}_0.model"
    module = ModuleType(name)
    run_in(module, "def length(x):\n    return len(x)\n")
    replaced = []

    def function(df: Any) -> Any:
        replaced.append({"len", "range"} & vars(module).keys())
        return df.income * 2

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)
        onward.from_dataframe(function, SAMPLE, check=False)
    assert replaced
    assert not any(replaced)
