"""PyTorch's own table of translations, read once: it takes longer than a small module itself does to export."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

_MADE: dict[Any, Any] = {}
"""By what the table is asked for with, and how many ops there are: libraries that are loaded bring theirs."""


@contextmanager
def read_once() -> Iterator[None]:
    """Within it, the exporter gets a copy of the table that an earlier call made, if there is one."""
    import torch

    try:
        from torch.onnx._internal.exporter._registration import ONNXRegistry
    except ImportError:  # a PyTorch that keeps it elsewhere
        yield
        return
    make = ONNXRegistry.from_torchlib

    def copied(*args: Any, **kwargs: Any) -> Any:
        key = (args, *sorted(kwargs.items()), len(torch._C._dispatch_get_all_op_names()))
        if key not in _MADE:
            _MADE[key] = make(*args, **kwargs)
        table = copy.copy(_MADE[key])
        table.functions = {op: list(found) for op, found in table.functions.items()}
        return table

    with patch.object(ONNXRegistry, "from_torchlib", staticmethod(copied)):
        yield
