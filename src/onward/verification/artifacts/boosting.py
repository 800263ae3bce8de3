"""XGBoost models (.json, .ubj) and LightGBM models (.txt)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.verification.artifacts import Kind, Opened, register
from onward.verification.artifacts.matching import Declared
from onward.verification.runners import Inputs, Outputs

XGBOOST = re.compile(rb'\s*\{(\s*"(learner|version)"\s*:|[iUIlLmM]\x00*\x07(learner|version))')
"""How the two formats begin: an object with these keys, as text or as universal binary JSON."""
LIGHTGBM = re.compile(rb"tree\r?\n(num_class|version)=")
END_OF_TREES = b"\nend of trees"


def _begins(pattern: re.Pattern[bytes]) -> Callable[[Path], bool]:
    def recognise(path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return pattern.match(file.read(256)) is not None

    return recognise


is_xgboost, is_lightgbm = _begins(XGBOOST), _begins(LIGHTGBM)


def xgboost_file(path: Path) -> Any:
    """The booster of a file."""
    _check(path, is_xgboost, "XGBoost")
    import xgboost

    try:
        return xgboost.Booster(model_file=_bytes(path))
    except xgboost.core.XGBoostError as error:
        raise InvalidModelError(f"{path}: XGBoost does not open this file: {_reason(error)}") from error


def lightgbm_file(path: Path) -> Any:
    """The booster of a file."""
    _check(path, is_lightgbm, "LightGBM")
    import lightgbm

    text = _bytes(path)
    if END_OF_TREES not in text:
        raise InvalidModelError(f"{path}: this LightGBM model is cut off: its trees have no end")
    try:
        return lightgbm.Booster(model_str=text.decode())
    except (lightgbm.basic.LightGBMError, UnicodeDecodeError) as error:
        raise InvalidModelError(f"{path}: LightGBM does not open this file: {error}") from error


def _check(path: Path, recognise: Callable[[Path], bool], library: str) -> None:
    if not path.is_file():
        raise InvalidModelError(f"{path}: there is no such file")
    if not recognise(path):
        raise InvalidModelError(f"{path}: it is no model of {library}")


def _bytes(path: Path) -> bytearray:
    return bytearray(path.read_bytes())


def _reason(error: Exception) -> str:
    """What XGBoost says, without the place in its sources and the stack."""
    first = str(error).partition("Stack trace")[0]
    return re.sub(r"^\[[^\]]*\]\s*\S+:\d+:\s*", "", first).strip()


def open_xgboost(path: Path) -> Opened:
    return _booster(xgboost_file(path))


def open_lightgbm(path: Path) -> Opened:
    return _lightgbm(lightgbm_file(path))


def _booster(booster: Any, declared: Sequence[Declared] = ()) -> Opened:
    import xgboost

    def run(inputs: Inputs) -> Outputs:
        return {"prediction": booster.predict(xgboost.DMatrix(inputs["x"]), validate_features=False)}

    return Opened(run, [Declared("x", ir.DataType.FLOAT, (None, booster.num_features()))], ["prediction"])


def _xgboost_estimator(model: Any, declared: Sequence[Declared] = ()) -> Opened:
    return _estimator(model, Declared("x", ir.DataType.FLOAT, (None, model.get_booster().num_features())))


def _lightgbm(model: Any, declared: Sequence[Declared] = ()) -> Opened:
    """A booster, or an estimator."""
    booster = getattr(model, "booster_", model)
    return _estimator(model, Declared("x", ir.DataType.DOUBLE, (None, booster.num_feature())))


def _estimator(model: Any, x: Declared) -> Opened:
    """What an estimator predicts; a classifier gives labels and probabilities."""
    outputs = ["label", "probabilities"] if hasattr(model, "predict_proba") else ["prediction"]

    def run(inputs: Inputs) -> Outputs:
        found = [np.asarray(model.predict(inputs["x"]))]
        if len(outputs) > 1:
            found.append(np.asarray(model.predict_proba(inputs["x"])))
        return dict(zip(outputs, found, strict=True))

    return Opened(run, [x], outputs)


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
