"""What a run of a model is, and how what goes wrong in a runtime is told."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from onward.advice.extras import missing_packages
from onward.errors import OnwardError, RunFailure

Inputs = dict[str, Any]
"""By input name: an array, a list of arrays for a sequence, None for an optional that is left out."""
Outputs = Mapping[str, Any]
"""By output name: an array, a list for a sequence, a dict for a map, None for an empty optional."""
Run = Callable[[Inputs], Outputs]


def plainly(run: Run) -> Run | None:
    """The same model without the kernels that a framework accelerates it by, where it has others."""
    found: Run | None = getattr(run, "plainly", None)
    return found


LONGEST = 300
"""Characters of a runtime's message that are kept."""
NOISE = re.compile(
    r"(Exception from|Check '[^']*' failed at) \S+:\d+: "
    r"|\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "
    r"|/onnxruntime_src/\S+:\d+ .*?\) (?=[A-Z[])"
)
"""Places in a runtime's own source code, and its error codes: what comes before the words that help."""


@contextmanager
def failures(name: str) -> Iterator[None]:
    """Any exception of a runtime is a `RunFailure` of one line; its warnings are of no interest."""
    logged = logging.root.manager.disable
    logging.disable(max(logged, logging.WARNING))
    try:
        with raised_failures(name), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logged)


@contextmanager
def raised_failures(name: str) -> Iterator[None]:
    """As `failures`, for a runtime that is quiet: a step of training would feel what silence costs."""
    try:
        with missing_packages():
            yield
    except OnwardError:
        raise
    except MemoryError as error:
        raise RunFailure(f"{name}: ran out of memory") from error
    except Exception as error:
        raise RunFailure(f"{name}: {brief(error)}") from error


def brief(error: BaseException) -> str:
    """The message, with the kind of error where it would not be understood without."""
    text = NOISE.sub("", " ".join(str(error).split()))
    if (type(error).__module__ == "builtins" and not isinstance(error, RuntimeError | ValueError)) or not text:
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
