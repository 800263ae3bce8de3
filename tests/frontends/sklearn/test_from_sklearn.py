"""`onward.from_sklearn`: samples, options of estimators, the way on to PyTorch, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn_battery as battery
from sklearn import (
    calibration,
    compose,
    ensemble,
    gaussian_process,
    impute,
    linear_model,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import onward
from onward.errors import InvalidDataError, InvalidModelError, OnwardError, UnsupportedError, VerificationError
from onward.exporters import from_sklearn
from onward.formats.sklearn import available
from onward.formats.tables import feeds, shortened
from onward.frontends.sklearn.convert import expected_of
from onward.frontends.sklearn.registry import RULES
from onward.runners.onnxruntime import prepare
from onward.verification.estimators import differing

RNG = np.random.default_rng(7)
X, LABELS = battery.matrix(RNG, 120)
FRESH, _ = battery.matrix(RNG, 40)
TARGET = X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0])
WORDS = np.array(["red", "green", "blue"])
GAPS, FRESH_GAPS = (np.where(RNG.random(x.shape) < 0.1, np.nan, x) for x in (X, FRESH))


def frame(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, rows),
            "income": np.where(rng.random(rows) < 0.1, np.nan, rng.gamma(2, 3, rows)),
            "city": rng.choice(np.array(["rome", "oslo", None], object), rows),
            "kids": rng.integers(0, 4, rows),
            "owner": rng.random(rows) < 0.5,
            "class": pd.Categorical(rng.choice(["a", "b"], rows)),
        }
    )


def mixed() -> Any:
    numbers = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    columns = compose.make_column_transformer(
        (numbers, ["age", "income"]), (preprocessing.OneHotEncoder(), ["city", "class"]), remainder="passthrough"
    )
    return pipeline.make_pipeline(columns, linear_model.LogisticRegression(max_iter=1000))


def same(estimator: Any, sample: Any, fresh: Any) -> onward.Model:
    """Convert an estimator, all of its methods, and compare on data that is not the sample."""
    methods = available(estimator)
    model = from_sklearn(estimator, sample, methods=methods)
    rows = shortened(fresh)
    assert differing(model, estimator, rows, methods, expected_of(estimator, rows, methods)) == []
    return model


CLASSIFIERS = {
    "ada": ensemble.AdaBoostClassifier(n_estimators=5),
    "bag of svc": ensemble.BaggingClassifier(svm.SVC(), n_estimators=3),
    "calibrated isotonic": calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(), method="isotonic", cv=2),
    "calibrated temperature": calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(), method="temperature", cv=2),
    "gaussian process": gaussian_process.GaussianProcessClassifier(1.0 * gaussian_process.kernels.Matern(nu=1.5)),
    "hard vote": ensemble.VotingClassifier([("a", naive_bayes.GaussianNB()), ("b", svm.SVC())], voting="hard"),
    "neighbours manhattan": neighbors.KNeighborsClassifier(p=1, weights="distance"),
    "one vs one": multiclass.OneVsOneClassifier(svm.LinearSVC()),
    "one vs rest": multiclass.OneVsRestClassifier(naive_bayes.GaussianNB()),
    "radius": neighbors.RadiusNeighborsClassifier(radius=2.0, outlier_label="most_frequent"),
    "sgd huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    "svc ovo": svm.SVC(decision_function_shape="ovo"),
    "svc poly": svm.SVC(kernel="poly", degree=2),
    "svc ties": svm.SVC(break_ties=True),
}


@pytest.mark.parametrize("labels", ["binary", "strings", "three"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str, labels: str) -> None:
    target = {"binary": LABELS > 0, "strings": WORDS[np.minimum(LABELS, 1)], "three": WORDS[LABELS]}[labels]
    same(CLASSIFIERS[name].fit(X, target), X, FRESH)


SEVERAL = {
    "chain": multioutput.ClassifierChain(naive_bayes.GaussianNB(), chain_method="predict_proba"),
    "forest": ensemble.RandomForestClassifier(3, random_state=0),
    "neighbours": neighbors.KNeighborsClassifier(),
    "network": neural_network.MLPClassifier((5,), max_iter=20, random_state=0),
    "one vs rest": multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    "ridge": linear_model.RidgeClassifier(),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_labels_at_once(name: str) -> None:
    labels = np.stack([LABELS == 0, X[:, 1] > 0, X[:, 4] > X[:, 0]], 1).astype(int)
    same(SEVERAL[name].fit(X, labels), X, FRESH)


TRANSFORMERS = {
    "imputer with marks": impute.SimpleImputer(strategy="median", add_indicator=True),
    "nearest imputer": impute.KNNImputer(n_neighbors=3, weights="distance", add_indicator=True),
    "power": preprocessing.PowerTransformer(),
    "quantile normal": preprocessing.QuantileTransformer(n_quantiles=20, output_distribution="normal"),
    "robust": preprocessing.RobustScaler(),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_missing_numbers(name: str) -> None:
    same(TRANSFORMERS[name].fit(GAPS), GAPS, FRESH_GAPS)


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("kind", ["constant", "continue", "linear", "periodic"])
def test_splines_beyond_their_knots(kind: str, degree: int) -> None:
    spline = preprocessing.SplineTransformer(degree=degree, extrapolation=kind, include_bias=False)
    same(spline.fit(X), X, FRESH * 3)


def test_trees_take_missing_numbers_the_way_they_learned() -> None:
    forest = ensemble.RandomForestClassifier(5, random_state=0).fit(GAPS, LABELS)
    same(forest, GAPS, FRESH_GAPS)
    histogram = ensemble.HistGradientBoostingClassifier(max_iter=5).fit(GAPS, LABELS)
    same(histogram, GAPS, FRESH_GAPS)


def test_a_data_frame_has_an_input_for_each_column() -> None:
    table = frame(120, 0)
    model = same(mixed().fit(table, WORDS[LABELS]), table, frame(40, 1))
    assert [value.name for value in model.ir.graph.inputs] == list(table.columns)
    dtypes = {value.name: value.dtype.name for value in model.ir.graph.inputs if value.dtype}
    words = {"age": "DOUBLE", "income": "DOUBLE", "city": "STRING", "kids": "INT64", "owner": "BOOL"}
    assert dtypes == words | {"class": "STRING"}
    assert [value.name for value in model.ir.graph.outputs] == ["predict", "predict_proba", "decision_function"]


def test_categories_of_a_data_frame_in_histogram_trees() -> None:
    table = frame(120, 0)[["age", "kids", "class"]]
    boosted = ensemble.HistGradientBoostingRegressor(max_iter=5).fit(table, TARGET)
    same(boosted, table, frame(40, 1)[["age", "kids", "class"]])


@pytest.mark.parametrize("unknown", ["ignore", "infrequent_if_exist"])
def test_categories_that_are_new_or_rare(unknown: str) -> None:
    table = frame(120, 0)[["city", "kids"]]
    fresh = pd.DataFrame({"city": ["rome", "lima", None], "kids": [1, 7, 2]})
    encoder = preprocessing.OneHotEncoder(handle_unknown=unknown, min_frequency=35).fit(table)
    same(encoder, table, fresh)


def test_missing_strings_are_fed_as_empty_ones() -> None:
    column = pd.DataFrame({"city": np.array(["rome", None, "oslo", None], object)})
    encoder = preprocessing.OneHotEncoder(sparse_output=False).fit(column)
    run = prepare(from_sklearn(encoder, column), "")
    found = run({"city": np.array([[""], ["oslo"]], object)})["transform"]
    assert np.array_equal(found, encoder.transform(pd.DataFrame({"city": [None, "oslo"]})))
    both = pd.DataFrame({"city": np.array(["", None], object)})
    with pytest.raises(UnsupportedError, match="cannot tell apart"):
        from_sklearn(preprocessing.OneHotEncoder().fit(both), both)


TEXTS = [
    "Hello, World! a café-au-lait… it's",
    "L'été à Paris; naïve Ж Жизнь",
    "don't stop_me now 123 a1 x",
    "",
    "hello",
]


@pytest.mark.parametrize("analyzer", ["word", "char"])
def test_texts_of_any_language(analyzer: str) -> None:
    same(CountVectorizer(analyzer=analyzer, ngram_range=(1, 2)).fit(TEXTS), TEXTS, [*TEXTS, "Привет, hello мир!"])


@pytest.mark.parametrize("vectorizer", [CountVectorizer, TfidfVectorizer])
@pytest.mark.parametrize("texts", [[], [""], ["", "?"]])
def test_texts_that_are_none_or_have_no_word(vectorizer: Any, texts: list[str]) -> None:
    import onnxruntime

    model = from_sklearn(vectorizer().fit(TEXTS), TEXTS).to_proto()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    rows = np.asarray(texts, object).reshape((-1, 1) if len(given.shape) == 2 else (-1,))
    (found,) = session.run(None, {given.name: rows})
    assert found.shape == (len(texts), len(vectorizer().fit(TEXTS).vocabulary_))
    assert not found.any()


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosted_trees_in_a_pipeline(library: str) -> None:
    module = pytest.importorskip(library)
    kind = module.LGBMClassifier if library == "lightgbm" else module.XGBClassifier
    steps = pipeline.make_pipeline(
        preprocessing.StandardScaler(), kind(n_estimators=3, verbosity=-1 if library == "lightgbm" else 0)
    )
    steps.fit(X, LABELS)
    same(steps, X, FRESH)
    same(calibration.CalibratedClassifierCV(steps, cv=2).fit(X, LABELS), X, FRESH)


ON_TO_TORCH = [
    *("AdaBoostRegressor", "ColumnTransformer", "GradientBoostingClassifier", "HistGradientBoostingClassifier"),
    *("IsolationForest", "KMeans", "KNeighborsClassifier", "LogisticRegression", "MLPClassifier", "NMF", "PCA"),
    *("RandomForestClassifier", "SVC", "SplineTransformer", "StackingClassifier"),
]


@pytest.mark.parametrize("float32", [False, True], ids=["float64", "float32"])
@pytest.mark.parametrize("name", ON_TO_TORCH)
def test_pytorch_says_the_same(name: str, float32: bool) -> None:
    pytest.importorskip("torch")
    from onward.backends.backend import backend

    case = battery.case(name, float32=float32)
    methods = available(case.estimator)
    model = from_sklearn(case.estimator, case.sample, methods=methods)
    rows = shortened(case.fresh)
    expected, found = expected_of(case.estimator, rows, methods), backend("torch").prepare(model)(feeds(rows))
    for output, values in expected.items():
        if values.dtype.kind == "f":
            limit = 1e-4 if float32 else 1e-9
            np.testing.assert_allclose(found[output], values, rtol=limit, atol=limit * np.abs(values).max())
        else:
            assert np.array_equal(found[output], values)


def test_strings_go_on_to_pytorch() -> None:
    pytest.importorskip("torch")
    from onward.backends.backend import backend

    table, fresh = frame(120, 0), frame(40, 1)
    estimator = mixed().fit(table, WORDS[LABELS])
    found = backend("torch").prepare(from_sklearn(estimator, table))(feeds(fresh))
    assert found["predict"].tolist() == estimator.predict(fresh).tolist()
    np.testing.assert_allclose(found["predict_proba"], estimator.predict_proba(fresh), rtol=1e-9)


def test_factors_beside_products_are_exact_in_onnx_runtime() -> None:
    """It fuses both, and rounds the factor to float32."""
    steps = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())
    steps.fit(X[:, :1], TARGET)
    found = prepare(from_sklearn(steps, X[:, :1]), "")({"X": FRESH[:, :1]})["predict"]
    np.testing.assert_allclose(found, steps.predict(FRESH[:, :1]), rtol=1e-13)


def test_outputs_are_in_the_precision_of_the_sample() -> None:
    model = linear_model.LogisticRegression().fit(X, LABELS)
    for dtype in (np.float32, np.float64):
        found = prepare(from_sklearn(model, X.astype(dtype)), "")({"X": FRESH.astype(dtype)})
        assert found["predict_proba"].dtype == dtype
        assert found["predict"].dtype == np.int64


def test_what_is_asked_for() -> None:
    model = linear_model.LogisticRegression().fit(X, LABELS)
    made = from_sklearn(model, X, methods=["decision_function"], opset=18)
    assert [value.name for value in made.ir.graph.outputs] == ["decision_function"]
    assert made.opset == {"": 18}
    with pytest.raises(OnwardError, match="LogisticRegression has no transform; it has predict, "):
        from_sklearn(model, X, methods=["transform"])


def test_a_model_that_differs_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    model = linear_model.LinearRegression().fit(X, TARGET)
    from_sklearn(model, X)
    right = RULES.get("sklearn.LinearRegression")
    assert right is not None
    wrong = type(right)(lambda op, one, x: {"predict": right.function(op, one, x)["predict"] + 1e-6}, right.as_given)
    monkeypatch.setitem(RULES._builtin, "sklearn.LinearRegression", wrong)
    with pytest.raises(VerificationError, match="LinearRegression: the model differs on the sample"):
        from_sklearn(model, X)


class Own(linear_model.LinearRegression):
    def predict(self, X: Any) -> Any:
        return -super().predict(X)


REFUSED: dict[str, tuple[Any, Any, type[OnwardError], str]] = {
    "another shape": (lambda: PCA().fit(X), X[:, :3], InvalidDataError, "X has 3 features, but PCA is expecting 5"),
    "no estimator": (lambda: print, X, InvalidModelError, "is not an estimator of scikit-learn"),
    "no rows": (lambda: PCA().fit(X), X[:0], InvalidDataError, "the sample has no rows"),
    "own class": (lambda: Own().fit(X, TARGET), X, UnsupportedError, "Own has no rule here"),
    "own function": (
        lambda: preprocessing.FunctionTransformer(lambda x: x + 1).fit(X),
        *(X, UnsupportedError, "the function <lambda> is given an array"),
    ),
    "strings for numbers": (lambda: PCA().fit(X), X.astype(str), UnsupportedError, "PCA is given strings"),
    "text pattern": (lambda: TfidfVectorizer(token_pattern=r"[a-c]+").fit(["abc"]), ["abc"], UnsupportedError, "a-c"),
    "transform that no rule has": (lambda: NMF(2, solver="mu").fit(abs(X)), abs(X), UnsupportedError, "solver 'cd'"),
    "unfitted": (lambda: PCA(), X, OnwardError, "PCA is not fitted: call fit before"),
    "unfitted pipeline": (lambda: pipeline.make_pipeline(PCA()), X, OnwardError, "Pipeline is not fitted"),
    "mixed column": (
        lambda: preprocessing.OneHotEncoder().fit([["a"], ["b"]]),
        *(np.array([["a"], [1]], object), OnwardError, "'X' holds int, str: a tensor holds strings or numbers"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, sample, error, words = REFUSED[name]
    with pytest.raises(error, match=words) as caught:
        from_sklearn(make(), sample)
    assert "\n" not in str(caught.value)


def test_several_kinds_of_missing_strings_are_one() -> None:
    table = pd.DataFrame({"city": np.array(["rome", None, float("nan"), float("nan")], object)})
    assert feeds(table)["city"].ravel().tolist() == ["rome", "", "", ""]


class Halved(TransformerMixin, BaseEstimator):
    """An estimator whose converter somebody registered with skl2onnx."""

    def fit(self, x: Any, y: Any = None) -> Any:
        self.fitted_ = True
        return self

    def transform(self, x: Any) -> Any:
        return x / 2


def test_converters_registered_with_skl2onnx_are_used() -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.algebra.onnx_ops import OnnxDiv
    from skl2onnx.common.data_types import DoubleTensorType

    def shapes(operator: Any) -> None:
        operator.outputs[0].type = DoubleTensorType(operator.inputs[0].type.shape)

    def convert(scope: Any, operator: Any, container: Any) -> None:
        node = OnnxDiv(operator.inputs[0], np.array([2.0]), op_version=18, output_names=operator.outputs)
        node.add_to(scope, container)

    steps = pipeline.make_pipeline(preprocessing.StandardScaler(), Halved(), svm.SVC()).fit(X, LABELS)
    with pytest.raises(UnsupportedError, match="Halved has no rule here, and no converter registered with skl2onnx"):
        from_sklearn(steps, X)
    skl2onnx.update_registered_converter(Halved, "TestsHalved", shapes, convert)
    same(steps, X, FRESH)


def test_clusters_give_their_distances_too() -> None:
    model = from_sklearn(KMeans(3, random_state=0).fit(X), X)
    assert [value.name for value in model.ir.graph.outputs] == ["predict", "transform"]


def test_a_skops_file(tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io")
    model = ensemble.RandomForestClassifier(3, random_state=0).fit(X, LABELS)
    skops.dump(model, tmp_path / "forest.skops")
    found = prepare(onward.from_sklearn(tmp_path / "forest.skops"), "")({"X": FRESH})
    assert np.array_equal(found["predict"], model.predict(FRESH))
