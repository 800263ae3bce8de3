"""Text becomes dates and times as pandas and Polars read it, and no text fails."""

from functools import cache
from typing import Any

import pandas as pd
import polars as pl
import pytest
from column_functions import Compiled
from hypothesis import given
from hypothesis import strategies as st
from test_tensors_time import columns

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.time import time_parse

FORMATS = {
    "%Y-%m-%d": ["2024-01-05", "2024-1-5", "2024-02-29", "2023-02-29", "1900-02-29", "0001-01-01", "9999-12-31"],
    "%d/%m/%Y": ["05/01/2024", "5/1/2024", "31/02/2024", "32/01/2024", "31/12/1969"],
    "%m/%d/%Y": ["01/05/2024", "12/31/1999", "13/01/2024"],
    "%d.%m.%Y": ["05.01.2024", "05x01x2024"],
    "%Y%m%d": ["20240105", "20241305", "20240230", "19000228"],
    "%Y-%m-%d %H:%M:%S": ["2024-01-05 12:34:56", "2024-1-5 1:2:3", "2024-01-05 24:00:00", "2024-01-05 12:60:00"],
    "%Y-%m-%dT%H:%M:%S": ["2024-01-05T12:34:56", "1969-12-31T23:59:59", "2024-01-05 12:34:56"],
    "%Y/%m/%d %H:%M": ["2024/01/05 12:34", "2024/01/05 12:34:56"],
    "%Y%m%d%H%M%S": ["20240105123456", "20240105126056"],
    "%Y%m%d %H%M": ["20240105 1234", "20240105 2400"],
    "%Y-%m": ["2024-01", "2024-13"],
    "%d/%m/%y": ["05/01/68", "5/1/00", "29/02/00", "31/04/12"],
    "%d %b %Y": ["05 Jan 2024", "5 jan 2024", "05 JAN 2024", "31 feB 2024", "05 Foo 2024"],
    "%B %d, %Y": ["January 05, 2024", "may 5, 2024", "MAY 5, 2024", "Janvier 5, 2024"],
    "%d.%m.%Y, %H:%M": ["05.01.2024, 12:34", "05.01.2024 12:34"],
    "%Y-%j": ["2024-060", "2024-366", "2023-365", "2024-000"],
    "on %Y-%m-%d.": ["on 2024-01-05.", "on 2024-01-05", "2024-01-05."],
    "%Y-%m-%d %I:%M %p": ["2024-01-05 01:30 PM", "2024-01-05 12:00 am", "2024-01-05 12:00 pm", "2024-01-05 13:00 pm"],
}
FRACTIONS = {
    "pandas": "%Y-%m-%d %H:%M:%S.%f",
    "polars": "%Y-%m-%d %H:%M:%S%.f",
}
NEVER = ["", " ", "abc", "2024", "x2024-01-05", "2024-01-05x", "----", "//", "T", ":", "é", "1e5", "0x10-01-01"]


ALMOST = st.text(max_size=12) | st.from_regex(
    r"[0-9]{0,5}[-/ :]?[0-9]{0,3}(Jan)?[-/ ]?[0-9]{0,5}( [0-9:]*)?", fullmatch=True
)
"""Any text, and text that is a date in some format."""


@cache
def parsed(format: str, unit: str, library: str) -> Compiled:
    def function(text: Any) -> list[Any]:
        found = time_parse.parse(text, format, unit, library)
        return [*found.ticks(unit), found.unclear]

    return Compiled(function, object)


def values(compiled: Compiled, rows: list[str]) -> list[int | None]:
    ticks, valid, unclear = compiled(rows)
    assert not any(a and b for a, b in zip(valid, unclear, strict=True))
    return [tick if ok else None for tick, ok in zip(ticks, valid, strict=True)]


def by_pandas(rows: list[str], format: str, unit: str) -> list[int | None]:
    times = pd.to_datetime(pd.Series(rows, dtype="str"), format=format, errors="coerce").astype(f"M8[{unit}]")
    return [None if pd.isna(time) else int(tick) for time, tick in zip(times, times.astype("int64"), strict=True)]


def by_polars(rows: list[str], format: str, unit: Any) -> list[int | None]:
    series = pl.Series(rows, dtype=pl.String)
    return series.str.to_datetime(format, time_unit=unit, strict=False).cast(pl.Int64).to_list()


@pytest.mark.parametrize("format", FORMATS)
def test_plain_text_is_read_as_pandas_reads_it(format: str) -> None:
    rows = FORMATS[format] + ([] if format == "%Y" else NEVER)
    for unit in ("s", "us"):
        assert values(parsed(format, unit, "pandas"), rows) == by_pandas(rows, format, unit)
        assert values(parsed(format, unit, "pandas"), []) == []
        assert values(parsed(format, unit, "pandas"), ["nonsense"]) == [None]


@pytest.mark.parametrize("format", FORMATS)
def test_plain_text_is_read_as_polars_reads_it(format: str) -> None:
    rows = FORMATS[format] + NEVER
    for unit in ("ms", "us"):
        assert values(parsed(format, unit, "polars"), rows) == by_polars(rows, format, unit)


def test_two_digits_are_a_year_of_the_century_that_each_library_takes() -> None:
    rows = [f"01/03/{year:02}" for year in range(100)]
    assert values(parsed("%d/%m/%y", "s", "pandas"), rows) == by_pandas(rows, "%d/%m/%y", "s")
    assert values(parsed("%d/%m/%y", "us", "polars"), rows) == by_polars(rows, "%d/%m/%y", "us")


