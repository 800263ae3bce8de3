"""Dates, times and durations of pandas, as models that compute what pandas computes."""

import datetime
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

import onward  # noqa: E402
from onward.errors import OnwardError, UnsupportedError  # noqa: E402

LEAPS = ["2024-02-29", "2024-12-31 23:59:59.999999", "2000-03-01", "1900-02-28", "1969-12-31 12:00", "2021-01-03"]


def frame(count: int, seed: int = 0, gaps: bool = False) -> Any:
    rng = np.random.default_rng(seed)

    def times(unit: str) -> Any:
        ends = [pd.Timestamp(day).as_unit(unit).asm8.view("i8") for day in ("1890-01-01", "2150-01-01")]
        return rng.integers(*ends, count).astype(f"M8[{unit}]")

    made = pd.DataFrame(
        {
            "t": times("us"),
            "u": times("us"),
            "ns": times("ns"),
            "s": times("s"),
            "d": rng.integers(-(10**16), 10**16, count).astype("m8[us]"),
            "n": rng.integers(-50, 50, count),
            "whole": rng.integers(0, 500, count).astype(float),
            "f": rng.normal(0, 10, count),
        }
    )
    for row, text in enumerate(LEAPS[:count]):
        made.loc[row, ["t", "ns"]] = pd.Timestamp(text)
    if gaps:
        for name in ("t", "u", "ns", "s", "d", "f", "whole"):
            made.loc[rng.integers(0, count, 3), name] = None
        made.loc[0, "d"] = pd.Timedelta(0)
    return made


SAMPLE = frame(20)
FRAMES = {"sample": SAMPLE, "gaps": frame(20, 1, gaps=True), "one": frame(1, 2), "none": frame(0, 3)}
FRAMES["missing"] = FRAMES["gaps"].iloc[:1].assign(t=pd.Series([pd.NaT], dtype="M8[us]"))


def plain(result: Any) -> dict[Any, list[Any]]:
    columns = result if isinstance(result, pd.DataFrame) else pd.DataFrame({0: result})
    made = {}
    for name in columns:
        made[name] = [None if pd.isna(item) else item for item in columns[name].tolist()]
    return made


def assert_same(function: Callable[[Any], Any], frames: dict[str, Any] | None = None, sample: Any = SAMPLE) -> None:
    model = onward.from_dataframe(function, sample)
    for name, each in (frames or FRAMES).items():
        wanted, found = plain(function(each)), plain(onward.run(model, each))
        assert list(wanted) == list(found)
        for column, values in wanted.items():
            assert len(found[column]) == len(values)
            wrong = [pair for pair in zip(values, found[column], strict=True) if not is_close(*pair)]
            assert not wrong, (name, column, wrong[:3])


