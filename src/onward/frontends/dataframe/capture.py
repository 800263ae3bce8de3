"""A function on a frame of any library as a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onward.advice.extras import require
from onward.errors import InvalidDataError, OnwardError
from onward.frontends.opset import brought_to, written_opset
from onward.hub.wording import quote
from onward.model import Model


def captured(
    function: Callable[..., Any],
    sample: Any,
    opset: int,
    freeze: Sequence[str] = (),
    never_null: Sequence[str] = (),
) -> Model:
    return brought_to(opset, _captured(function, sample, written_opset(opset), freeze, never_null))


def _captured(
    function: Callable[..., Any], sample: Any, opset: int, freeze: Sequence[str], never_null: Sequence[str]
) -> Model:
    if not callable(function):
        raise OnwardError(f"a function on a data frame is needed, not a {type(function).__name__}")
    _check_names(sample, never_null)
    library = "narwhals" if _is_of_narwhals(function) else library_of(sample)
    if library == "pandas":
        from onward.frontends.dataframe.pandas.capture import captured as of_pandas

        return of_pandas(function, sample, opset, freeze, never_null)
    if freeze:
        raise OnwardError("freeze is for functions of pandas: use onward.fitted, or a number, in those of others")
    if library == "polars":
        from onward.frontends.dataframe.polars.capture import captured as of_polars

        return of_polars(function, sample, opset, never_null)
    from onward.frontends.dataframe.narwhals.capture import captured as of_narwhals

    return of_narwhals(function, sample, opset, never_null)


def _check_names(sample: Any, never_null: Sequence[str]) -> None:
    if never_null:
        names = sample.collect_schema() if hasattr(sample, "collect_schema") else sample.columns
        known = {str(name) for name in names}
        if unknown := next((name for name in never_null if name not in known), None):
            raise OnwardError(f"never_null names {quote(unknown)}, which is no column of the sample")


def _is_of_narwhals(function: Callable[..., Any]) -> bool:
    """Whether `narwhals.narwhalify` made it take native frames."""
    code = getattr(function, "__code__", None)
    return hasattr(function, "__wrapped__") and "narwhals" in str(getattr(code, "co_filename", ""))


def full_sample(sample: Any) -> Any:
    """A frame; of a mapping of names to dtypes, one without rows."""
    if not isinstance(sample, Mapping):
        return sample
    require("pandas")
    import pandas

    try:
        return pandas.DataFrame({name: pandas.Series(dtype=dtype) for name, dtype in sample.items()})
    except TypeError as error:
        raise InvalidDataError(f"a schema is names and dtypes of pandas: {error}") from error


def library_of(sample: Any) -> str:
    """Whose frame it is, told without importing any library."""
    owner = type(sample).__module__.split(".")[0]
    if owner in ("pandas", "polars", "narwhals"):
        return owner
    if hasattr(sample, "iloc") and hasattr(sample, "columns"):
        return "pandas"
    raise InvalidDataError(f"a sample is a data frame of pandas, Polars or narwhals, not a {type(sample).__name__}")
