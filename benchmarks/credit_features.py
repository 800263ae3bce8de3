"""25 features of a credit model, in pandas and in Polars, and the 18 of them that take no strings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

GRADES = {"A": 0.01, "B": 0.02, "C": 0.05, "D": 0.1, "E": 0.2}
UNEMPLOYMENT = {"north": 4.1, "south": 6.8, "east": 5.2, "west": 4.7}
AGES = [0, 25, 40, 65, 120]
NAMES = ["young", "mid", "late", "old"]
PUBLIC = "Government|City|School"
STRINGS = ("grade", "purpose", "region", "employer")
NUMBERS = ("age", "income", "loan", "term", "rate", "score", "late", "limit", "balance", "employed_years")
TIMES = ("applied", "first_credit")


def numbers(df: pd.DataFrame) -> pd.DataFrame:
    """The features of numbers and times."""
    out = pd.DataFrame(index=df.index)
    monthly = df["rate"] / 1200
    out["age"] = df["age"].fillna(40)
    out["dti"] = df["loan"] / df["income"].clip(lower=1)
    out["income_missing"] = df["income"].isna()
    out["log_income"] = np.log1p(df["income"].fillna(0).clip(lower=0))
    out["utilization"] = (df["balance"] / df["limit"].clip(lower=1)).clip(0, 2)
    out["free_limit"] = df["limit"] - df["balance"]
    out["payment"] = df["loan"] * monthly / (1 - (1 + monthly) ** -df["term"])
    out["payment_share"] = out["payment"] / (df["income"] / 12)
    out["age_band"] = pd.cut(df["age"], AGES, labels=False)
    out["score_band"] = np.select([df["score"] < 580, df["score"] < 670, df["score"] < 740], [0, 1, 2], 3)
    out["is_late"] = df["late"] > 0
    out["late_capped"] = df["late"].clip(upper=3)
    out["tenure"] = df["employed_years"].fillna(0)
    out["stable"] = (out["tenure"] >= 2) & (out["age"] >= 25)
    out["month"] = df["applied"].dt.month
    out["weekend"] = df["applied"].dt.dayofweek >= 5
    out["history_years"] = (df["applied"] - df["first_credit"]).dt.days / 365.25
    out["high_risk"] = (out["dti"] > 0.4) & (out["is_late"] | (df["score"] < 600))
    return out


def features(df: pd.DataFrame) -> pd.DataFrame:
    """All features."""
    out = numbers(df)
    out["grade_risk"] = df["grade"].map(GRADES).fillna(0.25)
    out["is_home"] = df["purpose"].isin(["home", "renovation"])
    out["purpose"] = df["purpose"].fillna("none")
    out["unemployment"] = df["region"].map(UNEMPLOYMENT).fillna(5.5)
    out["public"] = df["employer"].str.contains(PUBLIC, na=False)
    out["segment"] = np.where(df["score"] >= 740, "prime", np.where(df["score"] >= 620, "near", "sub"))
    out["age_group"] = pd.cut(df["age"], AGES, labels=NAMES)
    return out


def _bands(labels: list[str] | None) -> pl.Expr:
    """The band that an age is in: its number or its label."""
    age, chain = pl.col("age"), pl.when(False).then(None)
    for i, top in enumerate(AGES[1:]):
        chain = chain.when((age > AGES[i]) & (age <= top)).then(pl.lit(labels[i] if labels else float(i)))
    return chain.otherwise(None)


def polars_numbers(df: pl.DataFrame) -> pl.DataFrame:
    """As `numbers`."""
    col = pl.col
    monthly = col("rate") / 1200
    payment = col("loan") * monthly / (1 - (1 + monthly) ** -col("term"))
    dti = col("loan") / col("income").clip(lower_bound=1)
    age, tenure = col("age").fill_null(40), col("employed_years").fill_null(0)
    score = pl.when(col("score") < 580).then(0).when(col("score") < 670).then(1).when(col("score") < 740).then(2)
    return df.select(
        age=age,
        dti=dti,
        income_missing=col("income").is_null(),
        log_income=col("income").fill_null(0).clip(lower_bound=0).log1p(),
        utilization=(col("balance") / col("limit").clip(lower_bound=1)).clip(0, 2),
        free_limit=col("limit") - col("balance"),
        payment=payment,
        payment_share=payment / (col("income") / 12),
        age_band=_bands(None),
        score_band=score.otherwise(3).cast(pl.Int64),
        is_late=col("late") > 0,
        late_capped=col("late").clip(upper_bound=3),
        tenure=tenure,
        stable=(tenure >= 2) & (age >= 25),
        month=col("applied").dt.month(),
        weekend=(col("applied").dt.weekday() >= 6).fill_null(False),
        history_years=(col("applied") - col("first_credit")).dt.total_days() / 365.25,
        high_risk=((dti > 0.4) & ((col("late") > 0) | (col("score") < 600))).fill_null(False),
    )


def polars_features(df: pl.DataFrame) -> pl.DataFrame:
    """As `features`."""
    col = pl.col
    segment = pl.when(col("score") >= 740).then(pl.lit("prime")).when(col("score") >= 620).then(pl.lit("near"))
    return pl.concat(
        [
            polars_numbers(df),
            df.select(
                grade_risk=col("grade").replace_strict(GRADES, default=0.25),
                is_home=col("purpose").is_in(["home", "renovation"]).fill_null(False),
                purpose=col("purpose").fill_null("none"),
                unemployment=col("region").replace_strict(UNEMPLOYMENT, default=5.5),
                public=col("employer").str.contains(PUBLIC).fill_null(False),
                segment=segment.otherwise(pl.lit("sub")),
                age_group=_bands(NAMES),
            ),
        ],
        how="horizontal",
    )
