"""An example of every estimator of scikit-learn that can be given new data, fitted, with data it has not seen."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn import decomposition, linear_model, neighbors, preprocessing, tree
from sklearn.base import RegressorMixin
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.utils import all_estimators

from onward.errors import OnwardError
from onward.exporters import from_sklearn
from onward.formats.sklearn import METHODS, available
from onward.formats.tables import shortened
from onward.frontends.sklearn.convert import expected_of
from onward.verification.estimators import differing

Array = Any
LOGISTIC = linear_model.LogisticRegression()
RIDGE = linear_model.Ridge()
TREE = tree.DecisionTreeClassifier(max_depth=4, random_state=0)
ONE = ("features", preprocessing.StandardScaler())

DEPENDENT = {"SelfTrainingClassifier": -1, "LabelPropagation": -1, "LabelSpreading": -1}
"""Classifiers that are given labels of this value for rows whose label is not known."""
POSITIVE = {
    *("AdditiveChi2Sampler", "ComplementNB", "LatentDirichletAllocation", "MiniBatchNMF", "MultinomialNB", "NMF"),
    *("SkewedChi2Sampler", "TfidfTransformer"),
}
MULTI_TARGET = {
    *("CCA", "MultiOutputRegressor", "MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso"),
    *("MultiTaskLassoCV", "PLSCanonical", "PLSRegression", "PLSSVD", "RegressorChain"),
}
MULTI_LABEL = {"ClassifierChain", "MultiOutputClassifier"}
BINARY = {"FixedThresholdClassifier", "TunedThresholdClassifierCV"}
OWN_PRECISION = {"BisectingKMeans", "KMeans", "MiniBatchKMeans", "NMF"}
"""Estimators that take data in float32 only where they were fitted on such."""
TEXT = {"CountVectorizer", "HashingVectorizer", "TfidfVectorizer"}
CATEGORICAL = {"OneHotEncoder", "OrdinalEncoder", "TargetEncoder"}
MISSING = {"KNNImputer", "MissingIndicator", "SimpleImputer"}
WORDS = [
    *("the", "a", "Cat", "dog", "sat", "on", "mat,", "ran", "fast!", "slow", "red", "blue", "house", "tree-top", "and"),
    *("or", "not", "Été", "très", "(much)"),
]


@dataclass(frozen=True)
class Case:
    """A fitted estimator and what it is given."""

    name: str
    estimator: Any
    sample: Any
    """What it was fitted on."""
    fresh: Any
    """Of the same kind, and not seen."""


def names() -> list[str]:
    return [name for name, kind in all_estimators() if any(hasattr(kind, method) for method in METHODS)]


def _search(kind: Any, **options: Any) -> Any:
    return kind(LOGISTIC, {"C": [0.1, 1.0]}, cv=2, **options)


MADE: dict[str, Callable[[type], Any]] = {
    "BaggingClassifier": lambda c: c(n_estimators=5, max_features=0.7, random_state=0),
    "BaggingRegressor": lambda c: c(n_estimators=5, max_features=0.7, random_state=0),
    "BernoulliRBM": lambda c: c(n_components=4, n_iter=2, random_state=0),
    "CalibratedClassifierCV": lambda c: c(TREE, cv=2),
    "ClassifierChain": lambda c: c(LOGISTIC, random_state=0, order="random"),
    "ColumnTransformer": lambda c: c(
        [("n", preprocessing.StandardScaler(), ["a", "b"]), ("s", preprocessing.OneHotEncoder(), ["s"])],
        remainder="passthrough",
    ),
    "DictionaryLearning": lambda c: c(n_components=3, max_iter=20, random_state=0),
    "FastICA": lambda c: c(n_components=3, random_state=0),
    "FeatureUnion": lambda c: c([("pca", decomposition.PCA(2)), ("scale", preprocessing.MinMaxScaler())]),
    "FixedThresholdClassifier": lambda c: c(LOGISTIC, threshold=0.3),
    "FunctionTransformer": lambda c: c(np.log1p),
    "GaussianRandomProjection": lambda c: c(n_components=3, random_state=0),
    "GenericUnivariateSelect": lambda c: c(mode="k_best", param=3),
    "GridSearchCV": _search,
    "HalvingGridSearchCV": _search,
    "HalvingRandomSearchCV": _search,
    "HashingVectorizer": lambda c: c(n_features=32),
    "HistGradientBoostingClassifier": lambda c: c(max_iter=10),
    "HistGradientBoostingRegressor": lambda c: c(max_iter=10),
    "IncrementalPCA": lambda c: c(n_components=3),
    "KNeighborsClassifier": lambda c: c(weights="distance"),
    "LatentDirichletAllocation": lambda c: c(n_components=3, random_state=0),
    "LassoLarsCV": lambda c: c(cv=2),
    "LocalOutlierFactor": lambda c: c(novelty=True),
    "LogisticRegressionCV": lambda c: c(Cs=2, cv=2),
    "MeanShift": lambda c: c(bandwidth=3.0),
    "MiniBatchDictionaryLearning": lambda c: c(n_components=3, max_iter=20, random_state=0),
    "MiniBatchNMF": lambda c: c(n_components=3, random_state=0, max_iter=50),
    "MLPClassifier": lambda c: c(hidden_layer_sizes=(8, 6), max_iter=50, random_state=0),
    "MLPRegressor": lambda c: c(hidden_layer_sizes=(8, 6), max_iter=50, random_state=0),
    "MultiOutputClassifier": lambda c: c(LOGISTIC),
    "MultiOutputRegressor": lambda c: c(RIDGE),
    "NMF": lambda c: c(n_components=3, random_state=0),
    "Nystroem": lambda c: c(n_components=20, random_state=0),
    "OneVsOneClassifier": lambda c: c(LOGISTIC),
    "OneVsRestClassifier": lambda c: c(LOGISTIC),
    "OutputCodeClassifier": lambda c: c(LOGISTIC, random_state=0),
    "PCA": lambda c: c(n_components=3, whiten=True),
    "PatchExtractor": lambda c: c(patch_size=(3, 2)),
    "Pipeline": lambda c: c([ONE, ("model", LOGISTIC)]),
    "PolynomialCountSketch": lambda c: c(n_components=8, degree=2, coef0=1, random_state=0),
    "RBFSampler": lambda c: c(n_components=20, random_state=0),
    "RFE": lambda c: c(LOGISTIC, n_features_to_select=3),
    "RFECV": lambda c: c(LOGISTIC, cv=2, min_features_to_select=3),
    "RadiusNeighborsClassifier": lambda c: c(radius=6.0),
    "RadiusNeighborsRegressor": lambda c: c(radius=6.0, weights="distance"),
    "RadiusNeighborsTransformer": lambda c: c(radius=3.0),
    "RandomizedSearchCV": lambda c: _search(c, n_iter=2, random_state=0),
    "RandomTreesEmbedding": lambda c: c(n_estimators=5, max_depth=3, random_state=0),
    "RegressorChain": lambda c: c(RIDGE, order=[1, 0]),
    "SelectFromModel": lambda c: c(linear_model.Lasso(0.01)),
    "SelfTrainingClassifier": lambda c: c(LOGISTIC),
    "SequentialFeatureSelector": lambda c: c(RIDGE, n_features_to_select=2, cv=2),
    "SparseCoder": lambda c: c(np.eye(5)[:4] + 0.1),
    "SparseRandomProjection": lambda c: c(n_components=3, random_state=0),
    "StackingClassifier": lambda c: c([("l", LOGISTIC), ("t", TREE)], cv=2, passthrough=True),
    "StackingRegressor": lambda c: c([("r", RIDGE), ("k", neighbors.KNeighborsRegressor())], cv=2),
    "TargetEncoder": lambda c: c(random_state=0),
    "TransformedTargetRegressor": lambda c: c(RIDGE, transformer=preprocessing.StandardScaler()),
    "TruncatedSVD": lambda c: c(n_components=3, random_state=0),
    "TunedThresholdClassifierCV": lambda c: c(LOGISTIC, cv=2),
    "VotingClassifier": lambda c: c([("l", LOGISTIC), ("t", TREE)], voting="soft", weights=[2, 1]),
    "VotingRegressor": lambda c: c([("r", RIDGE), ("k", neighbors.KNeighborsRegressor())], weights=[1, 3]),
}
"""Estimators that need something, or are slow without it."""


def made(name: str) -> Any:
    kind = dict(all_estimators())[name]
    if name in MADE:
        return MADE[name](kind)
    known = kind().get_params()
    return kind(**{key: value for key, value in {"random_state": 0, "n_estimators": 10}.items() if key in known})


def matrix(rng: np.random.Generator, rows: int) -> tuple[Array, Array]:
    """Points around the corners of a triangle, and which corner."""
    labels = np.arange(rows) % 3
    centers = np.array([[0.0, 1.0, 2.0, 0.5, -1.0], [2.5, -1.0, 0.0, 1.5, 1.0], [-1.5, -2.0, 1.0, 3.0, 0.0]])
    return centers[labels] + rng.normal(size=(rows, 5)), labels


def _text(rng: np.random.Generator, rows: int) -> list[str]:
    return [" ".join(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(rows)]


def _frame(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    return pd.DataFrame(
        {"a": rng.normal(size=rows), "b": rng.normal(3, 2, rows), "s": rng.choice(["x", "y", "z"], rows)}
        | {"c": rng.integers(0, 9, rows)}
    )


def given(name: str, rng: np.random.Generator, rows: int) -> tuple[Any, Any]:
    """What an estimator is given, and its target."""
    x, labels = matrix(rng, rows)
    target = x @ np.array([1.0, -2.0, 0.5, 0.0, 3.0]) + np.sin(x[:, 0])
    if name in POSITIVE:
        return np.round(np.abs(x) * 2), labels
    if name in TEXT:
        return _text(rng, rows), None
    if name in CATEGORICAL:
        words = rng.choice(["x", "y", "zed"], rows), rng.choice(["one", "two"], rows)
        return np.stack(words, 1).astype(object), target
    if name == "ColumnTransformer":
        return _frame(rng, rows), None
    if name == "CategoricalNB":
        return rng.integers(0, 4, (rows, 5)), labels
    if name == "FunctionTransformer":
        return np.abs(x), None
    if name == "BernoulliRBM":
        return 1 / (1 + np.exp(-x)), None
    if name == "IsotonicRegression":
        return x[:, :1], target
    if name == "KernelCenterer":
        return x[:, :1] @ np.linspace(-1, 1, 120)[None], None
    if name in ("LabelBinarizer", "LabelEncoder"):
        return np.array(["red", "green", "blue"])[labels], None
    if name == "MultiLabelBinarizer":
        return [{"a", "b"} if label else {"c"} for label in labels], None
    if name in ("DictVectorizer", "FeatureHasher"):
        return [{"width": float(a), "height": float(b)} for a, b in x[:, :2]], None
    if name == "PatchExtractor":
        return rng.normal(size=(rows // 10, 6, 5)), None
    if name in MISSING:
        x[rng.random(x.shape) < 0.15] = np.nan
        x[:2] = [[np.nan] * 5, [0.0] * 5]
        return (x[2:] if rows < 100 else x), labels
    if name in MULTI_LABEL:
        return x, np.stack([labels == 0, x[:, 1] > 0, x[:, 4] > x[:, 0]], 1).astype(int)
    if name in MULTI_TARGET:
        return x, np.stack([target, x[:, 1] - x[:, 2] ** 2], 1)
    if name in BINARY:
        return x, (labels > 0).astype(int)
    if name in ("GammaRegressor", "PoissonRegressor", "TweedieRegressor"):
        return x / 4, np.exp(target / 8)
    if name in DEPENDENT:
        return x, np.where(rng.random(rows) < 0.3, -1, labels)
    kind = dict(all_estimators())[name]
    return x, target if issubclass(kind, RegressorMixin) else labels


def case(name: str, seed: int = 0, *, float32: bool = False) -> Case:
    """One estimator, fitted in float64 or in float32."""
    rng = np.random.default_rng(seed)
    sample, target = given(name, rng, 120)
    fresh, _ = given(name, rng, 60)
    if float32:
        sample, fresh = single(sample), single(fresh)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = made(name)
        estimator.fit(sample) if target is None else estimator.fit(sample, target)
    return Case(name, estimator, sample, fresh)


def single(data: Any) -> Any:
    """The same data in float32, where it is in float64."""
    if isinstance(data, pd.DataFrame):
        return data.astype({name: np.float32 for name in data if data[name].dtype == np.float64})
    return data.astype(np.float32) if isinstance(data, np.ndarray) and data.dtype == np.float64 else data


def problem(name: str) -> str | None:
    """What is wrong with the ONNX model of an estimator: of all its methods, in both precisions, on data not seen."""
    given = case(name)
    for float32 in (False, True):
        if float32 and name in OWN_PRECISION:
            given = case(name, float32=True)
        sample, fresh = (single(data) if float32 else data for data in (given.sample, given.fresh))
        methods = available(given.estimator)
        try:
            model = from_sklearn(given.estimator, sample, methods=methods)
        except OnwardError as error:
            return str(error)
        rows = shortened(fresh)
        if wrong := differing(model, given.estimator, rows, methods, expected_of(given.estimator, rows, methods)):
            return f"differs in float{32 if float32 else 64}: {wrong[0]}"
    return None
