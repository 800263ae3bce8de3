"""Pieces of training graphs as C, compiled on the user's machine where there is a compiler, for the trainer only.

The ONNX graphs are the truth: what is compiled is printed from them, and they run as they are where it cannot be. This
file is the whole interface; docs/guide/training.md says what is compiled, where it is kept, and how to switch it off.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onward.training.native.compiler import chosen, wanted
    from onward.training.native.driver import DOMAIN, tell_threads
    from onward.training.native.expressions import UnprintableError
    from onward.training.native.in_place import with_updates
    from onward.training.native.optimizer import Kernel
    from onward.training.native.selftest import with_kernels

__all__ = ["DOMAIN", "Kernel", "UnprintableError", "chosen", "tell_threads", "wanted", "with_kernels", "with_updates"]

_HOMES = {
    "DOMAIN": "driver",
    "Kernel": "optimizer",
    "UnprintableError": "expressions",
    "chosen": "compiler",
    "tell_threads": "driver",
    "wanted": "compiler",
    "with_kernels": "selftest",
    "with_updates": "in_place",
}


def __getattr__(name: str) -> Any:
    """Names are imported when first used: kernels and what speeds up a session know of each other."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