def is_close(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(wanted, found, rel_tol=1e-12)
    return bool(wanted == found)


NUMBERS = ["year", "month", "day", "hour", "minute", "second", "microsecond", "nanosecond", "dayofweek", "day_of_week",
           "weekday", "dayofyear", "day_of_year", "quarter", "days_in_month", "daysinmonth"]  # fmt: skip
FLAGS = ["is_month_end", "is_month_start", "is_quarter_end", "is_quarter_start", "is_year_end", "is_year_start",
         "is_leap_year"]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("unit", ["t", "ns", "s"])
def test_parts_of_times(unit: str) -> None:
    assert_same(lambda df: pd.DataFrame({name: getattr(df[unit].dt, name) for name in NUMBERS + FLAGS}))
    assert_same(lambda df: df[unit].dt.isocalendar())
    assert_same(lambda df: pd.DataFrame({"day": df[unit].dt.day_name(), "month": df[unit].dt.month_name()}))


def test_parts_of_durations() -> None:
    assert_same(
        lambda df: pd.DataFrame(
            {
                "days": df.d.dt.days,
                "seconds": df.d.dt.seconds,
                "microseconds": df.d.dt.microseconds,
                "total": df.d.dt.total_seconds(),
                "years": df.d.dt.days // 365,
            }
        )
    )
    assert_same(lambda df: df.d.dt.components)


@pytest.mark.parametrize("unit", ["t", "ns", "s"])
def test_rounding_and_text(unit: str) -> None:
    assert_same(
        lambda df: pd.DataFrame(
            {
                "day": df[unit].dt.normalize(),
                "floor": df[unit].dt.floor("15min"),
                "ceil": df[unit].dt.ceil("h"),
                "round": df[unit].dt.round("D"),
                "coarse": df[unit].dt.as_unit("s"),
                "iso": df[unit].dt.strftime("%Y-%m-%d"),
                "long": df[unit].dt.strftime("%A %d %b %y, %I:%M %p"),
            }
        )
    )


@pytest.mark.parametrize("unit", ["t", "ns", "s"])
def test_periods_give_their_text_their_start_and_their_parts(unit: str) -> None:
    assert_same(
        lambda df: pd.DataFrame(
            {
                "month": df[unit].dt.to_period("M").astype(str),
                "quarter": df[unit].dt.to_period("Q").astype(str),
                "year": df[unit].dt.to_period("Y").astype(str),
                "start": df[unit].dt.to_period("M").dt.to_timestamp(),
                "first": df[unit].dt.to_period("Q").dt.start_time,
                "number": df[unit].dt.to_period("Q").dt.quarter,
                "same": df[unit].dt.to_period("M") == df.u.dt.to_period("M"),
            }
        )
    )


@pytest.mark.parametrize("unit", ["t", "s"])
def test_differences_and_sums(unit: str) -> None:
    assert_same(
        lambda df: pd.DataFrame(
            {
                "apart": df[unit] - df.u,
                "since": df[unit] - pd.Timestamp("2020-01-01"),
                "until": pd.Timestamp("2025-01-01") - df[unit],
                "python": datetime.datetime(2025, 1, 1) - df[unit],
                "numpy": df[unit] - np.datetime64("2020-01-01"),
                "first": df[unit] - df[unit].min(),
                "later": df[unit] + pd.Timedelta(days=30),
                "sooner": df[unit] - datetime.timedelta(hours=3),
                "moved": df[unit] + df.d,
                "by_days": df[unit] + pd.to_timedelta(df.n, unit="D"),
                "by_hours": df[unit] + df.n * pd.Timedelta(hours=1),
                "by_numpy": df[unit] + np.timedelta64(1, "D") * df.n,
                "gap": df[unit].diff(),
                "from_mean": df[unit] - df[unit].median(),
            }
        )
    )


def test_durations_beside_numbers_and_durations() -> None:
    assert_same(
        lambda df: pd.DataFrame(
            {
                "double": df.d * 2,
                "negative": df.d * -3,
                "part": df.d * 2.5,
                "by_column": df.d * df.n,
                "by_floats": df.d * df.f,
                "half": df.d / 2,
                "whole_half": df.d // 2,
                "over_column": df.d / df.n,
                "over_floats": df.d / df.f,
                "days": df.d / np.timedelta64(1, "D"),
                "whole_days": df.d // pd.Timedelta(days=1),
                "rest": df.d % pd.Timedelta(hours=1),
                "one": df.d / df.d,
                "whole_one": df.d // df.d,
                "total": df.d - df.d.sum(),
                "mean_days": df.whole * 0 + df.d.mean() / np.timedelta64(1, "D"),
            }
        )
    )


OFFSETS: dict[str, Any] = {
    "month": pd.DateOffset(months=1),
    "years": pd.DateOffset(years=1, hours=5),
    "weeks": pd.DateOffset(weeks=2),
    "months_back": pd.DateOffset(months=-13, days=3),
    "month_end": pd.offsets.MonthEnd(0),
    "next_month_end": pd.offsets.MonthEnd(1),
    "month_begin": pd.offsets.MonthBegin(1),
    "quarter_end": pd.offsets.QuarterEnd(1),
    "quarter_begin": pd.offsets.QuarterBegin(1, startingMonth=1),
    "year_end": pd.offsets.YearEnd(0),
    "year_begin": pd.offsets.YearBegin(1),
    "business": pd.offsets.BusinessDay(3),
    "days": pd.offsets.Day(3),
    "hours": pd.offsets.Hour(5),
}


@pytest.mark.parametrize("unit", ["t", "s"])
def test_offsets(unit: str) -> None:
    assert_same(lambda df: pd.DataFrame({name: df[unit] + offset for name, offset in OFFSETS.items()}))
    assert_same(lambda df: pd.DataFrame({name: df[unit] - offset for name, offset in OFFSETS.items()}))


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
def test_numbers_as_times(unit: str) -> None:
    assert_same(
        lambda df: pd.DataFrame(
            {
                "whole": pd.to_timedelta(df.n, unit=unit),
                "floats": pd.to_timedelta(df.whole, unit=unit),
                "parts": pd.to_timedelta(df.f, unit=unit),
                "times": pd.to_datetime(df.n, unit=unit),
                "moments": pd.to_datetime(df.f, unit=unit, errors="coerce"),
            }
        )
    )


def test_dates_of_columns_and_of_numbers() -> None:
    assert_same(lambda df: pd.to_datetime({"year": df.n + 2000, "month": df.whole % 12 + 1, "day": 1}))
    assert_same(
        lambda df: pd.to_datetime(
            pd.DataFrame({"year": df.t.dt.year, "month": df.t.dt.month, "day": df.t.dt.day, "hour": df.t.dt.hour})
        )
    )
    assert_same(
        lambda df: pd.to_datetime({"year": df.n + 2000, "month": df.n % 14, "day": df.n.abs() % 33}, errors="coerce")
    )
    assert_same(lambda df: pd.to_datetime((df.n + 2000) * 10000 + 101, format="%Y%m%d"))


FORMATS = ["%Y-%m-%d", "%d/%m/%Y", "%Y%m%d", "%Y-%m-%d %H:%M:%S", "%d.%m.%Y", "%b %d, %Y", "%m/%d/%y", "ISO8601", None]
ODD = ["", "NaT", "unknown", "2024-02-30", "2024-13-01", "31/31/2024", " ", "2024-1-5", "1", "20240230", "x 5", "n/a"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("errors", ["raise", "coerce"])
def test_text_as_dates(format: str | None, errors: str) -> None:
    written = SAMPLE.t.dt.strftime(format if format not in (None, "ISO8601") else "%Y-%m-%d")
    sample = pd.DataFrame({"x": written})

    def read(df: Any) -> Any:
        return pd.to_datetime(df.x, errors=errors, format=format)

    model = onward.from_dataframe(read, sample)
    for odd in [None, *ODD]:
        given = pd.DataFrame({"x": pd.Series([written[0], odd, written[1]], dtype="str")})
        try:
            wanted = plain(read(given))
        except ValueError:
            with pytest.raises(OnwardError):
                onward.run(model, given)
            continue
        try:
            found = plain(onward.run(model, given))
        except OnwardError as error:
            assert odd is not None
            assert "a text is" in str(error)
        else:
            assert found == wanted
    assert plain(onward.run(model, sample)) == plain(read(sample))
    assert len(onward.run(model, sample.iloc[:0])) == 0


def test_text_that_pandas_reads_in_its_own_way_fails() -> None:
    sample = pd.DataFrame({"x": pd.Series(["2024-01-05 10:00:00"], dtype="str")})
    model = onward.from_dataframe(lambda df: pd.to_datetime(df.x, errors="coerce", format="%Y-%m-%d %H:%M:%S"), sample)
    for text in ("2024-01-05 10:00:60", "now", "-2024-01-05 10:00:00", "2024-01- 5 10:00:00"):
        with pytest.raises(OnwardError, match="pandas may read"):
            onward.run(model, pd.DataFrame({"x": pd.Series([text], dtype="str")}))


def test_a_guessed_format_that_other_rows_change_is_refused() -> None:
    sample = pd.DataFrame({"x": pd.Series(["13/05/2024"], dtype="str")})
    with pytest.raises(UnsupportedError, match="guess"):
        onward.from_dataframe(lambda df: pd.to_datetime(df.x), sample)


def test_the_model_fails_where_pandas_does() -> None:
    late = pd.DataFrame({"t": pd.Series([pd.Timestamp.max], dtype="M8[ns]")})
    early = pd.DataFrame({"t": pd.Series([pd.Timestamp("2024-01-05")], dtype="M8[ns]")})
    for function in (
        lambda df: df.t + pd.Timedelta(days=1),
        lambda df: df.t.dt.ceil("D"),
        lambda df: df.t + pd.DateOffset(months=1),
        lambda df: df.t + pd.offsets.BusinessDay(1),
    ):
        model = onward.from_dataframe(function, early)
        with pytest.raises((OverflowError, ValueError)):
            function(late)
        with pytest.raises(OnwardError, match="out of the range"):
            onward.run(model, late)


@pytest.mark.parametrize("first", [-(2**62), -(2**62) - 1, -(2**63) + 1])
def test_a_difference_out_of_range_fails_whatever_is_computed_of_it(first: int) -> None:
    def function(df: Any) -> Any:
        gap = df.t - df.u
        return pd.DataFrame({"years": gap.dt.days / 365.25, "gap": gap, "same": df.t.dt.dayofweek < 5})

    def rows(numbers: list[tuple[int, int]]) -> Any:
        return pd.DataFrame(np.asarray(numbers, np.int64).reshape(-1, 2), columns=["t", "u"]).astype("M8[us]")

    nat, far = -(2**63), 2**62
    fine = [(5, 10**15), (nat, far), (first, nat), (nat, nat), (-far + 1, far), (far, 1 - far), (0, 0), (far, far)]
    model = onward.from_dataframe(function, rows([(0, 1), (10**15, 5)]))
    for some in (fine, fine[:1], fine[1:2], []):
        assert plain(function(rows(some))) == plain(onward.run(model, rows(some)))
    with pytest.raises(OverflowError):
        function(rows([*fine, (first, far)]))
    with pytest.raises(OnwardError, match="out of the range"):
        onward.run(model, rows([*fine, (first, far)]))


def _kind(t: Any) -> str:
    if pd.isna(t):
        return "missing"
    return "weekend" if t.weekday() >= 5 else t.day_name()


def _year(t: Any) -> Any:
    return t.year if isinstance(t, pd.Timestamp) else -1


@pytest.mark.parametrize("function", [_kind, _year, lambda t: t.month, lambda t: (pd.Timestamp("2025-01-01") - t).days])
def test_functions_of_single_times(function: Callable[[Any], Any]) -> None:
    assert_same(lambda df: df.t.apply(function), {name: FRAMES[name] for name in ("sample", "gaps", "one")})


def test_weeks_of_single_times() -> None:
    assert_same(lambda df: df.t.apply(lambda t: t.isocalendar()[1]), {"sample": SAMPLE})
    model = onward.from_dataframe(lambda df: df.t.apply(lambda t: t.isocalendar()[1]), SAMPLE)
    with pytest.raises(OnwardError, match="fails for a row"):
        onward.run(model, FRAMES["missing"])


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda df: (pd.Timestamp.now() - df.t).dt.days, "moment of the conversion"),
        (lambda df: (pd.to_datetime("today") - df.t).dt.days, "moment of the conversion"),
        (lambda df: (datetime.datetime.now() - df.t).dt.days, "moment of the conversion"),
        (lambda df: datetime.date.today().year - df.t.dt.year, "moment of the conversion"),
        (lambda df: df.t.apply(lambda t: 0 if t is pd.NaT else t.year), "pd.isna"),
        (lambda df: df.t.dt.date, "normalize"),
        (lambda df: df.t.dt.tz_localize("UTC"), "time zones"),
        (lambda df: df.t.dt.to_period("W").astype(str), "periods of W-SUN"),
        (lambda df: df.t.dt.to_period("M") - df.u.dt.to_period("M"), "no arithmetic"),
        (lambda df: df.t + pd.offsets.BMonthEnd(1), "BusinessMonthEnd"),
        (lambda df: df.resample("D", on="t").n.sum(), "resample"),
        (lambda df: pd.to_timedelta(df.t.dt.strftime("%H:%M:%S")), "text as a duration"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(function: Callable[[Any], Any], word: str) -> None:
    with pytest.raises(UnsupportedError, match=word):
        onward.from_dataframe(function, SAMPLE)
