"""Files with data processing and a model behind it: all of it, or a part, goes to another framework."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
pytest.importorskip("torch")

from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder  # noqa: E402

import onward  # noqa: E402
from onward.errors import OnwardError  # noqa: E402

ROWS = pd.DataFrame(
    {"a": [1.0, 2.0, None, 4.0, 5.0], "b": [3, 1, 4, 1, 5], "text": ["x y", "y", None, "z z", ""]},
    columns=["a", "b", "text"],
)
TARGET = np.arange(5.0)


def numbers(df: Any) -> Any:
    return pd.DataFrame({"sum": df.a.fillna(0) + df.b, "known": df.text.notna()})


def words(df: Any) -> Any:
    return pd.DataFrame({"word": df.text.str.replace(r"\s.*", "", regex=True).str.upper()})


@pytest.fixture(scope="module")
def whole() -> onward.Model:
    """Its data processing reads a mask of nulls, and PyTorch takes all of it."""
    prep = onward.from_dataframe(numbers, ROWS)
    fitted = LinearRegression().fit(numbers(ROWS), TARGET)
    return onward.pipeline(prep, onward.from_sklearn(fitted, numbers(ROWS)))


@pytest.fixture(scope="module")
def texts() -> onward.Model:
    """Its data processing cuts texts by a pattern, which PyTorch has no way to do."""
    pipeline = make_pipeline(FunctionTransformer(words), OneHotEncoder(handle_unknown="ignore"), LinearRegression())
    return onward.from_sklearn(pipeline.fit(ROWS, TARGET), ROWS)


def test_all_of_it_where_the_framework_takes_it(whole: onward.Model, tmp_path: Path) -> None:
    import torch

    done = onward.convert(whole, to="torch", out=tmp_path / "net")
    assert done.verdicts[-1].status == "verified"
    assert not [remark for remark in done.remarks if "left out" in remark]
    net = _loaded(tmp_path / "net")
    columns = [ROWS.a.to_numpy(), ROWS.b.to_numpy(), ROWS.text.isna().to_numpy()]
    a, b, missing = (torch.from_numpy(column.reshape(-1, 1)) for column in columns)
    found = net(a, b, None, missing)
    np.testing.assert_allclose(found.detach().numpy().reshape(-1), onward.run(whole, ROWS).predict, rtol=1e-12)


def _loaded(path: Path) -> Any:
    from onward.formats.package import load_package

    return load_package(path)


def test_the_model_alone_where_it_does_not(texts: onward.Model, tmp_path: Path) -> None:
    done = onward.convert(texts, to="torch", out=tmp_path / "net")
    assert done.verdicts[-1].status == "verified"
    assert any("the model alone: its data processing is left out, as torch does not take it" in r for r in done.remarks)
    assert any(r.startswith("it takes word, word.null: part='data' to='onnx' writes") for r in done.remarks)


def test_nulls_reach_the_model_behind(whole: onward.Model) -> None:
    """Of the text nothing is read but whether it is missing."""
    assert [value.name for value in whole.ir.graph.inputs] == ["a", "b", "text", "text.null"]
    expected = LinearRegression().fit(numbers(ROWS), TARGET).predict(numbers(ROWS))
    np.testing.assert_allclose(onward.run(whole, ROWS).predict, expected, atol=1e-12)
    data, _ = onward.split(whole)
    assert onward.run(data, ROWS).known.tolist() == ROWS.text.notna().tolist()


def test_a_part_that_is_asked_for(texts: onward.Model, tmp_path: Path) -> None:
    with pytest.raises(OnwardError, match="Tokenizer"):
        onward.convert(texts, to="torch", out=tmp_path / "net", part="all")
    onward.convert(texts, to="onnx", out=tmp_path / "data.onnx", part="data")
    onward.convert(texts, to="onnx", out=tmp_path / "model.onnx", part="model")
    found = onward.run(tmp_path / "data.onnx", ROWS)
    assert found.word.fillna("-").tolist() == ["X", "Y", "-", "Z", ""]
    model = onward.load(tmp_path / "model.onnx")
    assert [value.name for value in model.ir.graph.inputs] == ["word", "word.null"]
    assert not [node.name for node in model.ir.graph if (node.name or "").startswith("dataproc/")]


@pytest.mark.parametrize(
    ("part", "words"),
    [("model", "it is data processing alone"), ("rest", "there is no part 'rest'; there are all, model, data")],
)
def test_parts_that_are_not_there(part: str, words: str, tmp_path: Path) -> None:
    prep = onward.from_dataframe(numbers, ROWS)
    with pytest.raises(OnwardError, match=words):
        onward.convert(prep, to="torch", out=tmp_path / "net", part=part)


def test_no_data_processing(tmp_path: Path) -> None:
    plain = onward.from_sklearn(LinearRegression().fit(np.eye(3), TARGET[:3]), np.eye(3))
    with pytest.raises(OnwardError, match="it has no data processing"):
        onward.convert(plain, to="onnx", out=tmp_path / "x.onnx", part="data")


def test_a_function_in_memory(tmp_path: Path) -> None:
    done = onward.convert(numbers, to="onnx", out=tmp_path / "f.onnx", sample=ROWS)
    assert done.verdicts[0].words.startswith("the same as pandas on the sample of 5 rows")
    report = onward.verify(numbers, tmp_path / "f.onnx", sample=ROWS.iloc[::-1])
    assert report.ok
    found = onward.inspect(numbers, sample=ROWS)["data_processing"]
    assert [column["name"] for column in found["outputs"]] == ["sum", "known"]


def test_constants_of_data_processing_are_not_trained(whole: onward.Model, tmp_path: Path) -> None:
    done = onward.convert(whole, to="torch", out=tmp_path / "net")
    assert done.trainable[0].startswith("trainable: 3 of ") or done.trainable[0].startswith("trainable: 2 of ")


def test_masks_have_to_be_given_to_frameworks(whole: onward.Model) -> None:
    """Which have no inputs with a default: a mask that is left out would be a constant, and nothing ever missing."""
    import torch

    net = onward.to_torch(whole)
    a, b = (torch.from_numpy(ROWS[name].to_numpy().reshape(-1, 1)) for name in ("a", "b"))
    found = [net(a, b, None, torch.full((5, 1), missing)).detach().numpy() for missing in (False, True)]
    assert not np.allclose(*found)
