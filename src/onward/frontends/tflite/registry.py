"""Rules of the frontend: a builtin op of TensorFlow Lite as ONNX ops.

A rule is called with the tensors that the op takes, in floats where they are quantised, and with the op's options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from onward.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

RULES: Registry[Callable[..., Any]] = Registry("TensorFlow Lite op")


def rule(*op_types: str) -> Callable[[F], F]:
    """File a function as the rule for builtin ops."""

    def file(function: F) -> F:
        RULES.register(*op_types)(function)
        return function

    return file
