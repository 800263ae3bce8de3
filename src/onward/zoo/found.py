"""What a job finds, and what an error comes to."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onward.errors import (
    ConversionError,
    InvalidModelError,
    OnwardError,
    RunFailure,
    VerificationError,
    WritingError,
)
from onward.zoo.results import Verdict

if TYPE_CHECKING:
    from onward.model import Model

LONGEST = 600
"""Characters of a message."""


@dataclass
class Found:
    """What a job comes to, with the names of a cell's fields."""

    verdict: Verdict = "failed"
    message: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    """Other fields of the cell."""
    model: Model | None = None
    """The source, as ONNX."""


def raised(error: Exception) -> tuple[Verdict, str]:
    """An error that says why is a refusal; any other is a failure."""
    words = " ".join(str(error).split()) or type(error).__name__
    cause = error.__cause__
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if is_full or isinstance(error, WritingError | MemoryError):  # the machine, not the model
        raise error
    if isinstance(error, VerificationError):
        return "different", words
    is_defect = isinstance(error, InvalidModelError) and cause is not None and not isinstance(cause, OnwardError)
    if isinstance(error, OnwardError) and not isinstance(error, ConversionError | RunFailure) and not is_defect:
        return "refused", words
    return "failed", words if isinstance(error, OnwardError) else f"{type(error).__name__}: {words}"
