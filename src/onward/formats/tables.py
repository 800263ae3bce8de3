"""Rows of numbers and strings: as an estimator of scikit-learn is given them, and as an ONNX model is."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onward.advice.extras import is_installed, require
from onward.advice.options import option
from onward.errors import InvalidDataError, UnsupportedError
from onward.gate.arrays import read_npy, read_npz
from onward.gate.bounds import UNPACKED, unpacked
from onward.gate.files import absent
from onward.hub.wording import quote

Array = npt.NDArray[Any]
MOST = 256
"""Rows that a sample is cut to."""
MISSING = ""
"""What stands for a string that is missing, as tensors of strings have no such thing."""


def is_frame(data: Any) -> bool:
    """Whether it is a data frame of pandas, which is not imported to tell."""
    return hasattr(data, "columns") and hasattr(data, "iloc")


def shortened(sample: Any) -> Any:
    """No more rows than are needed to compare, from all over the sample; lists and sparse matrices as arrays."""
    if hasattr(sample, "toarray"):
        sample = sample.toarray()
    elif hasattr(sample, "to_pandas"):
        sample = sample.to_pandas()
    if hasattr(sample, "iloc"):
        rows = _rows(len(sample))
        return sample.iloc[rows]
    if isinstance(sample, list | tuple):
        sample = np.asarray(sample, dtype=object if all(isinstance(item, str) for item in sample) else None)
    if not isinstance(sample, np.ndarray):
        raise InvalidDataError(f"a sample is an array or a data frame, not {type(sample).__name__}")
    if not sample.ndim:
        raise InvalidDataError("a sample is an array of rows, not a single number")
    return sample[_rows(len(sample))]


def _rows(count: int) -> Array:
    if not count:
        raise InvalidDataError("the sample has no rows")
    return np.unique(np.linspace(0, count - 1, min(count, MOST)).astype(int))


def feeds(given: Any) -> dict[str, Array]:
    """By input: a column of a data frame each, or an array as a whole."""
    if not is_frame(given):
        return {"X": _tensor("X", np.asarray(given))}
    names = [str(name) for name in given.columns]
    if len(set(names)) < len(names):
        raise InvalidDataError("two columns of the sample have one name")
    columns = (given.iloc[:, i] for i in range(len(names)))
    return {name: _tensor(name, _values(column)).reshape(-1, 1) for name, column in zip(names, columns, strict=True)}


def like(example: Any, fed: Mapping[str, Array], *, exactly: bool = True) -> Any:
    """What was fed to a model in the form of an example, the reverse of `feeds`; `exactly` in the same types, too."""
    if not is_frame(example):
        return _with_gaps(fed["X"], np.asarray(example))
    pairs = zip(example.columns, fed.values(), strict=True)
    if not exactly:
        return type(example)({name: _with_gaps(array.reshape(-1), np.asarray([None])) for name, array in pairs})
    columns = {name: _with_gaps(array.reshape(-1), example[name].to_numpy()) for name, array in pairs}
    return type(example)(columns).astype(example.dtypes)


def _with_gaps(array: Array, example: Array) -> Array:
    """Strings that stand for missing ones as what is missing in the example, if anything is."""
    gap = next((item for item in example.reshape(-1) if is_missing(item)), MISSING) if array.dtype.kind == "O" else ""
    if gap == MISSING:
        return array
    made = array.copy()
    made[array == MISSING] = gap
    return made


def _values(column: Any) -> Array:
    """A column's values: of pandas' own types, as the type of numpy that they are of."""
    array = column.to_numpy()
    if array.dtype.kind == "O" and getattr(column.dtype, "kind", "O") in "fiub":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(array)


def _tensor(name: str, array: Array) -> Array:
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind in "UT":
        return array.astype(object)
    if array.dtype.kind != "O":
        raise UnsupportedError(f"column {quote(name)}: ONNX has no type for {array.dtype}")
    flat = [MISSING if is_missing(item) else item for item in array.reshape(-1)]
    if all(isinstance(item, bool) for item in flat):
        return array.astype(bool)
    if not all(isinstance(item, str) for item in flat):
        kinds = sorted({type(item).__name__ for item in flat})
        raise UnsupportedError(f"{quote(name)} holds {', '.join(kinds)}: a tensor holds strings or numbers, not both")
    gaps = [is_missing(item) for item in array.reshape(-1)]
    if any(gaps) and any(item == MISSING and not gap for item, gap in zip(flat, gaps, strict=True)):
        raise UnsupportedError(f"column {quote(name)} has missing strings and empty ones, which ONNX cannot tell apart")
    made = np.empty(len(flat), object)
    made[:] = flat
    return made.reshape(array.shape)


def is_missing(item: Any) -> bool:
    """None, NaN or pandas' NA."""
    return item is None or type(item).__name__ in ("NAType", "NaTType") or (isinstance(item, float) and item != item)


