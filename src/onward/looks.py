"""How objects look in a notebook and in words: `onward.report`, which lies above them all, is asked when needed."""

from __future__ import annotations

import importlib


def shown(how: str, subject: object) -> str:
    """What a function of `onward.report.notebook` says of an object."""
    words: str = getattr(importlib.import_module("onward.report.notebook"), how)(subject)
    return words
