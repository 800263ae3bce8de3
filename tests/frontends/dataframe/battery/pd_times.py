"""Times: parts, differences, floors, offsets, parsing."""

import numpy as np
import pandas as pd
from frame_cases import case

NOW = pd.Timestamp("2025-01-01")


@case("loans")
def parts_of_date(df):
    when = df["applied"].dt
    return pd.DataFrame({"y": when.year, "m": when.month, "d": when.day, "q": when.quarter})


@case("logs")
def parts_of_time(df):
    when = df["at"].dt
    return pd.DataFrame({"h": when.hour, "m": when.minute, "s": when.second, "us": when.microsecond})


@case("loans")
def day_of_week(df):
    df["dow"] = df["applied"].dt.dayofweek
    df["weekend"] = df["applied"].dt.dayofweek >= 5
    df["weekday"] = df["applied"].dt.weekday
    return df[["dow", "weekend", "weekday"]]


@case("logs")
def day_of_year(df):
    return pd.DataFrame(
        {"doy": df["at"].dt.dayofyear, "len": df["at"].dt.days_in_month, "leap": df["at"].dt.is_leap_year}
    )


@case("customers")
def ends_and_starts(df):
    when = df["birth"].dt
    return pd.DataFrame(
        {
            "me": when.is_month_end,
            "ms": when.is_month_start,
            "qe": when.is_quarter_end,
            "qs": when.is_quarter_start,
            "ye": when.is_year_end,
            "ys": when.is_year_start,
        }
    )


@case("customers")
def iso_week(df):
    return df["signup"].dt.isocalendar().week.astype("int64").rename("week")


@case("customers")
def iso_calendar(df):
    return df["signup"].dt.isocalendar()[["year", "day"]]


@case("customers")
def iso_week_missing(df):
    return df["birth"].dt.isocalendar().week.rename("week")


@case("customers")
def names_of_days(df):
    return pd.DataFrame({"day": df["birth"].dt.day_name(), "month": df["birth"].dt.month_name()})


@case("customers")
def days_since_signup(df):
    df["tenure"] = (df["last_seen"] - df["signup"]).dt.days
    return df[["tenure"]]


