"""Small models of XGBoost and LightGBM, one for each thing that their predictions depend on, and rows for them.

The tests and the table of docs/measured/boosting.md are made of these.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightgbm as lgb
import numpy as np
import numpy.typing as npt
import xgboost as xgb

Array = npt.NDArray[Any]
ROWS, FEATURES, ROUNDS = 400, 5, 8
CATEGORY = 4
"""The feature that models with categories take as one."""
CODES = 70
"""More than the bits of a word."""


@dataclass(frozen=True)
class Variant:
    library: str
    name: str
    train: Callable[[], Any]
    is_categorical: bool = False


def _features(seed: int, rows: int = ROWS) -> Array:
    """Rows with values that repeat, zeros, missing ones, and a column of codes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, FEATURES)).astype(np.float32)
    x[:, 1] = np.round(x[:, 1] * 2) / 2
    x[:, CATEGORY] = rng.integers(0, CODES, rows)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[rng.random(x.shape) < 0.1] = 0
    return x


X = _features(0)
KNOWN = np.nan_to_num(X)
Y = (KNOWN[:, 0] + np.abs(KNOWN[:, 1]) + np.sin(KNOWN[:, CATEGORY]) - 0.5 * (np.isnan(X[:, 2]))).astype(np.float64)
COUNTS = np.random.default_rng(1).poisson(np.exp(0.3 * Y)) + 1.0
CLASSES = np.digitize(Y, [0.3, 1.2])
SEVERAL = np.stack([Y, 2 - Y, Y * Y], 1)
GROUPS = [20] * (ROWS // 20)


def rows(seed: int = 7) -> Array:
    """Rows that no model was trained on."""
    return _features(seed, 300)


def odd_codes(x: Array) -> Array:
    """The same, with codes that were never seen, negative ones, and numbers that are no codes."""
    x = x.copy()
    odd = [-1, -7, -0.5, 0.5, 3.75, CODES, CODES + 0.5, 1e6, 3e9, np.nan]
    x[: 3 * len(odd), CATEGORY] = odd * 3
    return x


def _xgb(
    y: Array = Y, x: Array = X, rounds: int = ROUNDS, data: dict[str, Any] | None = None, **parameters: Any
) -> Any:
    parameters = {"max_depth": 4, "seed": 0, "nthread": 1, "verbosity": 0, **parameters}
    return xgb.train(parameters, xgb.DMatrix(x, y, **(data or {})), rounds)


def _categories(**parameters: Any) -> Any:
    kinds = ["c" if feature == CATEGORY else "q" for feature in range(FEATURES)]
    return _xgb(data={"feature_types": kinds, "enable_categorical": True}, **parameters)


def _aft(**parameters: Any) -> Any:
    data = xgb.DMatrix(X)
    data.set_float_info("label_lower_bound", COUNTS)
    data.set_float_info("label_upper_bound", COUNTS + 2)
    return xgb.train({"objective": "survival:aft", "max_depth": 3, "seed": 0, "nthread": 1}, data, ROUNDS)


def _stopped() -> Any:
    """Training that went on for three rounds after the best one."""
    model = xgb.XGBRegressor(n_estimators=60, learning_rate=0.9, early_stopping_rounds=3, max_depth=4, n_jobs=1)
    return model.fit(X[:200], Y[:200], eval_set=[(X[200:], Y[200:])], verbose=False)


def _xgb_estimator(kind: Any, y: Array, **parameters: Any) -> Any:
    return kind(n_estimators=ROUNDS, max_depth=4, n_jobs=1, random_state=0, **parameters).fit(X, y)


def _ranker() -> Any:
    return xgb.XGBRanker(n_estimators=ROUNDS, max_depth=3, n_jobs=1).fit(X, CLASSES, group=GROUPS)


def _lgb(
    y: Array = Y, x: Array = X, rounds: int = ROUNDS, data: dict[str, Any] | None = None, **parameters: Any
) -> Any:
    parameters = {"num_leaves": 12, "min_data_in_leaf": 5, "verbose": -1, "seed": 0, "num_threads": 1, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lgb.train(parameters, lgb.Dataset(x.astype(np.float64), y, **(data or {})), rounds)


def _lgb_stopped() -> Any:
    known = lgb.Dataset(X[:200].astype(np.float64), Y[:200])
    parameters = {"learning_rate": 0.9, "num_leaves": 30, "min_data_in_leaf": 2, "verbose": -1, "num_threads": 1}
    stop = lgb.early_stopping(3, verbose=False)
    held = lgb.Dataset(X[200:].astype(np.float64), Y[200:], reference=known)
    return lgb.train(parameters, known, 60, valid_sets=[held], callbacks=[stop])


def _lgb_estimator(kind: Any, y: Array, **parameters: Any) -> Any:
    model = kind(n_estimators=ROUNDS, num_leaves=12, min_child_samples=5, n_jobs=1, verbose=-1, **parameters)
    return model.fit(X.astype(np.float64), y)


def _own_loss(predicted: Array, data: Any) -> tuple[Array, Array]:
    return predicted - data.get_label(), np.ones_like(predicted)


def _own_xgb() -> Any:
    return xgb.train({"max_depth": 4, "nthread": 1}, xgb.DMatrix(X, Y), ROUNDS, obj=_own_loss)


BAGGED = {"bagging_fraction": 0.6, "bagging_freq": 1, "feature_fraction": 0.8}
FORK = {"subsample": 0.7, "colsample_bynode": 0.8, "num_parallel_tree": 6, "learning_rate": 1}
NAMES = np.array(["low", "middle", "high"])[CLASSES]

_XGBOOST: dict[str, Callable[[], Any]] = {
    "regression": _xgb,
    "binary:logistic": partial(_xgb, Y > 1, objective="binary:logistic"),
    "binary:logitraw": partial(_xgb, Y > 1, objective="binary:logitraw"),
    "binary:hinge": partial(_xgb, Y > 1, objective="binary:hinge"),
    "multi:softprob": partial(_xgb, CLASSES, objective="multi:softprob", num_class=3),
    "multi:softmax": partial(_xgb, CLASSES, objective="multi:softmax", num_class=3),
    "gblinear": partial(_xgb, booster="gblinear", max_depth=None, updater="coord_descent"),
    "gblinear, several classes": partial(
        _xgb, CLASSES, booster="gblinear", max_depth=None, objective="multi:softprob", num_class=3
    ),
    "dart": partial(_xgb, booster="dart", rate_drop=0.5, rounds=20),
    "dart, several classes": partial(
        _xgb, CLASSES, booster="dart", rate_drop=0.5, rounds=10, objective="multi:softprob", num_class=3
    ),
    "rank:pairwise": partial(_xgb, CLASSES, objective="rank:pairwise", data={"group": GROUPS}),
    "rank:ndcg": partial(_xgb, CLASSES, objective="rank:ndcg", data={"group": GROUPS}),
    "rank:map": partial(_xgb, Y > 1, objective="rank:map", data={"group": GROUPS}),
    "several targets, a tree each": partial(_xgb, SEVERAL),
    "several targets, leaves of vectors": partial(_xgb, SEVERAL, multi_strategy="multi_output_tree"),
    "several classes, leaves of vectors": partial(
        _xgb, CLASSES, multi_strategy="multi_output_tree", objective="multi:softprob", num_class=3
    ),
    "quantiles": partial(_xgb, objective="reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9]),
    "count:poisson": partial(_xgb, COUNTS, objective="count:poisson"),
    "reg:gamma": partial(_xgb, COUNTS, objective="reg:gamma"),
    "reg:tweedie": partial(_xgb, COUNTS, objective="reg:tweedie"),
    "reg:absoluteerror": partial(_xgb, objective="reg:absoluteerror"),
    "reg:pseudohubererror": partial(_xgb, objective="reg:pseudohubererror"),
    "reg:squaredlogerror": partial(_xgb, COUNTS, objective="reg:squaredlogerror"),
    "reg:logistic": partial(_xgb, COUNTS / COUNTS.max(), objective="reg:logistic"),
    "an objective of one's own": _own_xgb,
    "survival:aft": _aft,
    "survival:cox": partial(_xgb, COUNTS, objective="survival:cox"),
    "random forest": partial(_xgb, rounds=1, **FORK),
    "boosted random forests": partial(_xgb, CLASSES, objective="multi:softprob", num_class=3, **FORK),
    "pruned": partial(_xgb, tree_method="exact", gamma=1, max_depth=8),
    "without a split": partial(_xgb, gamma=1e9),
    "estimator, stopped early": _stopped,
    "estimator, missing=0": partial(_xgb_estimator, xgb.XGBRegressor, Y, missing=0.0),
    "classifier of two": partial(_xgb_estimator, xgb.XGBClassifier, (Y > 1).astype(int)),
    "classifier of three": partial(_xgb_estimator, xgb.XGBClassifier, CLASSES),
    "classifier, multi:softmax": partial(_xgb_estimator, xgb.XGBClassifier, CLASSES, objective="multi:softmax"),
    "classifier of several labels": partial(_xgb_estimator, xgb.XGBClassifier, (SEVERAL > 1).astype(int)),
    "ranker": _ranker,
    "random forest classifier": partial(_xgb_estimator, xgb.XGBRFClassifier, CLASSES),
}
_XGBOOST_CATEGORIES = {
    "categories, one against the rest": partial(_categories, max_cat_to_onehot=1000),
    "categories, sets": partial(_categories, max_cat_to_onehot=1),
    "categories, several targets": partial(_categories, y=SEVERAL, max_cat_to_onehot=1),
}
_LIGHTGBM: dict[str, Callable[[], Any]] = {
    "regression": _lgb,
    "regression of roots": partial(_lgb, COUNTS, reg_sqrt=True),
    "binary": partial(_lgb, Y > 1, objective="binary", sigmoid=1.5),
    "multiclass": partial(_lgb, CLASSES, objective="multiclass", num_class=3),
    "multiclassova": partial(_lgb, CLASSES, objective="multiclassova", num_class=3),
    "dart": partial(_lgb, boosting="dart", drop_rate=0.5, rounds=20),
    "rf": partial(_lgb, boosting="rf", **BAGGED),
    "rf, binary": partial(_lgb, Y > 1, boosting="rf", objective="binary", **BAGGED),
    "rf, multiclass": partial(_lgb, CLASSES, boosting="rf", objective="multiclass", num_class=3, **BAGGED),
    "goss": partial(_lgb, data_sample_strategy="goss", rounds=20),
    "linear_tree": partial(_lgb, linear_tree=True),
    "linear_tree, multiclass": partial(_lgb, CLASSES, linear_tree=True, objective="multiclass", num_class=3),
    "missing values as zeros": partial(_lgb, use_missing=False),
    "zero_as_missing": partial(_lgb, zero_as_missing=True),
    "lambdarank": partial(_lgb, CLASSES, objective="lambdarank", data={"group": GROUPS}),
    "rank_xendcg": partial(_lgb, CLASSES, objective="rank_xendcg", data={"group": GROUPS}),
    "poisson": partial(_lgb, COUNTS, objective="poisson"),
    "gamma": partial(_lgb, COUNTS, objective="gamma"),
    "tweedie": partial(_lgb, COUNTS, objective="tweedie"),
    "quantile": partial(_lgb, objective="quantile", alpha=0.8),
    "huber": partial(_lgb, objective="huber"),
    "fair": partial(_lgb, objective="fair"),
    "l1": partial(_lgb, objective="l1"),
    "mape": partial(_lgb, COUNTS, objective="mape"),
    "cross_entropy": partial(_lgb, COUNTS / COUNTS.max(), objective="cross_entropy"),
    "cross_entropy_lambda": partial(_lgb, COUNTS / COUNTS.max(), objective="cross_entropy_lambda"),
    "an objective of one's own": partial(_lgb, objective=_own_loss),
    "without a split": partial(_lgb, min_data_in_leaf=ROWS),
    "stopped early": _lgb_stopped,
    "classifier of two names": partial(_lgb_estimator, lgb.LGBMClassifier, np.where(Y > 1, "yes", "no")),
    "classifier of three names": partial(_lgb_estimator, lgb.LGBMClassifier, NAMES),
    "classifier of numbers": partial(_lgb_estimator, lgb.LGBMClassifier, 10 * CLASSES - 5),
    "regressor": partial(_lgb_estimator, lgb.LGBMRegressor, Y),
}
_SETS: dict[str, Any] = {"data": {"categorical_feature": [CATEGORY]}, "cat_smooth": 1, "min_data_per_group": 5}
_LIGHTGBM_CATEGORIES = {
    "categories, one against the rest": partial(_lgb, max_cat_to_onehot=1000, **_SETS),
    "categories, sets": partial(_lgb, max_cat_to_onehot=1, **_SETS),
    "categories, zero_as_missing": partial(_lgb, max_cat_to_onehot=1, zero_as_missing=True, **_SETS),
    "categories, linear_tree": partial(_lgb, max_cat_to_onehot=1, linear_tree=True, **_SETS),
}
VARIANTS = [
    *(Variant("xgboost", name, train) for name, train in _XGBOOST.items()),
    *(Variant("xgboost", name, train, True) for name, train in _XGBOOST_CATEGORIES.items()),
    *(Variant("lightgbm", name, train) for name, train in _LIGHTGBM.items()),
    *(Variant("lightgbm", name, train, True) for name, train in _LIGHTGBM_CATEGORIES.items()),
]


def predicted(model: Any, x: Array) -> list[Array]:
    """What the library itself says: the prediction, or labels and probabilities."""
    if isinstance(model, xgb.Booster):
        kinds = model.feature_types
        return [model.predict(xgb.DMatrix(x, feature_types=kinds, enable_categorical=kinds is not None))]
    if hasattr(model, "predict_proba"):
        return [model.predict(x), model.predict_proba(x)]
    return [np.asarray(model.predict(x))]


def margins(model: Any, x: Array) -> Array:
    """The scores before the objective makes predictions of them."""
    if isinstance(model, xgb.Booster):
        kinds = model.feature_types
        rows = xgb.DMatrix(x, feature_types=kinds, enable_categorical=kinds is not None)
        return np.asarray(model.predict(rows, output_margin=True))
    if isinstance(model, xgb.XGBModel):
        return np.asarray(model.predict(x, output_margin=True))
    return np.asarray(model.predict(x, raw_score=True))
