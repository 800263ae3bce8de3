"""Makes applications for credit that look real, from a seed: train.parquet, train.csv, test.parquet and test.csv.

python examples/credit/make_data.py            2,000 and 500 rows, beside this file
python examples/credit/make_data.py DIR 10000  that many rows to train on, in another folder
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

REGIONS = ["north", "south", "east", "west", "capital"]
PURPOSES = ["car", "home", "renovation", "debt consolidation", "education", "small business", "other"]
EMPLOYERS = ["Acme Inc", "City of Springfield", "Globex", "Initech LLC", "Lincoln School", "State Government", "self"]
START = np.datetime64("2021-01-01T00:00:00", "us")


def applications(rows: int, seed: int = 0) -> pd.DataFrame:
    """A frame with a row for each application; `default` says whether it was not paid back."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(42, 13, rows), 18, 90).round()
    score = np.clip(rng.normal(670, 80, rows), 300, 850).astype("int64")
    income = (28_000 * np.exp(rng.normal(0.25, 0.5, rows))).round(2)
    loan = (income * rng.uniform(0.05, 0.7, rows)).round(-2)
    limit = (income * rng.uniform(0.1, 0.5, rows)).round(-2)
    late = rng.poisson(np.where(score < 620, 1.2, 0.3))
    rate = np.clip(22 - (score - 500) / 25 + rng.normal(0, 1.5, rows), 2.5, 29).round(2)
    applied = START + rng.integers(0, 4 * 365 * 86_400, rows) * np.timedelta64(1_000_000, "us")
    history = rng.integers(100, 9_000, rows) * np.timedelta64(86_400_000_000, "us")
    risk = -4.2 + 3.5 * loan / income + 0.5 * late + (rate - 10) / 8 - (age - 40) / 60
    return pd.DataFrame(
        {
            "age": _gaps(rng, age, 0.04),
            "income": _gaps(rng, income, 0.06),
            "loan": loan,
            "term": rng.choice([12, 24, 36, 48, 60], rows),
            "rate": rate,
            "score": score,
            "late": late.astype("int64"),
            "limit": limit,
            "balance": (limit * rng.beta(2, 3, rows)).round(2),
            "employed_years": _gaps(rng, rng.gamma(2, 3, rows).round(1), 0.08),
            "applied": applied,
            "first_credit": applied - history,
            "grade": _gaps(rng, np.array(list("EDCBA"), object)[np.clip((score - 500) // 70, 0, 4)], 0.03),
            "purpose": _gaps(rng, rng.choice(np.array(PURPOSES, object), rows), 0.02),
            "region": rng.choice(np.array(REGIONS, object), rows),
            "employer": _gaps(rng, rng.choice(np.array(EMPLOYERS, object), rows), 0.05),
            "default": (rng.random(rows) < 1 / (1 + np.exp(-risk))).astype("int64"),
        }
    )


def _gaps(rng: np.random.Generator, values: np.ndarray, share: float) -> np.ndarray:
    """The same values, some of them missing."""
    gap = None if values.dtype == object else np.nan
    return np.where(rng.random(len(values)) < share, gap, values)


def main(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("train", rows, 0), ("test", rows // 4, 1)):
        frame = applications(count, seed)
        frame.to_parquet(folder / f"{name}.parquet")
        frame.to_csv(folder / f"{name}.csv", index=False)
        print(f"wrote {folder / name}.parquet and .csv: {count} rows, {frame['default'].mean():.1%} not paid back")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent, int(sys.argv[2]) if sys.argv[2:] else 2000)
