"""Is what a model gives for a frame what the function gives for it, column by column and row by row?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.hub.wording import quote

Array = npt.NDArray[Any]
CLOSE = 1e-12
"""How far apart floats of 64 bits may be, relative to their size: sums are added up in another order."""
CLOSE32 = 2e-6


def differences(expected: Any, got: Any) -> list[str]:
    """What differs between two frames or columns of one library, a line each; empty if nothing does."""
    return list(_differences(_columns(expected), _columns(got)))


def _differences(expected: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    if list(expected) != list(got):
        yield f"the columns are {', '.join(map(quote, got))}, not {', '.join(map(quote, expected))}"
        return
    for name, wanted in expected.items():
        if len(wanted) != len(got[name]):
            yield f"column {quote(name)} has {len(got[name])} rows, not {len(wanted)}"
            return
    for name, wanted in expected.items():
        if told := _column_difference(wanted, got[name]):
            yield f"column {quote(name)}: {told}"


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


def _column_difference(expected: Any, got: Any) -> str:
    missing, lost = _missing(expected), _missing(got)
    if (wrong := missing != lost).any():
        row = int(np.flatnonzero(wrong)[0])
        was, now = ("missing", _shown(got, row)) if missing[row] else (_shown(expected, row), "missing")
        return f"row {row} is {now}, not {was}{_more(wrong)}"
    present = ~missing
    a, b = _values(expected, present), _values(got, present)
    wrong = _unequal(a, b)
    if not wrong.any():
        return ""
    row = int(np.flatnonzero(present)[np.flatnonzero(wrong)[0]])
    return f"row {row} is {_shown(got, row)}, not {_shown(expected, row)}{_more(wrong)}"


def _more(wrong: Array) -> str:
    return f", and {int(wrong.sum()) - 1} more rows differ" if wrong.sum() > 1 else ""


def _shown(column: Any, row: int) -> str:
    return repr(column.iloc[row] if hasattr(column, "iloc") else column[row])


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
    if "f" in (a.dtype.kind, b.dtype.kind) and "O" not in (a.dtype.kind, b.dtype.kind) or _is_numbers(a, b):
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            close = CLOSE32 if np.float32 in (a.dtype, b.dtype) else CLOSE
            near = np.abs(x - y) <= close * np.maximum(np.abs(x), np.abs(y))
        return np.asarray(~(near | (x == y) | (np.isnan(x) & np.isnan(y))))
    return np.asarray([first != second for first, second in zip(a, b, strict=True)], dtype=bool)


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


def differing(function: Callable[[Any], Any], run: Callable[[Any], Any], sample: Any) -> str:
    """What differs first between a function and its model on the sample and parts of it; '' if nothing does."""
    for what, part in check_sizes(sample):
        try:
            expected = function(part)
        except Exception:
            if what == "the sample":
                raise
            continue
        if found := differences(expected, run(part)):
            return f"on {what}, {found[0]}"
    return ""
