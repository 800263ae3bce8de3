"""Functions on data frames in files of the user's, `features.py:features`, and the frames that they are given.

A file of Python is code: nothing of it is executed unless it is trusted.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from onward.advice.extras import missing_packages, require, titled
from onward.advice.nearest import meant
from onward.errors import InvalidModelError, OnwardError
from onward.formats.tables import is_frame, read_table
from onward.gate import allow_beside, foreign, opens, run_source
from onward.hub.wording import quote

FORM = re.compile(r"(?P<file>.+\.py):(?P<name>[^\W\d]\w*(\.[^\W\d]\w*)*)")
LIBRARIES = ("pandas", "polars", "narwhals")
ALSO = "onward_file_"
"""What the names of modules of such files begin with, so that none takes the place of another module."""


def is_function_name(text: str) -> bool:
    """Whether it names a function in a file of Python; a file of this very name would come first."""
    return FORM.fullmatch(text) is not None and not Path(text).exists()


def is_function_source(model: Any) -> bool:
    """Whether it is a function on data frames, or names one in a file."""
    if isinstance(model, str | os.PathLike):
        return is_function_name(os.fspath(model))
    return takes_frame(model) and hasattr(model, "__name__")


def read_function(text: str) -> Callable[..., Any]:
    """The function of `features.py:features`, in a file that is trusted."""
    found = read_named(text)
    if not callable(found) or inspect.isclass(found):
        what = "a class" if inspect.isclass(found) else f"of {type(found).__name__}"
        raise OnwardError(f"{text}: it is {what}, and no function")
    if not takes_frame(found):
        raise OnwardError(f"{text}: it takes no argument, and a function on a data frame takes the frame")
    function: Callable[..., Any] = found
    return function


def read_named(text: str) -> Any:
    """What a file that is trusted defines under the name of `net.py:apply`."""
    form = FORM.fullmatch(text)
    assert form is not None
    path, names = Path(form["file"]), form["name"].split(".")
    found: Any = _module(path)
    for name in names:
        known = [one for one in vars(found) if not one.startswith("_")] if hasattr(found, "__dict__") else []
        if not hasattr(found, name):
            raise OnwardError(f"{path} has no function {quote(name)}{meant(name, known)}")
        found = getattr(found, name)
    return found


@opens(foreign)
def _module(path: Path) -> ModuleType:
    """What a file of Python defines; as for a script, modules beside it can be imported."""
    if path.is_dir():
        raise InvalidModelError(f"{path} is a folder, and no file of Python")
    allow_beside(path)
    try:
        with missing_packages():
            return run_source(path, f"{ALSO}{path.stem}")
    except OnwardError:
        raise
    except (SyntaxError, UnicodeError, ValueError) as error:
        if isinstance(error, SyntaxError) or _line(error, path) is None:
            where = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
            raise InvalidModelError(f"{path}: it is no Python: {where}{getattr(error, 'msg', error)}") from error
        raise _failed(error, path) from error
    except (Exception, SystemExit) as error:
        raise _failed(error, path) from error


def _failed(error: BaseException, path: Path) -> OnwardError:
    line = _line(error, path)
    where = "" if line is None else f", line {line}"
    return OnwardError(f"{path}{where}: {type(error).__name__}: {error}")


def _line(error: BaseException, path: Path) -> int | None:
    """The last line of the file that was running."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def takes_frame(found: Any) -> bool:
    """Whether it is a function that has to be given something, as opposed to one that makes a model."""
    if not callable(found) or inspect.isclass(found):
        return False
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.kind in positional and one.default is one.empty for one in parameters)


def library_of_function(function: Callable[..., Any]) -> str:
    """The library that a function is written for: by the annotation of what it takes, else by what its file imports."""
    inner = inspect.unwrap(getattr(function, "func", function))
    names = getattr(inner, "__globals__", {})
    try:
        first = next(iter(inspect.signature(inner).parameters.values()))
    except (TypeError, ValueError, StopIteration):
        return "pandas"
    if first.annotation is not first.empty:
        said = first.annotation if isinstance(first.annotation, str) else getattr(first.annotation, "__module__", "")
        root = said.partition(".")[0]
        root = getattr(names.get(root), "__name__", root).partition(".")[0]
        if root in LIBRARIES:
            return root
    imported = {value.__name__ for value in names.values() if isinstance(value, ModuleType)}
    return next((one for one in ("pandas", "narwhals", "polars") if one in imported), "pandas")


def frame_for(function: Callable[..., Any], sample: Any, library: str | None) -> Any:
    """A sample as the function is given it: a frame as it is, or the rows of a file, read by its library."""
    if library is not None and library not in LIBRARIES:
        raise OnwardError(
            f"there is no library {library!r}; there are {', '.join(LIBRARIES)}{meant(library, LIBRARIES)}"
        )
    if not isinstance(sample, str | Path):
        return sample
    chosen = library or library_of_function(function)
    require(chosen, what=titled(chosen))
    rows = read_table(Path(sample), "polars" if chosen == "polars" else "pandas")
    if chosen == "pandas" and not is_frame(rows):
        raise OnwardError(f"{sample}: it holds an array, and the function takes a data frame with columns")
    if chosen == "narwhals":
        import narwhals

        return narwhals.from_native(rows)
    return rows
