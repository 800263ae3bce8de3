"""Texts say the numbers that pandas and Polars read in them, and no others."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_columns import TextModel

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text import text_numbers

NUMBERS = [
    "1", "+1", "-1", " 1", "1 ", "\t1\n", "1_000", "1__0", "_1", "1_", "1.", "1.5", ".5", ".", "", "-", "+", "1e3",
    "1E3", "1e+3", "1e", "e5", "1e400", "-1e400", "1e-400", "inf", "Inf", "-inf", "+inf", "infinity", "INFINITY",
    "infi", "nan", "NaN", "-nan", "nan1", "null", "None", "NA", "abc", "0x1A", "0b1", "1,000",
    "5%", "١٢", "１", "１.５",
    "00012", "-0", "-0.0", "0e500", "True", "false", "1d", "1f", "1.5e3.2", "--1", "+-1", "1 2", "\u00a01", "1\x00",
    "1\u2009", "1\x1c", "1\x0b", "1\x85", "1e5_0", "0.1_1", "1._1", "- 1", "1L", "1 e5", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "99999999999999999999", "127", "128", "-128", "-129", "255", "256", "2147483648", "4294967295", "4294967296",
    "1e308", "1.7976931348623157e308", "1.7976931348623159e+308", "2e308", "1e309", "-1e309",
    "2.2250738585072014e-308", "1e-307", "12e300", "12.5e-300", "1" * 400, "0" * 400 + "1", "0." + "0" * 50 + "1",
    "12e-400", " 1e400 ", "1_0e400", "0.00012e-320", "0.1", "0.30000000000000004", "9007199254740993",
    "3.141592653589793",
]  # fmt: skip
numbers = st.lists(
    st.text("0123456789+-.eE_ naif١", max_size=8)
    | st.floats(allow_subnormal=False).map(repr)
    | st.integers().map(str)
    | st.text(max_size=4),
    max_size=20,
)


def attempt(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (ValueError, OverflowError):
        return None


def numeric(value: str) -> float | None:
    found = float(pd.to_numeric(pd.Series([value]), errors="coerce")[0])
    is_word = value.strip(" \t\n\v\f\r").lower().lstrip("+-") == "nan"
    return None if math.isnan(found) and not is_word else found


FLOATS: dict[str, Callable[[str], Any]] = {
    "python": lambda value: attempt(lambda: float(pd.Series([value]).astype(float)[0])),
    "to_numeric": numeric,
    "polars": lambda value: pl.Series([value]).cast(pl.Float64, strict=False)[0],
}


@cache
def floats(reader: Any) -> TextModel:
    return TextModel(lambda x: text_numbers.to_float(x, reader))


@cache
def integers(reader: Any, dtype: str = "int64") -> TextModel:
    return TextModel(lambda x: text_numbers.to_int(x, ir.DataType.from_numpy(np.dtype(dtype)), reader))


def same(found: float, wanted: float) -> bool:
    """Readers round the last digit in ways of their own; the sign of zero counts."""
    if math.isnan(wanted) or math.isinf(wanted) or wanted == 0:
        return repr(found) == repr(wanted)
    return math.isclose(found, wanted, rel_tol=1e-15)


@pytest.mark.parametrize("reader", FLOATS)
def test_floats(reader: str) -> None:
    for value, (found, is_number) in zip(NUMBERS, floats(reader)(NUMBERS), strict=True):
        wanted = FLOATS[reader](value)
        assert is_number == (wanted is not None), value
        assert same(found, 0.0 if wanted is None else wanted), value
    assert floats(reader)([]) == []


@settings(max_examples=60, deadline=None)
@given(numbers)
def test_floats_in_any_text(column: list[str]) -> None:
    for reader, read in FLOATS.items():
        for value, (found, is_number) in zip(column, floats(reader)(column), strict=True):
            wanted = read(value)
            assert is_number == (wanted is not None), (reader, value)
            assert same(found, 0.0 if wanted is None else wanted), (reader, value)


@settings(max_examples=60, deadline=None)
@given(numbers)
def test_integers_in_any_text(column: list[str]) -> None:
    for values in (column, NUMBERS):
        wanted = [attempt(lambda value=value: int(pd.Series([value]).astype("int64")[0])) for value in values]
        assert integers("python")(values) == [(value or 0, value is not None) for value in wanted]
        for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"):
            read = pl.Series(values, dtype=pl.String).cast(getattr(pl, dtype.title().replace("Ui", "UI")), strict=False)
            assert integers("polars", dtype)(values) == [(value or 0, value is not None) for value in read.to_list()]


def test_subnormal_numbers_become_zero() -> None:
    for value in ("5e-324", "-3e-309", "2.2250738585072011e-308"):
        assert floats("polars")([value]) == [(0.0, True)]


def test_numbers_become_texts() -> None:
    values = [0, -1, 7, -(2**63), 2**63 - 1, 10**18]
    assert TextModel(text_numbers.from_int, np.int64)(values) == [(str(value),) for value in values]
    assert TextModel(text_numbers.from_int, np.int8)(np.array([-128, 5], np.int8)) == [("-128",), ("5",)]
    assert TextModel(text_numbers.from_int, np.uint64)(np.array([2**64 - 1], np.uint64)) == [(str(2**64 - 1),)]
    assert TextModel(text_numbers.from_bool, bool)([True, False]) == [("True",), ("False",)]
    with pytest.raises(UnsupportedError, match="fraction"):
        TextModel(text_numbers.from_int, np.float64)
    with pytest.raises(UnsupportedError, match="uint64"):
        integers("polars", "uint64")


def test_empty_texts_are_false() -> None:
    assert TextModel(text_numbers.is_filled)(["", " ", "False"]) == [(False,), (True,), (True,)]
