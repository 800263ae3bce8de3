"""Estimators that lead scikit-learn's compiled code outside of its arrays: refused before anything is computed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onward.errors import InvalidModelError
from onward.formats.sklearn import loaded
from onward.formats.sklearn_parts import CHECKS, _parts, check_parts

pytest.importorskip("sklearn")
skops = pytest.importorskip("skops.io")

ROWS = np.random.default_rng(0).random((90, 3))
ROWS[:, 2] = np.floor(ROWS[:, 2] * 5)
SUMS = ROWS[:, :2].sum(axis=1)


def sound() -> dict[str, Any]:
    from sklearn.ensemble import (
        AdaBoostClassifier,
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        IsolationForest,
        RandomForestClassifier,
    )
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

    classes, both = (SUMS * 2).astype(int), (SUMS > 1).astype(int)
    return {
        "forest": RandomForestClassifier(3, max_leaf_nodes=9).fit(ROWS, classes),
        "boosted": make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=3)).fit(ROWS, classes),
        "histograms": HistGradientBoostingClassifier(max_iter=3, categorical_features=[2]).fit(ROWS, both),
        "isolation": IsolationForest(n_estimators=3).fit(ROWS),
        "adaptive": AdaBoostClassifier(n_estimators=3).fit(ROWS, both),
        "kd": KNeighborsClassifier(algorithm="kd_tree").fit(ROWS, classes),
        "ball": KNeighborsRegressor(algorithm="ball_tree").fit(ROWS, SUMS),
        "classes": SVC().fit(ROWS, classes),
        "two classes": NuSVC(nu=0.1).fit(ROWS, both),
        "regression": SVR().fit(ROWS, SUMS),
        "novelty": OneClassSVM().fit(ROWS),
    }


def test_what_is_sound_passes() -> None:
    for name, estimator in sound().items():
        check_parts(estimator)
        classes = [f"{k.__module__}.{k.__qualname__}" for part in _parts(estimator) for k in type(part).__mro__]
        assert set(classes) & CHECKS.keys(), name


def saved(path: Path, estimator: Any, change: Callable[[Any], bool]) -> Path:
    """The file of an estimator in which the first array that `change` takes is changed."""
    skops.dump(estimator, path)
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    done = False
    for name in members:
        if name.endswith(".npy") and not done:
            array = np.load(io.BytesIO(members[name]), allow_pickle=False)
            if change(array):
                buffer = io.BytesIO()
                np.save(buffer, array)
                members[name], done = buffer.getvalue(), True
    assert done
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def child_far_away(array: Any) -> bool:
    if "left_child" in (array.dtype.names or ()):
        array["left_child"][0] = 1 << 40
        return True
    return False


def child_that_is_its_parent(array: Any) -> bool:
    if "right_child" in (array.dtype.names or ()):
        array["right_child"][0] = 0
        return True
    return False


def feature_far_away(array: Any) -> bool:
    if "left_child" in (array.dtype.names or ()):
        array["feature"][0] = 1 << 40
        return True
    return False


@pytest.mark.parametrize("change", [child_far_away, child_that_is_its_parent, feature_far_away])
def test_a_damaged_tree_in_a_file(change: Callable[[Any], bool], tmp_path: Path) -> None:
    path = saved(tmp_path / "model.skops", sound()["forest"], change)
    with pytest.raises(InvalidModelError, match=r"model\.skops: it is damaged: a Tree in it leads outside of itself"):
        loaded(path)


def test_damaged_parts() -> None:
    found = sound()
    predictor = found["histograms"]._predictors[0][0]
    predictor.nodes["left"][0] = 1 << 30
    found["classes"]._n_support = np.array([1 << 20, 1], np.int32)
    found["regression"]._dual_coef_ = found["regression"]._dual_coef_[:, :1]
    for name in ("histograms", "classes", "regression"):
        with pytest.raises(InvalidModelError, match="leads outside of itself"):
            check_parts(found[name])
