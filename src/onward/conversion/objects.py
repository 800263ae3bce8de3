"""A model that the user's own code makes: `package.module:callable`.

Whoever names code asks for it to be executed, so it needs no `--trust`. A file of that name comes first, and is opened
as a file. The current folder is searched last, so that nothing in it takes the place of what is installed.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from onward.advice.extras import missing_packages
from onward.errors import OnwardError
from onward.formats.dataframe.functions import is_function_name, takes_frame

NAMED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_name(text: str) -> bool:
    """Whether it names an object in a module; a file of this name would come first."""
    return NAMED.fullmatch(text) is not None and not is_function_name(text) and not Path(text).exists()


def built(name: str, whatever: bool = False) -> Any:
    """The object: a model, what a function or a class without arguments makes, or a function of data.

    It must be of a kind that is known, unless `whatever` it is will do.
    """
    from onward.formats import class_name, kind_of_object

    module, _, attributes = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    importlib.invalidate_caches()
    _check_place(module.partition(".")[0])
    try:
        with missing_packages():
            found: Any = importlib.import_module(module)
            for attribute in attributes.split("."):
                found = getattr(found, attribute)
            if kind_of_object(found) is None and takes_frame(found):
                return found
            if kind_of_object(found) is None and callable(found):
                found = found()
    except OnwardError as error:
        raise type(error)(f"{name}: {error}") from error
    except (Exception, SystemExit) as error:
        raise OnwardError(f"{name}: {type(error).__name__}: {error}") from error
    if kind_of_object(found) is None and not whatever:
        what = f"an object of {class_name(found)}" if not inspect.ismodule(found) else "a module"
        raise OnwardError(
            f"{name}: Onward does not recognise {what} as a model; name a model, or a function that returns one"
        )
    return found


def _check_place(name: str) -> None:
    """Say so where a module in the current folder is meant, and one that is installed has its name."""
    meant = [place for place in (Path(f"{name}.py"), Path(name) / "__init__.py") if place.is_file()]
    with suppress(ValueError):
        found = importlib.util.find_spec(name)
        if meant and found is not None and Path(found.origin or "").resolve() != meant[0].resolve():
            raise OnwardError(
                f"{meant[0]} has the name of a module that comes first, {found.origin or name}: give it another name"
            )
