"""Data processing with models of several frameworks behind it: one file, which computes what the two compute."""

from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

import onward  # noqa: E402
from onward.errors import OnwardError  # noqa: E402

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "age": np.where(RNG.random(80) < 0.2, np.nan, RNG.integers(18, 90, 80)),
        "income": RNG.integers(0, 50, 80),
        "city": RNG.choice(np.array(["rome", "oslo", None], object), 80),
        "at": pd.to_datetime("2024-01-01") + pd.to_timedelta(RNG.integers(0, 900, 80), "D"),
    }
)
TARGET = (RNG.random(80) < 0.5).astype(int)


def numbers(df: Any) -> Any:
    return pd.DataFrame({"age": df.age, "rich": df.income > 20, "month": df["at"].dt.month, "income": df.income})


@pytest.fixture(scope="module")
def prep() -> onward.Model:
    return onward.from_dataframe(numbers, ROWS)


def test_xgboost(prep: onward.Model) -> None:
    xgboost = pytest.importorskip("xgboost")
    trees = xgboost.XGBClassifier(n_estimators=5).fit(numbers(ROWS), TARGET)
    both = onward.pipeline(prep, onward.from_xgboost(trees))
    chances = onward.run(both, ROWS)[["probabilities_0", "probabilities_1"]]
    np.testing.assert_allclose(chances, trees.predict_proba(numbers(ROWS)), atol=1e-6)


def test_lightgbm(prep: onward.Model) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(numbers(ROWS), TARGET)
    both = onward.pipeline(prep, onward.from_lightgbm(trees))
    np.testing.assert_allclose(onward.run(both, ROWS).prediction, trees.predict(numbers(ROWS)), atol=1e-12)


def test_pytorch(prep: onward.Model) -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    both = onward.pipeline(prep, onward.from_torch(net, torch.ones(2, 4), opset=20))
    assert both.opset == prep.opset
    expected = net(torch.tensor(numbers(ROWS).to_numpy(np.float32))).detach().numpy()
    np.testing.assert_allclose(onward.run(both, ROWS).to_numpy(), expected, rtol=1e-5, atol=1e-5)
    data, model = onward.split(both)
    assert onward.run(data, ROWS).month.tolist() == ROWS["at"].dt.month.tolist()
    assert list(model.ir.graph.inputs[0].shape or ())[1] == 4


def test_a_column_is_not_taken_for_a_matrix_of_its_name() -> None:
    """The input of a model of trees is called x, and so is a column."""
    lightgbm = pytest.importorskip("lightgbm")

    def with_x(df: Any) -> Any:
        return pd.DataFrame({"x": df.income, "age": df.age})

    trees = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(with_x(ROWS), TARGET)
    both = onward.pipeline(onward.from_dataframe(with_x, ROWS), onward.from_lightgbm(trees))
    np.testing.assert_allclose(onward.run(both, ROWS).prediction, trees.predict(with_x(ROWS)), atol=1e-12)


def test_no_rows(prep: onward.Model) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(numbers(ROWS), TARGET)
    both = onward.pipeline(prep, onward.from_lightgbm(trees))
    assert onward.run(both, ROWS.head(0)).shape == (0, 3)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda df: df[["city", "income", "age", "at"]], "column 'city' is of text, and the model takes"),
        (lambda df: df[["at", "income", "age"]].assign(x=1.0), "column 'at' is a datetime.*, which no model takes"),
        (lambda df: df[["income", "age"]], "the data processing gives 2 columns"),
    ],
)
def test_columns_that_the_model_cannot_take(function: Any, words: str) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(numbers(ROWS), TARGET)
    with pytest.raises(OnwardError, match=words):
        onward.pipeline(onward.from_dataframe(function, ROWS), onward.from_lightgbm(trees))


def test_a_missing_text_is_missing_after_the_model_is_taken_off() -> None:
    """The model does not read the mask of a text; the data part still gives it."""
    sklearn = pytest.importorskip("sklearn.preprocessing")

    def cities(df: Any) -> Any:
        return pd.DataFrame({"city": df.city.str.upper()})

    sample = pd.DataFrame({"city": ["rome", None, "oslo", ""]})
    encoder = sklearn.OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(cities(sample).fillna(""))
    both = onward.pipeline(
        onward.from_dataframe(cities, sample), onward.from_sklearn(encoder, cities(sample).fillna(""))
    )
    data, _ = onward.split(onward.load(both.to_proto()))
    assert onward.run(data, sample).city.isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "Float64"])
@pytest.mark.parametrize("options", [{}, {"method": "dense", "pct": True}, {"na_option": "bottom", "ascending": False}])
def test_ranks_of_nullable_numbers(dtype: str, options: dict[str, Any]) -> None:
    sample = pd.DataFrame({"v": pd.array([3, None, 1, 3, 2, None], dtype=dtype)})

    def ranked(df: Any) -> Any:
        return pd.DataFrame({"rank": df.v.rank(**options)})

    found = onward.run(onward.from_dataframe(ranked, sample), sample)
    pd.testing.assert_frame_equal(found, ranked(sample))
