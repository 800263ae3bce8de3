"""What TensorFlow says on its way, which is of no use to whoever converts a model."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_remarks() -> Iterator[None]:
    """Inside, TensorFlow keeps to itself what it has to say in Python: on what is old, and what it can do without."""
    logs = [logging.getLogger(name) for name in ("tensorflow", "absl")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
