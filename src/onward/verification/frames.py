"""Is what a model gives for a frame what the function gives for it, column by column and row by row?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.frontends.dataframe.fitted import fitted_once
from onward.hub.wording import quote

Array = npt.NDArray[Any]
CLOSE = 1e-12
"""How far apart floats of 64 bits may be, relative to their size: sums are added up in another order."""
CLOSE32 = 2e-6


@dataclass(frozen=True)
class ColumnResult:
    """A column of two frames: what differs, '' if nothing does, and the first row that does."""

    name: str
    told: str = ""
    wrong: int = 0
    rows: int = 0
    row: int | None = None
    expected: str = ""
    actual: str = ""
    dtype: str = ""


def differences(expected: Any, got: Any) -> list[str]:
    """What differs between two frames or columns of one library, a line each; empty if nothing does."""
    results = [result for result in column_results(expected, got) if result.told]
    return [f"column {quote(result.name)}: {result.told}" if result.name else result.told for result in results]


def column_results(expected: Any, got: Any) -> Iterator[ColumnResult]:
    """Each column of two frames of one library; one without a name, if the frames have other columns or rows."""
    first, second = _columns(expected), _columns(got)
    if list(first) != list(second):
        yield ColumnResult("", f"the columns are {', '.join(map(quote, second))}, not {', '.join(map(quote, first))}")
        return
    for name, wanted in first.items():
        if len(wanted) != len(second[name]):
            yield ColumnResult("", f"column {quote(name)} has {len(second[name])} rows, not {len(wanted)}")
            return
    for name, wanted in first.items():
        yield _column_result(name, wanted, second[name])


def _columns(result: Any) -> dict[str, Any]:
    if hasattr(result, "to_native"):
        result = result.to_native()
    if hasattr(result, "collect") and not hasattr(result, "iloc"):
        result = result.collect()
    if hasattr(result, "iloc"):
        return _pandas_columns(result)
    if hasattr(result, "to_frame") and hasattr(result, "null_count"):
        result = result.to_frame()
    return {name: result[name] for name in result.columns}


def _pandas_columns(result: Any) -> dict[str, Any]:
    """Columns by name; names of groups, which stand in the index, come first."""
    if not hasattr(result, "columns"):
        name = "result" if result.name is None else str(result.name)
        result = result.to_frame(name)
    index = result.index
    if any(name is not None for name in index.names):
        result = result.reset_index()
    return {str(name): result.iloc[:, i] for i, name in enumerate(result.columns)}


def _column_result(name: str, expected: Any, got: Any) -> ColumnResult:
    known = ColumnResult(name, rows=len(expected), dtype=str(expected.dtype))
    missing, lost = _missing(expected), _missing(got)
    if (wrong := missing != lost).any():
        row = int(np.flatnonzero(wrong)[0])
        was, now = ("missing", _shown(got, row)) if missing[row] else (_shown(expected, row), "missing")
        return _different(known, row, was, now, wrong)
    present = ~missing
    wrong = _unequal(_values(expected, present), _values(got, present))
    if not wrong.any():
        return known
    row = int(np.flatnonzero(present)[np.flatnonzero(wrong)[0]])
    return _different(known, row, _shown(expected, row), _shown(got, row), wrong)


def _different(known: ColumnResult, row: int, was: str, now: str, wrong: Array) -> ColumnResult:
    told = f"row {row} is {now}, not {was}{_more(wrong)}"
    return replace(known, told=told, wrong=int(wrong.sum()), row=row, expected=was, actual=now)


def _more(wrong: Array) -> str:
    return f", and {int(wrong.sum()) - 1} more rows differ" if wrong.sum() > 1 else ""


def _shown(column: Any, row: int) -> str:
    value = column.iloc[row] if hasattr(column, "iloc") else column[row]
    return repr(value.item() if hasattr(value, "item") else value)


def _missing(column: Any) -> Array:
    if hasattr(column, "iloc"):
        return np.asarray(column.isna().to_numpy(dtype=bool))
    return np.asarray(column.is_null().to_numpy(), dtype=bool)


def _values(column: Any, present: Array) -> Array:
    """What is there, as numbers, ticks or texts."""
    if hasattr(column, "iloc"):
        kept = column[present]
        if kept.dtype.kind in "mM":
            return np.asarray(kept.to_numpy())
        if str(kept.dtype) == "category":
            kept = kept.astype(object)
        values = kept.to_numpy(dtype=object)
        return _narrowed(values) if len(values) else np.zeros(0)
    values = column.to_numpy()[present] if column.dtype.is_numeric() else np.asarray(column.to_list(), object)[present]
    return values if values.dtype.kind in "biuf" else _narrowed(values)


def _narrowed(values: Array) -> Array:
    if all(isinstance(value, bool | np.bool_) for value in values):
        return values.astype(bool)
    if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in values):
        return values
    if all(isinstance(value, int | float | np.number) for value in values):
        return values.astype(np.float64)
    return np.asarray([value if isinstance(value, str) else str(value) for value in values], dtype=object)


def _unequal(a: Array, b: Array) -> Array:
    if a.dtype.kind in "mM" and b.dtype.kind == a.dtype.kind:
        return np.asarray(a != b)
    if ("f" in (a.dtype.kind, b.dtype.kind) and "O" not in (a.dtype.kind, b.dtype.kind)) or _is_numbers(a, b):
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            close = CLOSE32 if np.float32 in (a.dtype, b.dtype) else CLOSE
            near = np.abs(x - y) <= close * np.maximum(np.abs(x), np.abs(y)) + 4 * np.finfo(x.dtype).eps * _size(x)
        return np.asarray(~(near | (x == y) | (np.isnan(x) & np.isnan(y))))
    return np.asarray([first != second for first, second in zip(a, b, strict=True)], dtype=bool)


def _size(values: Array) -> float:
    """The usual size of finite numbers: where a result is nearly 0, as the sine of π, its rounding is not."""
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(np.square(finite)))) if len(finite) else 0.0


def _is_numbers(a: Array, b: Array) -> bool:
    """Whether one side is floats and the other integers: a type that is wide enough for what may be missing."""
    kinds = {("f" if array.dtype.kind == "f" else "n") for array in (a, b)}
    numbers = all(
        array.dtype.kind in "biuf" or all(isinstance(v, int | float | np.number) for v in array) for array in (a, b)
    )
    return numbers and "f" in kinds


def check_sizes(sample: Any) -> Iterator[tuple[str, Any]]:
    """The sample, its first row alone, and none of its rows."""
    yield "the sample", sample
    for count, what in ((1, "one row"), (0, "no rows")):
        yield what, sample.head(count)


def differing(
    function: Callable[[Any], Any], run: Callable[[Any], Any], sample: Any, frozen: Sequence[str] = ()
) -> str:
    """What differs first between a function and its model on the sample and parts of it; '' if nothing does.

    What is fitted is fitted to the sample. Of parts a function cannot tell where the model has `frozen` results in it.
    """
    once = fitted_once(function)
    for what, part in check_sizes(sample):
        if frozen and what != "the sample":
            run(part)
            continue
        try:
            expected = once(part)
        except Exception:
            if what == "the sample":
                raise
            continue
        if found := differences(expected, run(part)):
            return f"on {what}, {found[0]}"
    return ""