@case("customers")
def age_in_years(df):
    df["age"] = (NOW - df["birth"]).dt.days / 365.25
    df["age_int"] = ((NOW - df["birth"]).dt.days // 365).fillna(-1).astype(int)
    return df[["age", "age_int"]]


@case("customers")
def exact_age(df):
    birthday_passed = (df.birth.dt.month < 7) | ((df.birth.dt.month == 7) & (df.birth.dt.day <= 15))
    return (2024 - df.birth.dt.year - np.where(birthday_passed, 0, 1)).rename("age")


@case("customers")
def months_between(df):
    df["months"] = (df.last_seen.dt.year - df.signup.dt.year) * 12 + (df.last_seen.dt.month - df.signup.dt.month)
    return df[["months"]]


@case("orders")
def hours_to_ship(df):
    df["hours"] = (df["shipped"] - df["ordered"]).dt.total_seconds() / 3600
    df["late"] = df["hours"] > 72
    return df[["hours", "late"]]


@case("orders")
def difference_by_numpy(df):
    return ((df["shipped"] - df["ordered"]) / np.timedelta64(1, "D")).rename("days")


@case("orders")
def difference_by_timedelta(df):
    gap = df["shipped"] - df["ordered"]
    return pd.DataFrame(
        {"gap": gap, "days": gap // pd.Timedelta(days=1), "slow": gap > pd.Timedelta("3D"), "sec": gap.dt.seconds}
    )


@case("orders")
def floor_to_day(df):
    return pd.DataFrame({"f": df.ordered.dt.floor("D"), "n": df.ordered.dt.normalize(), "h": df.ordered.dt.floor("h")})


@case("orders")
def ceil_and_round(df):
    return pd.DataFrame(
        {"c": df.ordered.dt.ceil("h"), "r": df.ordered.dt.round("D"), "m": df.ordered.dt.floor("15min")}
    )


@case("orders")
def add_days(df):
    return pd.DataFrame({"due": df.ordered + pd.Timedelta(days=30), "before": df.ordered - pd.Timedelta(hours=1)})


@case("orders")
def add_days_of_column(df):
    return (df["ordered"] + pd.to_timedelta(df["qty"].clip(0, 1000), unit="D")).rename("due")


@case("orders")
def month_offsets(df):
    return pd.DataFrame({"next": df.ordered + pd.DateOffset(months=1), "year": df.ordered + pd.DateOffset(years=1)})


@case("orders")
def month_start_by_period(df):
    return df["ordered"].dt.to_period("M").dt.to_timestamp().rename("month")


@case("orders")
def month_start_by_days(df):
    start = df["ordered"].dt.normalize() - pd.to_timedelta(df["ordered"].dt.day - 1, unit="D")
    return start.rename("month")


@case("orders")
def month_end_offset(df):
    return (df["ordered"].dt.normalize() + pd.offsets.MonthEnd(0)).rename("end")


@case("orders")
def parse_iso_dates(df):
    df["day"] = pd.to_datetime(df["day"])
    df["month"] = df["day"].dt.month
    return df[["day", "month"]]


@case("orders")
def parse_with_format(df):
    return pd.to_datetime(df["day"], format="%Y-%m-%d").rename("day")


@case("orders")
def parse_coerced(df):
    day = df["day"].where(df["qty"] > 3, "soon")
    return pd.to_datetime(day, format="%Y-%m-%d", errors="coerce").rename("day")


@case("orders")
def parse_then_difference(df):
    return (pd.to_datetime(df["day"], format="%Y-%m-%d") - pd.Timestamp("2000-01-01")).dt.days.rename("days")


@case("orders")
def parse_parts_of_text(df):
    return pd.DataFrame({"y": df.day.str[:4].astype(float), "m": df.day.str[5:7].astype(float)})


@case("houses")
def date_from_columns(df):
    parts = pd.DataFrame({"year": df.YearBuilt.clip(1700, 2200), "month": df.FullBath.clip(1, 12), "day": 1})
    return pd.to_datetime(parts).rename("built")


@case("logs")
def epoch_seconds(df):
    return pd.DataFrame(
        {"s": df["at"].astype("int64") // 10**6, "d": (df["at"] - pd.Timestamp("1970-01-01")) // pd.Timedelta("1s")}
    )


@case("logs")
def from_epoch(df):
    return pd.to_datetime(df["status"], unit="s").rename("when")


@case("logs")
def part_of_day(df):
    hour = df["at"].dt.hour
    df["part"] = np.select([hour < 6, hour < 12, hour < 18], ["night", "morning", "day"], "evening")
    df["office"] = hour.between(9, 17) & (df["at"].dt.dayofweek < 5)
    return df[["part", "office"]]


@case("logs")
def date_as_text(df):
    return df["at"].dt.strftime("%Y-%m-%d").rename("day")


@case("logs")
def time_as_text(df):
    return pd.DataFrame({"m": df["at"].dt.strftime("%Y%m"), "t": df["at"].dt.strftime("%H:%M:%S")})


@case("logs", near=1e-15)  # the angle itself is rounded, so a sine that is 0 is so only nearly
def cyclic_month(df):
    month = df["at"].dt.month
    return pd.DataFrame({"sin": np.sin(2 * np.pi * month / 12), "cos": np.cos(2 * np.pi * month / 12)})


@case("logs")
def compare_times(df):
    return pd.DataFrame(
        {
            "after": df["at"] >= "2024-02-29",
            "between": df["at"].between("2024-02-28", "2024-03-01"),
            "on": df["at"].dt.normalize() == pd.Timestamp("2024-02-29"),
        }
    )


@case("customers")
def known_holidays(df):
    days = pd.to_datetime(["2024-01-01", "2024-05-01", "2023-12-25"])
    return df["signup"].dt.normalize().isin(days).rename("holiday")


@case("customers")
def latest_of_two(df):
    return df[["signup", "last_seen"]].max(axis=1).rename("latest")


@case("customers")
def time_filled_from_column(df):
    df["last_seen"] = df["last_seen"].fillna(df["signup"])
    df["gap"] = (df.last_seen - df.signup).dt.days
    return df[["last_seen", "gap"]]


@case("customers")
def days_to_batch_end(df):
    return (df["last_seen"].max() - df["last_seen"]).dt.days.rename("recency")


@case("customers")
def decade(df):
    return (df["birth"].dt.year // 10 * 10).rename("decade")


@case("customers")
def season(df):
    return (df["birth"].dt.month % 12 // 3).map({0: "winter", 1: "spring", 2: "summer", 3: "autumn"}).rename("season")


@case("sensors")
def durations(df):
    up = df["uptime"]
    return pd.DataFrame(
        {"d": up.dt.days, "s": up.dt.total_seconds(), "r": up.dt.seconds, "h": up / pd.Timedelta(hours=1)}
    )


@case("sensors")
def durations_compared(df):
    return pd.DataFrame(
        {
            "long": df.uptime > pd.Timedelta(hours=5),
            "sum": df.uptime + pd.Timedelta(minutes=1),
            "neg": -df.uptime,
            "abs": df.uptime.abs(),
        }
    )


@case("sensors")
def time_minus_duration(df):
    return (df["at"] - df["uptime"]).rename("booted")


@case("sensors")
def seconds_since_previous(df):
    df["gap"] = df["at"].diff().dt.total_seconds()
    return df[["gap"]]


@case("sensors")
def minutes_of_day(df):
    return (df["at"].dt.hour * 60 + df["at"].dt.minute).rename("minute")


@case("sensors")
def date_only(df):
    day = df["at"].dt.floor("D")
    return pd.DataFrame({"day": day, "first": day == day.min()})


@case("sensors")
def coarser_unit(df):
    return df["at"].astype("datetime64[s]").rename("at")
