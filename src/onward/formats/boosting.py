"""XGBoost models (.json, .ubj) and LightGBM models (.txt)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onward.errors import InvalidModelError
from onward.formats import (
    Artifact,
    Kind,
    Opened,
    as_artifact,
    lightgbm_text,
    open_object,
    opened_object,
    register,
    xgboost_model,
)
from onward.formats.matching import Declared
from onward.formats.sklearn import rounded
from onward.gate import harmless, opens
from onward.gate.files import absent
from onward.runners.calls import Inputs, Outputs

XGBOOST = re.compile(rb'\s*\{(\s*"(learner|version)"\s*:|[iUIlLmM]\x00*\x07(learner|version))')
"""How the two formats begin: an object with these keys, as text or as universal binary JSON."""
LIGHTGBM = re.compile(rb"tree\r?\n(num_class|version)=")


def _begins(pattern: re.Pattern[bytes]) -> Callable[[Path], bool]:
    def recognise(path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return pattern.match(file.read(256)) is not None

    return recognise


is_xgboost, is_lightgbm = _begins(XGBOOST), _begins(LIGHTGBM)


@opens(harmless)
def xgboost_file(path: Path) -> Any:
    """The booster of a file."""
    _check(path, is_xgboost, "XGBoost")
    import xgboost

    data = path.read_bytes()
    try:
        xgboost_model.parsed(data)
        return xgboost.Booster(model_file=bytearray(data))
    except InvalidModelError as error:
        raise InvalidModelError(f"{path}: {error}") from error
    except xgboost.core.XGBoostError as error:
        raise InvalidModelError(f"{path}: XGBoost does not open this file: {_reason(error)}") from error


@opens(harmless)
def lightgbm_file(path: Path) -> Any:
    """The booster of a file."""
    _check(path, is_lightgbm, "LightGBM")
    import lightgbm

    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        lightgbm_text.parsed(text)
        return lightgbm.Booster(model_str=text.partition(lightgbm_text.END)[0] + lightgbm_text.END + "\n")
    except InvalidModelError as error:
        raise InvalidModelError(f"{path}: {error}") from error
    except lightgbm.basic.LightGBMError as error:
        raise InvalidModelError(f"{path}: LightGBM does not open this file: {error}") from error


def _check(path: Path, recognise: Callable[[Path], bool], library: str) -> None:
    if not path.is_file():
        raise InvalidModelError(absent(path))
    if not recognise(path):
        raise InvalidModelError(f"{path}: this is not a model of {library}")


def _reason(error: Exception) -> str:
    """What XGBoost says, without the place in its sources and the stack."""
    first = str(error).partition("Stack trace")[0]
    return re.sub(r"^\[[^\]]*\]\s*\S+:\d+:\s*", "", first).strip()


@opens(harmless)
def open_xgboost(path: Path) -> Opened:
    return _booster(xgboost_file(path))


@opens(harmless)
def open_lightgbm(path: Path) -> Opened:
    return _lightgbm(lightgbm_file(path))


def _booster(booster: Any, declared: Sequence[Declared] = ()) -> Opened:
    import xgboost

    def predict(x: Any) -> Any:
        return booster.predict(xgboost.DMatrix(x), validate_features=False)

    return _opened(booster.num_features(), prediction=predict)


def _xgboost_estimator(model: Any, declared: Sequence[Declared] = ()) -> Opened:
    return _estimator(model, model.get_booster().num_features())


def _lightgbm(model: Any, declared: Sequence[Declared] = ()) -> Opened:
    """A booster, or an estimator."""
    return _estimator(model, getattr(model, "booster_", model).num_feature())


def _estimator(model: Any, features: int) -> Opened:
    """What an estimator predicts; a classifier gives labels and probabilities."""
    if hasattr(model, "predict_proba"):
        return _opened(features, label=model.predict, probabilities=model.predict_proba)
    return _opened(features, prediction=model.predict)


def _opened(features: int, **outputs: Callable[[Any], Any]) -> Opened:
    """What takes rows of float32 or of float64; the results, but for labels, are as exact as the rows are."""

    def run(inputs: Inputs) -> Outputs:
        found = {name: np.asarray(predict(inputs["x"])) for name, predict in outputs.items()}
        labels = {"label": found.pop("label")} if "label" in found else {}
        return {**labels, **rounded(found, inputs)}

    return Opened(run, [Declared("x", None, (None, features))], list(outputs))


def opened_trees(model: Any, raw: bool = False) -> Artifact:
    """A booster or an estimator; `raw`: its margins, which are called prediction."""
    if not raw:
        return open_object(model)
    plain = opened_object(model)
    (declared,) = plain.inputs
    features = (declared.dims or (None,))[-1]
    assert isinstance(features, int)
    return as_artifact(type(model).__name__, "margins", _opened(features, prediction=_margins(model)))


def _margins(model: Any) -> Callable[[Any], Any]:
    if type(model).__module__.startswith("lightgbm"):
        return lambda x: model.predict(x, raw_score=True)
    import xgboost

    if isinstance(model, xgboost.Booster):
        return lambda x: model.predict(xgboost.DMatrix(x), validate_features=False, output_margin=True)
    return lambda x: model.predict(x, output_margin=True)


register(
    Kind(
        "XGBoost model",
        ("xgboost",),
        is_xgboost,
        open_xgboost,
        "a 'learner' in JSON or UBJSON",
        {"xgboost.core.Booster": _booster, "xgboost.sklearn.XGBModel": _xgboost_estimator},
    )
)
register(
    Kind(
        "LightGBM model",
        ("lightgbm",),
        is_lightgbm,
        open_lightgbm,
        "a text that begins with 'tree'",
        {"lightgbm.basic.Booster": _lightgbm, "lightgbm.sklearn.LGBMModel": _lightgbm},
    )
)
