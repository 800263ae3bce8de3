"""A model that the user's own code makes: `package.module:callable`."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from onward.errors import OnwardError

NAMED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_name(text: str) -> bool:
    """Whether it names an object in a module; a file of this name would come first."""
    return NAMED.fullmatch(text) is not None and not Path(text).exists()


def built(name: str) -> Any:
    """The object: a model, or what a function or a class without arguments makes. Modules are looked for here, too."""
    from onward.verification.artifacts import class_name, kind_of_object

    module, _, attributes = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
        if kind_of_object(found) is None and callable(found):
            found = found()
    except (Exception, SystemExit) as error:
        raise OnwardError(f"{name}: {type(error).__name__}: {error}") from error
    if kind_of_object(found) is None:
        what = f"an object of {class_name(found)}" if not inspect.ismodule(found) else "a module"
        raise OnwardError(f"{name}: it is {what}, which is no model of a known kind")
    return found
