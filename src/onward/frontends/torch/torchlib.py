"""What PyTorch's exporter asks again and again, asked once: it takes longer than a small module itself to export."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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

    with patch.object(ONNXRegistry, "from_torchlib", staticmethod(copied)), listed_once():
        yield


@contextmanager
def listed_once() -> Iterator[None]:
    """Within it, PyTorch asks its dispatcher once for each list of its ops, and not once more for each namespace.

    Libraries that save objects look their names up in all modules (skops does so when it is imported), and
    `torch.ops` makes a namespace of every name that it is asked for: hundreds, and a second for each export.
    """
    from torch._export import utils
    from torch.export import decomp_utils, exported_program

    collect = getattr(utils, "_collect_all_valid_cia_ops", None)
    ask = getattr(utils, "_materialize_cpp_cia_ops", None)
    if collect is None or ask is None:  # a PyTorch that does it otherwise
        yield
        return

    def collected() -> Any:
        ask()
        with patch.object(utils, "_materialize_cpp_cia_ops", lambda: None):
            return collect()

    with ExitStack() as patches:
        for module in (decomp_utils, exported_program):
            if getattr(module, "_collect_all_valid_cia_ops", None) is collect:
                patches.enter_context(patch.object(module, "_collect_all_valid_cia_ops", collected))
        yield
