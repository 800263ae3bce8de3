"""Pipelines of scikit-learn with a function on a data frame inside, fitted on the frames of the battery."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from frame_data import pandas_frame
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

PIPELINES: dict[str, tuple[str, Callable[[], Any], str | None]] = {}
"""By name: the frame, what makes the pipeline, and the column that is the target, if there is one."""


def piped(frame: str, target: str | None = None) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        PIPELINES[make.__name__] = (frame, make, target)
        return make

    return register


def fitted_pipeline(name: str) -> tuple[Any, pd.DataFrame]:
    """A pipeline, fitted, and the sample without the target that it was fitted on."""
    frame, make, target = PIPELINES[name]
    sample = pandas_frame(frame, "sample")
    y = None if target is None else sample.pop(target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(sample, y), sample


def fresh_rows(name: str) -> dict[str, pd.DataFrame]:
    """What a pipeline is judged on: the sample turned round, one row, and edge cases without infinities."""
    frame, _, target = PIPELINES[name]
    edge = pandas_frame(frame, "edge")
    rows = {
        "turned": pandas_frame(frame, "sample").iloc[::-1].reset_index(drop=True),
        "one": pandas_frame(frame, "one"),
        "edge": edge[~np.isinf(edge.select_dtypes("number").astype(float)).any(axis=1)].reset_index(drop=True),
    }
    return {key: found.drop(columns=[target] if target else []) for key, found in rows.items()}


def methods_of(pipeline: Any) -> list[str]:
    """What is compared: predictions and probabilities, or what a transformer gives."""
    found = [method for method in ("predict", "predict_proba") if hasattr(pipeline, method)]
    return found or ["transform"]


def loan_numbers(df):
    out = pd.DataFrame(index=df.index)
    out["dti"] = (df["loan"].fillna(0) / df["income"].clip(lower=1)).fillna(1).clip(0, 100)
    out["age"] = df["age"].fillna(40)
    out["log_loan"] = np.log1p(df["loan"].clip(lower=0).fillna(0))
    out["late"] = df["late"].clip(0, 5)
    return out


def loan_texts(df):
    return pd.DataFrame(
        {
            "purpose": df["purpose"].fillna("none").str.strip().str.lower(),
            "grade": df["grade"].where(df["grade"].isin(list("ABCDE")), "other"),
        }
    )


def loan_both(df):
    return pd.concat([loan_numbers(df), loan_texts(df)], axis=1)


def date_parts(df):
    df = df.copy()
    for column in ["signup", "last_seen"]:
        df[column + "_month"] = df[column].dt.month.fillna(0).astype(int)
        df[column + "_weekend"] = (df[column].dt.dayofweek >= 5).astype(int)
    df["gap"] = (df["last_seen"] - df["signup"]).dt.days.fillna(-1)
    return df.drop(columns=["signup", "last_seen"])


def email_domain(df):
    return df["email"].str.split("@").str[1].fillna("none").to_frame("domain")


def order_values(df):
    return df.assign(
        total=df.qty * df.price.fillna(0) * (1 - df.discount.fillna(0)), weekend=df.ordered.dt.dayofweek >= 5
    )[["total", "weekend", "qty"]].astype(float)


def titanic_table(df):
    df = df.copy()
    df["Title"] = df["Name"].str.extract(r" ([A-Za-z]+)\.", expand=False).fillna("none")
    df["Family"] = df["SibSp"] + df["Parch"] + 1
    df["Sex"] = (df["Sex"] == "female").astype(int)
    df["AgeBand"] = pd.cut(df["Age"].fillna(28), [-np.inf, 16, 32, 48, np.inf], labels=[0, 1, 2, 3]).astype(int)
    df["Fare"] = df["Fare"].fillna(14.45)
    return df[["Pclass", "Sex", "Family", "AgeBand", "Fare", "Title"]]


def house_table(df):
    area = df["GrLivArea"].fillna(0) + df["TotalBsmtSF"].fillna(0)
    quality = df["ExterQual"].map({"Ex": 5, "Gd": 4, "TA": 3, "Fa": 2}).fillna(0)
    return pd.DataFrame({"area": area, "quality": quality, "age": df.YrSold - df.YearBuilt, "lot": df.LotArea})


def logged(df):
    return np.log1p(df.clip(lower=0))


def hours(df):
    return pd.DataFrame({"sin": np.sin(df["at"].dt.hour * np.pi / 12), "cos": np.cos(df["at"].dt.hour * np.pi / 12)})


@piped("loans", "employed")
def numbers_then_logistic():
    return make_pipeline(FunctionTransformer(loan_numbers), StandardScaler(), LogisticRegression())


@piped("loans", "employed")
def numbers_then_forest():
    return Pipeline([("f", FunctionTransformer(loan_numbers)), ("m", RandomForestClassifier(5, random_state=0))])


@piped("loans")
def texts_then_one_hot():
    return make_pipeline(FunctionTransformer(loan_texts), OneHotEncoder(handle_unknown="ignore", sparse_output=False))


@piped("loans", "employed")
def texts_one_hot_logistic():
    return make_pipeline(FunctionTransformer(loan_texts), OneHotEncoder(handle_unknown="ignore"), LogisticRegression())


@piped("loans", "employed")
def columns_after_function():
    columns = make_column_transformer(
        (StandardScaler(), ["dti", "age", "log_loan", "late"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["purpose", "grade"]),
    )
    return make_pipeline(FunctionTransformer(loan_both), columns, LogisticRegression(max_iter=500))


@piped("loans", "rate")
def columns_by_dtype_after_function():
    columns = make_column_transformer(
        (MinMaxScaler(), make_column_selector(dtype_include="number")),
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_include="str"),
        ),
    )
    return make_pipeline(FunctionTransformer(loan_both), columns, Ridge()).set_params(ridge__alpha=0.5)


class FilledTarget(TransformedTargetRegressor):
    """A regressor whose target has gaps that are filled."""

    def fit(self, X, y):
        return super().fit(X, pd.Series(y).fillna(0).to_numpy())


@piped("loans", "income")
def target_in_logs():
    inner = FilledTarget(LinearRegression(), func=np.log1p, inverse_func=np.expm1)
    return make_pipeline(FunctionTransformer(lambda df: df[["age", "late"]].fillna(30)), inner)


@piped("loans", "employed")
def function_inside_column_transformer():
    columns = ColumnTransformer(
        [
            ("logs", make_pipeline(FunctionTransformer(logged), SimpleImputer()), ["income", "loan"]),
            ("rest", SimpleImputer(strategy="median"), ["age", "rate"]),
        ]
    )
    return make_pipeline(columns, StandardScaler(), LogisticRegression())


@piped("loans", "employed")
def names_out_one_to_one():
    logs = FunctionTransformer(logged, feature_names_out="one-to-one")
    columns = ColumnTransformer([("logs", logs, ["income", "loan"])], verbose_feature_names_out=False)
    return make_pipeline(columns.set_output(transform="pandas"), SimpleImputer(), GaussianNB())


@piped("loans")
def set_output_pandas():
    scaled = make_pipeline(FunctionTransformer(loan_numbers), StandardScaler())
    return scaled.set_output(transform="pandas")


@piped("loans", "employed")
def two_functions_in_a_row():
    return make_pipeline(
        FunctionTransformer(loan_numbers),
        FunctionTransformer(lambda df: df.assign(ratio=df.dti / (df.late + 1)).drop(columns="late")),
        StandardScaler(),
        SVC(random_state=0),
    ).set_params(svc__probability=False)


@piped("customers", "churned")
def dates_then_trees():
    return make_pipeline(
        FunctionTransformer(lambda df: date_parts(df[["signup", "last_seen", "visits"]])),
        HistGradientBoostingClassifier(max_iter=5, random_state=0),
    )


@piped("customers", "churned")
def dates_inside_column_transformer():
    columns = ColumnTransformer(
        [
            ("dates", FunctionTransformer(date_parts), ["signup", "last_seen"]),
            ("spend", SimpleImputer(), ["spend"]),
            ("plan", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["country"]),
        ]
    )
    return make_pipeline(columns, StandardScaler(), LogisticRegression(max_iter=500))


@piped("customers", "churned")
def domains_one_hot():
    columns = ColumnTransformer(
        [("mail", make_pipeline(FunctionTransformer(email_domain), OneHotEncoder(handle_unknown="ignore")), ["email"])],
        remainder="drop",
    )
    return make_pipeline(columns, DecisionTreeClassifier(random_state=0))


@piped("orders", "qty")
def values_then_boosting():
    function = FunctionTransformer(lambda df: order_values(df.assign(qty=1)))
    return make_pipeline(function, GradientBoostingRegressor(n_estimators=5, random_state=0))


@piped("titanic", "Survived")
def titanic_forest():
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["Title"]), remainder=StandardScaler(), sparse_threshold=0
    )
    return make_pipeline(FunctionTransformer(titanic_table), columns, RandomForestClassifier(5, random_state=0))


@piped("titanic", "Survived")
def titanic_neighbours():
    numbers = FunctionTransformer(lambda df: titanic_table(df).drop(columns="Title"))
    return make_pipeline(numbers, MinMaxScaler(), KNeighborsClassifier(3))


@piped("houses", "OverallQual")
def house_regression():
    return make_pipeline(FunctionTransformer(house_table), RandomForestRegressor(5, random_state=0))


@piped("houses", "OverallQual")
def union_of_functions():
    union = FeatureUnion(
        [
            ("table", FunctionTransformer(house_table)),
            ("baths", FunctionTransformer(lambda df: df[["FullBath", "HalfBath"]])),
        ]
    )
    return make_pipeline(union, StandardScaler(), Ridge())


@piped("logs", "status")
def hours_and_status():
    columns = ColumnTransformer(
        [
            ("hours", FunctionTransformer(hours), ["at"]),
            ("path", FunctionTransformer(lambda df: df["path"].str.count("/").fillna(0).to_frame()), ["path"]),
            ("method", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["method"]),
        ]
    )
    return make_pipeline(columns, DecisionTreeClassifier(max_depth=4, random_state=0))
