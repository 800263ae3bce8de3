"""What is computed of tables as ONNX models: estimators, boosted trees, functions on data frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.advice.extras import missing_packages
from onward.errors import VerificationError
from onward.frontends.opset import OPSET
from onward.model import Model
from onward.runners.calls import Inputs, Run
from onward.verification.check import prove_source


def from_sklearn(
    estimator: Any,
    sample: Any = None,
    *,
    methods: Sequence[str] | None = None,
    opset: int = OPSET,
    check: bool = True,
    trust: bool = False,
) -> Model:
    """A fitted estimator or pipeline, or the file of one, as an ONNX model.

    `sample` is an array or a data frame of some rows such as the estimator is to be given: the model takes an array as
    one input X, and of a data frame every column as an input, in the dtypes that they have in it. Missing strings are
    given to the model as empty ones. It may be left out where all features are numbers. A FunctionTransformer with a
    function on data frames is followed as by `onward.from_dataframe`, and the inputs are then columns as that has them:
    those that are read, each with a mask for what is missing.

    The outputs are called as the `methods` whose results they are: `predict`, and `predict_proba` or
    `decision_function`, or else `transform`, unless others are asked for. They are computed in float64, as by
    scikit-learn, and given in float32 where the sample is in float32. Unless `check` is false, the model is run on the
    sample, beside the estimator, and not handed over if it differs. `trust` lets the file of an estimator hold whatever
    it likes; without it, types that could do more than compute are refused.

    >>> import numpy as np, onward
    >>> from sklearn.linear_model import LogisticRegression
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], np.float32)
    >>> onward.from_sklearn(LogisticRegression().fit(rows, [0, 1, 1, 0]), rows).save("classifier.onnx")
    """
    from onward.frontends.sklearn.convert import converted
    from onward.verification.estimators import differing

    with missing_packages():
        made = converted(estimator, sample, methods, opset, trust)
    if check and (wrong := differing(*made)):
        raise VerificationError(f"{type(made.estimator).__name__}: the model differs on the sample: {wrong[0]}")
    return made.model


def from_dataframe(
    function: Callable[..., Any],
    sample: Any,
    *,
    freeze: Sequence[str] = (),
    never_null: Sequence[str] = (),
    extensions: bool = False,
    opset: int = OPSET,
    check: bool = True,
) -> Model:
    """A function on a data frame, as you wrote it for pandas, Polars or narwhals, as an ONNX model.

    `sample` is a frame with the columns and dtypes that the function is made for, or a mapping of names to dtypes of
    pandas. Each column that the function reads is an input of shape (rows, 1), and each column of its result an output.

    The function runs once, on stand-ins for the frame and its columns, so what depends on data, such as a branch on a
    mean, is refused. An aggregate, such as `df.age.median()`, is computed from whatever rows the model is given, as the
    library would; `onward.fitted(df.age.median())`, or `freeze=["age.median"]`, keeps that of the sample.

    `never_null` names columns that have no nulls, now and later: they get no mask `<column>.null`, and the model is
    smaller and faster. Floats of pandas and times have no mask anyway. `onward.run` refuses a frame with a null there.

    `extensions` lets the model have ops of onnxruntime-extensions, for patterns that ONNX Runtime cannot follow by
    itself. Whoever runs the file then needs that package too.

    Unless `check` is false, the function and the model run on the sample, on one row and on none, and
    `VerificationError` names the column and row in which they differ; with `freeze`, they are compared on the sample.

    >>> import onward, pandas
    >>> def features(df):
    ...     return df.assign(debt=df.loan / df.income.clip(lower=1))
    >>> sample = pandas.DataFrame({"loan": [10.0, 20.0], "income": [5, 0]})
    >>> onward.from_dataframe(features, sample).save("features.onnx")
    """
    from onward.dataframes import run
    from onward.frontends.dataframe.capture import captured, full_sample
    from onward.frontends.dataframe.tensors.text.text_extensions import extensions as allowed
    from onward.verification.frames import differing

    with missing_packages(), allowed(extensions):
        sample = full_sample(sample)
        model = captured(function, sample, opset, freeze, never_null)
    if check and (wrong := differing(function, lambda part: run(model, part), sample, freeze)):
        raise VerificationError(f"{getattr(function, '__name__', 'the function')}: {wrong}")
    return model


def from_xgboost(
    model: Any, *, raw: bool = False, dtype: npt.DTypeLike = np.float32, opset: int = OPSET, check: bool = True
) -> Model:
    """An XGBoost model as an ONNX model: a `Booster`, an estimator such as `XGBClassifier`, or the file of one.

    The input is `x`, rows of features as XGBoost takes them in a numpy array: NaN is missing, categories are their
    codes. The output is `prediction`, that of `predict`; of a classifier there are `label` and `probabilities`. With
    `raw`, `prediction` are the margins. XGBoost computes in float32, to which rows of `dtype` float64 are rounded.
    Unless `check` is false, the model is run beside XGBoost, and `VerificationError` is raised if they differ.

    >>> import numpy as np, onward, xgboost
    >>> rows = np.arange(20, dtype=np.float32).reshape(10, 2)
    >>> trees = xgboost.XGBRegressor(n_estimators=3).fit(rows, rows[:, 0])
    >>> onward.from_xgboost(trees).save("xgboost.onnx")
    """
    from onward.frontends.boosting.xgboost import converted

    with missing_packages():
        made, original = converted(model, raw, dtype, opset)
    if check:
        prove_source(made, *_trees(made, original, raw, "XGBoost"))
    return made


def from_lightgbm(
    model: Any, *, raw: bool = False, dtype: npt.DTypeLike = np.float64, opset: int = OPSET, check: bool = True
) -> Model:
    """A LightGBM model as an ONNX model: a `Booster`, an estimator such as `LGBMClassifier`, or the file of one.

    The input is `x`, rows of features as LightGBM takes them in a numpy array: categories are their codes. The output
    is `prediction`, that of `predict`; of a classifier there are `label` and `probabilities`. With `raw`, `prediction`
    are the scores. LightGBM computes in float64; with `dtype` float32 the model computes in float32, and every row
    still takes the same way through the trees.
    Unless `check` is false, the model is run beside LightGBM, and `VerificationError` is raised if they differ.

    >>> import lightgbm, numpy as np, onward
    >>> rows = np.arange(200, dtype=np.float64).reshape(100, 2)
    >>> trees = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(rows, rows[:, 0])
    >>> onward.from_lightgbm(trees).save("lightgbm.onnx")
    """
    from onward.frontends.boosting.lightgbm import converted

    with missing_packages():
        made, original = converted(model, raw, dtype, opset)
    if check:
        prove_source(made, *_trees(made, original, raw, "LightGBM"))
    return made


def _trees(model: Model, original: Any, raw: bool, name: str) -> tuple[Callable[[], Run], str, Inputs]:
    """What `prove_source` takes for a model of trees: what opens the original, its name, and rows."""
    from onward.formats.boosting import opened_trees
    from onward.verification.data.tree_rows import tree_rows

    return lambda: opened_trees(original, raw).run, name, tree_rows(model, 0)