def derived(estimator: Any) -> Any:
    """A sample where none is given: numbers for each feature the estimator was fitted on."""
    count, name = getattr(estimator, "n_features_in_", None), type(estimator).__name__
    if count is None or (part := part_on_strings(estimator)):
        why = "does not say what it takes" if count is None else f"has a {part} that was fitted on strings"
        raise InvalidDataError(
            f"{name} {why}: give rows like those that it was fitted on: {option('sample', 'rows.csv')}"
        )
    numbers = np.random.default_rng(0).normal(size=(16, int(count)))
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return numbers
    require("pandas")
    import pandas

    return pandas.DataFrame(numbers, columns=list(names))


def part_on_strings(estimator: Any) -> str:
    """The class of a part that takes strings, in an estimator however nested; '' where all are fitted on numbers."""
    seen: set[int] = set()
    left = [estimator]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, list | tuple):
            left += part
        elif isinstance(part, Mapping):
            left += part.values()
        elif hasattr(part, "get_params"):
            own = vars(part)
            learned = [*np.atleast_1d(own.get("statistics_", ())), *own.get("categories_", ())]
            if "vocabulary_" in own or any(isinstance(item, str) for array in learned for item in np.ravel(array)):
                return type(part).__name__
            left += own.values()
    return ""


READERS = {
    ".csv": ("read_csv", "read_csv"),
    ".feather": ("read_feather", "read_ipc"),
    ".parquet": ("read_parquet",) * 2,
}
"""By suffix: what pandas reads it with, and Polars."""


def read_table(path: Path, library: str = "pandas") -> Any:
    """The rows in a file: a frame of a .csv, .feather or .parquet, an array of a .npy, either of a .npz."""
    suffix = path.suffix.lower()
    if not path.is_file():
        raise InvalidDataError(absent(path))
    if suffix == ".npy":
        return read_npy(path)
    if suffix not in (*READERS, ".npz"):
        raise InvalidDataError(f"{path}: rows are read from .csv, .feather, .parquet, .npy and .npz")
    if suffix == ".npz" and len(arrays := read_npz(path)) == 1:
        return next(iter(arrays.values()))
    require(library, what=str(path))
    if suffix in (".feather", ".parquet"):
        require(*(["pyarrow"] if library == "pandas" else []), what=str(path))
        if is_installed("pyarrow"):
            _check_claims(path, suffix)
    module = importlib.import_module(library)
    try:
        if suffix == ".npz":
            return module.DataFrame({name: array.reshape(-1) for name, array in arrays.items()})
        return getattr(module, READERS[suffix][library == "polars"])(path)
    except Exception as error:
        raise InvalidDataError(f"{path}: its rows cannot be read: {error}") from error


ITEM = 8
"""Bytes that an item of a column takes at least, once it is read."""


def _check_claims(path: Path, suffix: str) -> None:
    """Refuse, before its rows are read, a file that claims more of them than its size accounts for."""
    import pyarrow

    try:
        if suffix == ".parquet":
            import pyarrow.parquet

            found = pyarrow.parquet.ParquetFile(path).metadata
            items = found.num_rows * found.num_columns
        else:
            with pyarrow.memory_map(str(path)) as file, pyarrow.ipc.open_file(file) as batches:
                items = sum(batches.get_batch(i).num_rows for i in range(batches.num_record_batches))
                items *= len(batches.schema)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidDataError(f"{path}: its rows cannot be read: {error}") from error
    most = unpacked(path.stat().st_size)
    if items * ITEM > most:
        raise InvalidDataError(f"{path}: it claims {items:,} values, more than {most // ITEM:,}; {UNPACKED.hint}")


def given_to(estimator: Any, table: Any, *, as_frame: bool = False) -> Any:
    """Of a data frame the columns that an estimator was fitted on, or an array where it was fitted on an array."""
    if not is_frame(table):
        return table
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        if missing := [name for name in names if name not in table.columns]:
            raise InvalidDataError(f"the sample has no column {quote(str(missing[0]))}, which the estimator takes")
        return table[list(names)]
    if as_frame:
        return table
    return table.to_numpy() if len({column.kind for column in table.dtypes}) == 1 else table
