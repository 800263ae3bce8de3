"""Where a result goes."""

from __future__ import annotations

from pathlib import Path

from onward.advice.options import option
from onward.errors import OnwardError


def check_output(out: Path, is_file: bool) -> None:
    """Fail before the work is done, not after."""
    word = option("out")
    if is_file and out.is_dir():
        raise OnwardError(f"{out} is a folder; {word} names a file")
    for place in (*([] if is_file else [out]), *out.parents):
        if place.exists() and not place.is_dir():
            raise OnwardError(f"{place} is a file; {word} names a {'file in a folder' if is_file else 'folder'}")