@pytest.mark.parametrize("library", FRACTIONS)
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@columns
@given(
    rows=st.lists(
        st.tuples(
            st.datetimes(pd.Timestamp("1678-01-01"), pd.Timestamp("2261-01-01")), st.integers(0, 999), st.integers(1, 9)
        ),
        max_size=20,
    )
)
def test_fractions_of_a_second_are_read(library: str, unit: str, rows: list[Any]) -> None:
    texts = [f"{time:%Y-%m-%d %H:%M:%S}." + f"{time.microsecond:06}{ns:03}"[:n] for time, ns, n in rows]
    format = FRACTIONS[library]
    expected = by_pandas(texts, format, unit) if library == "pandas" else by_polars(texts, format, unit)
    assert values(parsed(format, unit, library), texts) == expected


def test_no_fraction_at_all_is_read_where_polars_has_it_optional() -> None:
    rows = ["2024-01-05 12:34:56", "2024-01-05 12:34:56.5", "2024-01-05 12:34"]
    assert values(parsed(FRACTIONS["polars"], "us", "polars"), rows) == by_polars(rows, FRACTIONS["polars"], "us")


@pytest.mark.parametrize("format", ["%Y-%m-%d", "%d/%m/%Y", "%Y%m%d", "%Y-%m-%d %H:%M:%S", "%d %b %Y"])
@columns
@given(rows=st.lists(ALMOST, max_size=10))
def test_what_is_not_read_here_and_by_pandas_is_unclear(format: str, rows: list[str]) -> None:
    rows = [row.replace("\0", "") for row in rows]
    found = values(parsed(format, "us", "pandas"), rows)
    unclear = parsed(format, "us", "pandas")(rows)[2]
    for row, here, there, told in zip(rows, found, by_pandas(rows, format, "us"), unclear, strict=True):
        assert here == there or (here is None and told), row


@pytest.mark.parametrize("format", ["%Y-%m-%d", "%d/%m/%Y", "%Y%m%d", "%Y-%m-%d %H:%M:%S", "%d %b %y", "%Y-%m"])
@columns
@given(rows=st.lists(ALMOST, max_size=10))
def test_what_is_not_read_here_and_by_polars_is_unclear(format: str, rows: list[str]) -> None:
    ticks, valid, unclear = parsed(format, "us", "polars")(rows)
    for row, tick, ok, there, told in zip(rows, ticks, valid, by_polars(rows, format, "us"), unclear, strict=True):
        assert (tick if ok else None) == there or (not ok and told), row


@pytest.mark.parametrize("text", [" 2024-01-05", "+2024-01-05", "٢٠٢٤-01-05", "now", "24-01-05", "-001-01-01"])
def test_what_only_a_library_reads_is_unclear(text: str) -> None:
    assert parsed("%Y-%m-%d", "us", "pandas")([text])[1:] == [[False], [True]]


@pytest.mark.parametrize("text", ["", "hello", "n/a", "-"])
def test_what_no_library_reads_is_clear(text: str) -> None:
    assert parsed("%Y-%m-%d", "us", "pandas")([text])[1:] == [[False], [False]]


@cache
def iso(unit: str) -> Compiled:
    def function(text: Any) -> list[Any]:
        found = time_parse.parse_iso(text, unit)
        return [*found.ticks(unit), found.unclear]

    return Compiled(function, object)


ISO = [
    "2024-01-05", "2024-01-05T12", "2024-01-05T12:34", "2024-01-05 12:34", "2024-01-05T12:34:56",
    "2024-01-05 12:34:56.5",
    "2024-01-05T12:34:56.123456789", "1969-12-31T23:59:59.999999999", "2024-02-30", "2024-02-30T12:00",
    "2024-01-05T24:00",
]  # fmt: skip


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_iso_text_is_read_as_pandas_reads_it(unit: str) -> None:
    assert values(iso(unit), ISO) == by_pandas(ISO, "ISO8601", unit)
    assert values(iso(unit), ISO[:1]) == by_pandas(ISO[:1], "ISO8601", unit)
    assert values(iso(unit), []) == []
    assert values(iso(unit), ["", "nonsense", "T", " ", "é"]) == [None] * 5


@columns
@given(
    rows=st.lists(
        st.text(max_size=12) | st.from_regex(r"[0-9]{3,5}-[0-9]{1,3}-[0-9]{1,2}([T ][0-9:.]*)?", fullmatch=True),
        max_size=10,
    )
)
def test_iso_text_that_is_not_read_here_and_by_pandas_is_unclear(rows: list[str]) -> None:
    rows = [row.replace("\0", "") for row in rows]
    unclear = iso("us")(rows)[2]
    for row, here, there, told in zip(
        rows, values(iso("us"), rows), by_pandas(rows, "ISO8601", "us"), unclear, strict=True
    ):
        assert here == there or (here is None and told), row


@pytest.mark.parametrize(
    "format",
    [
        "%H:%M",
        "%Y-%m-%d %z",
        "%Y %b%d",
        "%Y%%",
        "plain",
        "%Y %Y",
        "%Y-%I",
        "%Y-%j-%d",
        "-%Y-%m",
        "%Y.%S.%f",
        "%bT%Y",
        "%Y1%m",
    ],
)
def test_formats_that_are_not_read_are_refused(format: str) -> None:
    with pytest.raises(UnsupportedError, match="format"):
        parsed(format, "us", "pandas")
