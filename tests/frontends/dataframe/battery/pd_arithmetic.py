"""Arithmetic of columns, and NumPy on them."""

import numpy as np
import pandas as pd
from frame_cases import case


@case("loans")
def debt_to_income(df):
    df["dti"] = df["loan"] / df["income"]
    return df[["id", "dti"]]


@case("loans")
def monthly_payment(df):
    r = df.rate / 1200
    return df.assign(payment=df.loan * r / (1 - (1 + r) ** -36))[["payment"]]


@case("loans")
def payment_per_term(df):
    out = pd.DataFrame()
    out["per_month"] = df["loan"] / df["term"].clip(lower=1)
    out["total"] = df["loan"] * (1 + df["rate"] / 100)
    return out


@case("loans")
def integer_division(df):
    return pd.DataFrame({"years": df.term // 12, "months": df.term % 12, "back": -df.term // 12})


@case("loans")
def float_floor_and_remainder(df):
    return pd.DataFrame({"hundreds": df.loan // 100, "cents": df.loan % 100, "neg": -df.loan % 7})


@case("loans")
def power_and_root(df):
    df["age2"] = df["age"] ** 2
    df["loan_root"] = df["loan"].abs() ** 0.5
    df["late3"] = df["late"].pow(3)
    return df[["age2", "loan_root", "late3"]]


@case("loans")
def log_features(df):
    df["log_income"] = np.log1p(df["income"].clip(lower=0))
    df["log_loan"] = np.log(df["loan"].clip(lower=1))
    df["log10_loan"] = np.log10(df["loan"].clip(lower=1))
    return df[["log_income", "log_loan", "log10_loan"]]


@case("loans")
def exponentials(df):
    return df.assign(risk=1 / (1 + np.exp(-(df.rate - 12) / 4)), grown=np.expm1(df.rate / 100))[["risk", "grown"]]


@case("loans")
def ints_plus_floats(df):
    return (df.term + df.rate + df.employed).to_frame("mixed")


@case("loans")
def ints_wrap_around(df):
    return pd.DataFrame({"next": df.id + 1, "double": df.id * 2, "neg": -df.id})


@case("loans")
def small_ints(df):
    return pd.DataFrame({"twice": df.score * 2, "half": df.score / 2, "wide": df.score.astype("int64") * 10})


@case("loans")
def single_precision(df):
    return pd.DataFrame({"free": 1 - df.used, "wide": df.used * df.term, "both": df.used + df.rate})


@case("sensors")
def unsigned_bytes(df):
    return pd.DataFrame(
        {"more": df.level + 1, "half": df.level // 2, "part": df.level / 255, "mix": df.level + df.code}
    )


@case("loans")
def method_arithmetic(df):
    return pd.DataFrame(
        {
            "add": df.loan.add(10),
            "sub": df.loan.sub(df.income),
            "mul": df.loan.mul(df.rate),
            "div": df.loan.div(df.term.replace(0, 1)),
            "rsub": df.rate.rsub(100),
            "mod": df.late.mod(2),
        }
    )


@case("loans")
def add_with_fill_value(df):
    return df.age.add(df.income, fill_value=0).rename("total")


@case("loans")
def divide_by_zero(df):
    return pd.DataFrame({"float": df.loan / df.late, "int": df.term / df.late, "inverse": 1 / df.late})


@case("loans")
def infinite_to_missing(df):
    ratio = df["loan"] / df["income"]
    return ratio.replace([np.inf, -np.inf], np.nan).fillna(0).rename("ratio")


@case("loans")
def rounding(df):
    return pd.DataFrame({"rate": df.rate.round(), "loan": df.loan.round(1), "income": df.income.round(-3)})


@case("loans")
def numpy_rounding(df):
    return pd.DataFrame(
        {"up": np.ceil(df.rate), "down": np.floor(df.rate), "cut": np.trunc(df.rate), "even": np.rint(df.rate)}
    )


@case("loans")
def sign_and_abs(df):
    return pd.DataFrame({"sign": np.sign(df.loan - 5000), "gap": (df.loan - 5000).abs(), "late": abs(df.late - 2)})


@case("loans")
def larger_and_smaller(df):
    return pd.DataFrame(
        {"most": np.maximum(df.loan, df.income), "least": np.minimum(df.age, 65), "fmax": np.fmax(df.age, df.rate)}
    )


@case("loans")
def row_max_of_columns(df):
    return df.assign(top=df[["loan", "income"]].max(axis=1), low=df[["loan", "income"]].min(axis=1))[["top", "low"]]


@case("loans")
def row_sum_of_columns(df):
    return df[["loan", "income", "rate"]].sum(axis=1).rename("total")


@case("loans")
def row_mean_of_columns(df):
    return df[["age", "rate"]].mean(axis=1).rename("mean")


@case("titanic")
def family_size(df):
    df["FamilySize"] = df["SibSp"] + df["Parch"] + 1
    df["IsAlone"] = (df["FamilySize"] == 1).astype(int)
    return df[["FamilySize", "IsAlone"]]


@case("titanic")
def fare_per_person(df):
    df["FarePerPerson"] = df["Fare"] / (df["SibSp"] + df["Parch"] + 1)
    df["Age*Class"] = df.Age * df.Pclass
    return df[["FarePerPerson", "Age*Class"]]


@case("houses")
def total_square_feet(df):
    df["TotalSF"] = df["TotalBsmtSF"].fillna(0) + df["GrLivArea"] + df["GarageArea"].fillna(0)
    df["TotalBath"] = df["FullBath"] + 0.5 * df["HalfBath"]
    df["HouseAge"] = df["YrSold"] - df["YearBuilt"]
    return df.drop(columns=["TotalBsmtSF", "GrLivArea", "GarageArea"])[["TotalSF", "TotalBath", "HouseAge"]]


@case("houses")
def log_price(df):
    df["SalePrice"] = np.log1p(df["SalePrice"])
    return df[["Id", "SalePrice"]]


@case("houses")
def interactions_in_a_loop(df):
    for a, b in [("OverallQual", "GrLivArea"), ("OverallQual", "TotalBsmtSF"), ("FullBath", "HalfBath")]:
        df[f"{a}_x_{b}"] = df[a] * df[b]
    return df.filter(like="_x_")


@case("houses")
def polynomial_terms(df):
    for column in ["LotArea", "GrLivArea"]:
        for power in (2, 3):
            df[f"{column}_{power}"] = df[column].astype(float) ** power
    return df[[c for c in df.columns if c.endswith(("_2", "_3"))]]


@case("sensors")
def celsius_to_fahrenheit(df):
    return df[["device"]].assign(f=df["temp"] * 9 / 5 + 32)


@case("sensors")
def magnus_dew_point(df):
    a, b = 17.27, 237.7
    alpha = a * df["temp"] / (b + df["temp"]) + np.log(df["humidity"].clip(lower=0.1) / 100)
    return (b * alpha / (a - alpha)).rename("dew_point")


@case("sensors", near=1e-15)  # the angle itself is rounded, so a sine that is 0 is so only nearly
def cyclic_hour(df):
    hour = df["at"].dt.hour
    return pd.DataFrame({"sin": np.sin(2 * np.pi * hour / 24), "cos": np.cos(2 * np.pi * hour / 24)})


@case("sensors")
def trigonometry(df):
    x = df.humidity / 100
    return pd.DataFrame(
        {"tan": np.tan(x), "atan": np.arctan(df.temp), "asin": np.arcsin(x.clip(-1, 1)), "tanh": np.tanh(x)}
    )


@case("sensors")
def angles_and_lengths(df):
    return pd.DataFrame(
        {
            "angle": np.arctan2(df.temp, df.humidity),
            "length": np.hypot(df.temp, df.humidity),
            "rad": np.deg2rad(df.humidity),
        }
    )


@case("sensors")
def square_and_cube(df):
    return pd.DataFrame({"sq": np.square(df.temp), "root": np.sqrt(df.humidity.clip(0)), "cbrt": np.cbrt(df["count"])})


@case("sensors")
def bits_of_ints(df):
    n = df["count"]
    return pd.DataFrame({"low": n & 1, "any": n | 4, "xor": n ^ 5, "not": ~n})


@case("sensors")
def bools_combined(df):
    hot = df.temp > 20
    return pd.DataFrame({"both": hot & df.ok, "any": hot | df.ok, "one": hot ^ df.ok, "cold": ~hot})


@case("sensors")
def bools_as_numbers(df):
    return pd.DataFrame({"n": df.ok * 1, "s": df.ok.astype(int) + (df.temp > 0), "f": df.ok * df.temp})


@case("sensors")
def comparisons(df):
    return pd.DataFrame(
        {"gt": df.temp > df.humidity, "ne": df.temp != df.humidity, "le": df["count"].le(5), "eq": df.code.eq(df.level)}
    )


@case("loans")
def chained_scalar_first(df):
    return pd.DataFrame(
        {"a": 100 - df.rate, "b": 2 * df.loan, "c": 2.0 ** df.late.clip(0, 10), "d": 1000 // df.term.clip(lower=1)}
    )


@case("orders")
def revenue(df):
    df["gross"] = df.qty * df.price
    df["net"] = df.gross * (1 - df.discount.fillna(0))
    df["vat"] = (df.net * 0.19).round(2)
    return df[["order_id", "gross", "net", "vat"]]


@case("orders")
def frame_arithmetic(df):
    numbers = df[["qty", "price"]]
    return numbers * 2 + 1


@case("orders")
def frame_times_series(df):
    return df[["price", "discount"]].mul(df["qty"], axis=0)


@case("orders")
def frame_logs(df):
    return np.log1p(df[["price", "discount"]].clip(lower=0))


@case("customers")
def nullable_arithmetic(df):
    return pd.DataFrame({"more": df.tickets + 1, "rate": df.tickets / (df.visits.abs() + 1), "twice": df.tickets * 2})


@case("customers")
def nullable_comparison(df):
    return pd.DataFrame({"many": df.tickets > 1, "none": df.tickets == 0, "filled": (df.tickets > 1).fillna(False)})


@case("loans")
def three_valued_logic(df):
    return pd.DataFrame({"both": df.verified & df.employed, "any": df.verified | df.employed, "not": ~df.verified})


@case("loans")
def weighted_score(df):
    weights = {"rate": -0.4, "late": -1.5, "age": 0.02}
    total = 0
    for column, weight in weights.items():
        total = total + weight * df[column].fillna(0)
    df["points"] = 600 + 20 * total
    return df[["points"]]


@case("loans")
def sum_of_python_generator(df):
    return sum(df[c] for c in ["loan", "rate", "late"]).rename("sum")


@case("loans")
def dot_with_weights(df):
    return df[["rate", "late"]].fillna(0).dot([0.5, 2.0]).rename("dot")


@case("loans")
def numpy_clip_and_where_nan(df):
    return pd.DataFrame(
        {"c": np.clip(df.rate, 0, 20), "n": np.isnan(df.rate), "f": np.isfinite(df.income), "z": np.nan_to_num(df.age)}
    )
